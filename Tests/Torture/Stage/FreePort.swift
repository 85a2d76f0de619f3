// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import ProcessHarness

/// Ports for listeners that go away and come back.
enum FreePort {
    /// Below those that systems give to outgoing connections, which could take it meanwhile.
    private static let numbers = 15_000...32_000

    /// - Throws: ``Trouble`` if none is free.
    static func find(on loop: any EventLoop) async throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: numbers)
            let bootstrap = ServerBootstrap(group: loop)
            guard let channel = try? await bootstrap.bind(host: "127.0.0.1", port: port).get()
            else { continue }
            try await channel.close().get()
            return port
        }
        throw Trouble("no port is free")
    }
}
