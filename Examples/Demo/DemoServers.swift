// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import ProcessHarness

/// The database of the demo's servers.
enum DemoDatabase: String, CaseIterable, ExpressibleByArgument {
    /// One server with its own.
    case sqlite
    /// Two servers that share one.
    case postgresql
}

/// The demo's servers: one with a folder, or two on a PostgreSQL of the demo's own, each with a relay
/// that prefers it.
struct DemoServers {
    let nodes: [ServerProcess]
    /// One for each device of the story; none if there is one server.
    private let relays: [Relay]
    private let database: PostgresServer?

    init(_ stage: Stage, _ kind: DemoDatabase) throws {
        guard kind == .postgresql else {
            (nodes, relays, database) = ([ServerProcess(stage)], [], nil)
            return
        }
        let database = try PostgresServer.started(isDurable: true)
        let nodes = (1...2).map { number in
            ServerProcess(
                stage, data: stage.path("server-\(number)"), database: database.url())
        }
        self.database = database
        self.nodes = nodes
        relays = try [nodes, nodes.reversed()].map { order in try Relay(to: { order.map(\.port) }) }
    }

    var isShared: Bool { nodes.count > 1 }
    /// As the subject of a sentence.
    var name: String { isShared ? "Both servers" : "The server" }
    /// The verb that goes with it.
    func verb(_ infinitive: String) -> String { isShared ? infinitive : infinitive + "s" }

    func start() async throws { for node in nodes { try await node.start() } }
    func kill() async throws { for node in nodes { try await node.kill() } }
    func stop() async throws { for node in nodes { try await node.stop() } }

    /// - Parameter place: The number of the server that the device prefers.
    func signIn(
        _ name: String, isFirst: Bool = false, at place: Int = 0, home: String
    ) async throws {
        try await nodes[0].signIn(
            name, isFirst: isFirst, home: home, through: isShared ? relays[place].plugIn() : nil)
    }

    /// The number of connections of the first device that its other server accepted.
    var detours: Int {
        get async throws { try await relays.first?.connections(to: 1) ?? 0 }
    }

    func close() {
        for relay in relays { relay.pullOut() }
        database?.kill()
    }
}
