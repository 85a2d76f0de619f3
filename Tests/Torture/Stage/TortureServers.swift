// SPDX-License-Identifier: Apache-2.0

import NIOCore
import ProcessHarness

/// The server that a torture has: one process with a database of its own, or nodes that share one.
struct TortureServers: Sendable {
    let nodes: [TortureNode]
    let database: DatabasePair?
    /// A way to any of them, without faults.
    let front: Proxy

    init(
        _ plan: TorturePlan, _ stage: Stage, _ clocks: WrongClocks, on loop: any EventLoop,
        _ chronicle: Chronicle
    ) async throws {
        database = plan.database == .postgresql ? try DatabasePair() : nil
        var nodes: [TortureNode] = []
        for number in 0..<(database == nil ? 1 : TorturePlan.nodes) {
            var ways: [Proxy] = []
            for port in database?.ports ?? [] {
                let way = Proxy(port: try FreePort.find(), to: [port], on: loop, chronicle)
                try await way.open()
                ways.append(way)
            }
            let isOnly = database == nil
            let server = ServerProcess(
                stage, data: stage.path(isOnly ? "server" : "node-\(number)"),
                database: isOnly
                    ? nil : PostgresServer.url(ports: ways.map(\.port), DatabasePair.name),
                environment: isOnly ? [:] : clocks.environment(ofNode: number))
            try await server.start()
            nodes.append(TortureNode(number: number, server: server, ways: ways))
        }
        self.nodes = nodes
        front = try await Self.way(to: nodes, on: loop, chronicle)
    }

    /// A new way to any of them.
    func way(on loop: any EventLoop, _ chronicle: Chronicle) async throws -> Proxy {
        try await Self.way(to: nodes, on: loop, chronicle)
    }

    private static func way(
        to nodes: [TortureNode], on loop: any EventLoop, _ chronicle: Chronicle
    ) async throws -> Proxy {
        let way = Proxy(
            port: try FreePort.find(), to: nodes.map(\.server.port), on: loop,
            chronicle)
        try await way.open()
        return way
    }
}
