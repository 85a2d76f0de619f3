// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import ProcessHarness
internal import Synchronization

/// Stands between a client and a server, and records every byte.
final class CountingRelay: Sendable {
    /// Everything that was sent, in order.
    struct Said: Sendable {
        var byClient = ""
        var byServer = ""
        var count = 0
    }

    let url: String
    private let relay: Relay
    private let record = Record()

    /// Shared state: `said`, guarded by its mutex.
    private final class Record: Sendable {
        let said = Mutex(Said())

        func note(_ bytes: ByteBuffer, isServer: Bool) {
            let text = String(buffer: bytes)
            said.withLock { said in
                said.count += bytes.readableBytes
                if isServer { said.byServer += text } else { said.byClient += text }
            }
        }
    }

    init(to port: Int) async throws {
        relay = try Relay(to: { [port] }) { [record] in record.note($0, isServer: $1) }
        url = try await relay.plugIn()
    }

    /// Returns everything recorded since the last call.
    func take() -> Said {
        record.said.withLock { said in
            defer { said = Said() }
            return said
        }
    }

    func close() { relay.pullOut() }
}
