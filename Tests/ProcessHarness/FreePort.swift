// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Ports for listeners that go away and come back.
package enum FreePort {
    /// Below those that systems give to outgoing connections, which could take it meanwhile.
    private static let numbers = 15_000...32_000
    /// What this process has found: a listener that is away keeps its port.
    private static let found = Mutex<Set<Int>>([])

    /// Finds a port of 127.0.0.1 that nobody listens at, another one each time. Blocks for a moment.
    /// - Throws: ``Trouble`` if none is free.
    package static func find() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: numbers)
            guard found.withLock({ $0.insert(port).inserted }),
                let listener = try? ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .bind(host: "127.0.0.1", port: port).wait()
            else { continue }
            try listener.close().wait()
            return port
        }
        throw Trouble("no port is free")
    }
}
