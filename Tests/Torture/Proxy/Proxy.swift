// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import ProcessHarness

/// The way of one device to the server, or to any of several, which can be made bad.
///
/// `@unchecked Sendable`: all of its state is used on its event loop only.
final class Proxy: @unchecked Sendable {
    let port: Int
    private let serverPorts: [Int]
    /// The place of the server that takes the next connection: each in turn, as load balancers do.
    private var turn = Int.random(in: 0..<1_000)
    private let loop: any EventLoop
    private let chronicle: Chronicle
    private var listener: (any Channel)?
    private var lines: [ObjectIdentifier: ProxyLine] = [:]
    private var delayMax: Int64 = 0
    /// Connections made now are silent from the beginning.
    private var swallows = false

    init(port: Int, to serverPorts: [Int], on loop: any EventLoop, _ chronicle: Chronicle) {
        (self.port, self.serverPorts) = (port, serverPorts)
        (self.loop, self.chronicle) = (loop, chronicle)
    }

    /// The server's address, as the device knows it.
    var url: String { "http://127.0.0.1:\(port)" }

    // MARK: - Faults

    /// Delays bytes by at most this many milliseconds.
    func slow(to milliseconds: Int64) async { await onLoop { $0.delayMax = milliseconds } }

    /// Cuts all connections, or one of them.
    func cut(all: Bool) async {
        await onLoop { proxy in
            for line in all ? Array(proxy.lines.values) : proxy.some { line.cut() }
        }
    }

    func halfClose(towards side: ProxyLine.Side) async {
        await onLoop { proxy in for line in proxy.some { line.halfClose(towards: side) } }
    }

    /// Nothing passes any more on the connections that there are; and if wanted, those that are made
    /// from now on are like that too.
    func silence(newOnesToo: Bool) async {
        await onLoop { proxy in
            proxy.swallows = newOnesToo
            for line in proxy.lines.values { line.silence() }
        }
    }

    /// Lets new connections be as connections should; those that are silent stay so.
    func endSilence() async { await onLoop { $0.swallows = false } }

    /// Resets all connections and refuses new ones.
    func close() async {
        await onLoop { proxy in
            proxy.listener?.close(promise: nil)
            proxy.listener = nil
            for line in proxy.lines.values { line.cut() }
        }
    }

    /// At most one connection, by chance.
    private var some: [ProxyLine] { lines.values.randomElement().map { [$0] } ?? [] }

    private func onLoop(_ body: @escaping @Sendable (Proxy) -> Void) async {
        try? await loop.submit { [self] in body(self) }.get()
    }

    // MARK: - Connections

    /// Takes connections.
    func open() async throws {
        let channel = try await ServerBootstrap(group: loop)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { [self] device in connect(device) }
            .bind(host: "127.0.0.1", port: port).get()
        await onLoop { $0.listener = channel }
    }

    private func connect(_ device: any Channel) -> EventLoopFuture<Void> {
        chronicle.count(.connections)
        turn += 1
        connect(
            device,
            to: serverPorts.indices.map { serverPorts[($0 + turn) % serverPorts.count] }[...])
        return loop.makeSucceededVoidFuture()
    }

    /// Servers that cannot be reached are a connection that is reset.
    private func connect(_ device: any Channel, to ports: ArraySlice<Int>) {
        guard let port = ports.first else { return ProxyLine.reset(device) }
        ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: false)
            .connect(host: "127.0.0.1", port: port)
            .whenComplete { [self] result in
                switch result {
                case .success(let server): join(device, server)
                case .failure: connect(device, to: ports.dropFirst())
                }
            }
    }

    private func join(_ device: any Channel, _ server: any Channel) {
        guard device.isActive else { return server.close(promise: nil) }
        let line = ProxyLine(
            device: device, server: server,
            delay: { [unowned self] in .milliseconds(.random(in: 0...delayMax)) },
            ended: { [unowned self] in lines[ObjectIdentifier($0)] = nil })
        if swallows { line.silence() }
        lines[ObjectIdentifier(line)] = line
        line.begin().whenSuccess {
            for channel in [device, server] {
                _ = channel.setOption(.autoRead, value: true)
            }
        }
    }
}
