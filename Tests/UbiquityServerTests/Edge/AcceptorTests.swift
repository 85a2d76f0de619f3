// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import NIOHTTP1
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct AcceptorTests {
    @Test func `further connections wait until one ends`() async throws {
        let edge = Edge(
            ServerSettings(dataFolder: ""), tls: nil, metrics: ServerMetrics(), logger: .off)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let acceptor = Acceptor(
            address: .hostname("127.0.0.1", port: 0), connectionsMax: 2,
            channel: EdgeChannel(edge: edge) { $0.answer(Answer(.noContent)) },
            onReady: { port.yield($0) })
        let running = Task { try await acceptor.run() }
        let number = try #require(await ports.first { _ in true })
        func ask(_ connection: RawConnection) async {
            await connection.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        }
        var connections: [RawConnection] = []
        for _ in 0..<2 {
            connections.append(try await RawConnection.open(number))
            await ask(connections[connections.count - 1])
            try await connections[connections.count - 1].receive("\r\n\r\n")
        }
        let waiting = try await RawConnection.open(number)
        await ask(waiting)
        for _ in 0..<20 {
            let before = connections[1].received.count
            await ask(connections[1])
            try await until("an answer") { connections[1].received.count > before }
        }
        #expect(edge.connectionCounter.count == 2 && waiting.received.isEmpty)
        connections[0].close()
        try await waiting.receive("HTTP/1.1 204 No Content\r\n")
        for connection in connections + [waiting] { connection.close() }
        running.cancel()
        try await running.value
    }

    @Test func `a server that stops ends idle connections, and waits for a request under way`()
        async throws
    {
        let server = try await RunningServer.start()
        let device = try await server.newDevice()
        let idle = try await RawConnection.open(server.port)
        await idle.send("GET /v1/config HTTP/1.1\r\nHost: a\r\n\r\n")
        try await idle.receive("\r\n\r\n")
        let silent = try await RawConnection.open(server.port)
        let busy = try await RawConnection.open(server.port)
        await busy.send(
            "POST /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\n"
                + "Authorization: Bearer \(device.credential)\r\nExpect: 100-continue\r\n"
                + "Content-Type: application/x-protobuf\r\nContent-Length: 3\r\n\r\n")
        try await busy.receive("HTTP/1.1 100 Continue\r\n")
        let stopping = Task { try await server.stop() }
        for connection in [idle, silent] { _ = try await connection.end() }
        await #expect(throws: (any Error).self) { try await RawConnection.open(server.port) }
        #expect(busy.isOpen && !busy.received.contains("HTTP/1.1 400"))
        await busy.send("aaa")
        #expect(try await busy.end().contains("HTTP/1.1 400"))
        try await stopping.value
    }
}
