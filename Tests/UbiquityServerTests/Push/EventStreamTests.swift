// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import Testing

@testable internal import UbiquityCore
@testable internal import UbiquityServer

/// The turns of the stores of one stream, on a connection that takes what a test lets it.
struct EventStreamTests {
    private let hub: PushHub
    private let loop = EmbeddedEventLoop()
    private let channel: EmbeddedChannel
    private let rights = DeviceRights(
        reference: DeviceReference(account: Sample.account.id, id: Sample.device))

    init() throws {
        channel = EmbeddedChannel(loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        var settings = ServerSettings(dataFolder: "")
        settings.constants.streamBufferBytesMax = 1 << 20
        settings.keepAliveSeconds = 1
        hub = PushHub(
            storage: try SQLiteServerStorage.inMemory(),
            threads: BlockingThreads(name: "test", count: 1, waitingMax: 100), settings: settings)
    }

    private func reference(_ store: Int) throws -> StoreReference {
        StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("store\(store)"))
    }

    /// Opens a stream, each store of which begins with two pieces.
    private func open(_ count: Int, isShared: Bool = true, at revision: Int64 = 1) throws
        -> EventStream
    {
        let stream = EventStream(
            hub, count: count, isShared: isShared, takesBinary: false, on: loop)
        let open = { (store: Int) in
            guard let subscriber = try? hub.subscribe(rights, to: try reference(store), in: stream)
            else { return }
            var beginning = Answer()
            for piece in ["<\(store)", "\(store)>"] { beginning.append(ByteBuffer(string: piece)) }
            let position = Sample.position(revision)
            subscriber.begin(with: beginning, StreamStart(position.cursor))
            hub.begin(subscriber, at: position)
        }
        stream.start(open)
        stream.connect(isChunked: false, open)
        try channel.pipeline.syncOperations.addHandler(stream)
        return stream
    }

    /// Commits a write to a store, at the revision after the last.
    private func publish(_ key: String, to store: Int, at revision: Int64) throws {
        let write = Sample.record(key, .integer(1), at: 500)
        let push = CommittedPush(
            writes: [write], folded: [], span: nil, results: [],
            previous: Sample.position(revision - 1), position: Sample.position(revision),
            serverMilliseconds: 0, horizon: .zero, deletions: 0, foldedCount: 0,
            history: HistoryChange(at: .start))
        hub.publish([(try reference(store), push)], then: LoopWork())
        loop.run()
    }

    private func setWritable(_ isWritable: Bool) {
        channel.isWritable = isWritable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    /// What was sent since the last call, with a push as its store and key.
    private func sent() throws -> String {
        loop.run()
        var text = ""
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
            text += String(buffer: buffer)
        }
        return text.replacing(
            /event: changes\ndata: {"records":\[{"key":"(\w+)".*?"store":"(\w+)"}\n\n/
        ) { "[\($0.2) \($0.1)]" }
    }

    @Test func `one store begins after the other, and pushes follow at once`() throws {
        _ = try open(3)
        #expect(try sent() == "<00><11><22>")
        for store in [2, 0] {
            try publish("a", to: store, at: 2)
            #expect(try sent() == "[store\(store) a]")
        }
        #expect(hub.count == 3)
    }

    @Test
    func `no store begins, and none is subscribed, before the connection takes the one before`()
        throws
    {
        channel.isWritable = false
        _ = try open(3)
        #expect(try hub.count == 1 && sent() == "")
        setWritable(true)
        #expect(try hub.count == 3 && sent() == "<00><11><22>")
    }

    @Test func `a store with much to send does not delay the push of another`() throws {
        _ = try open(3)
        _ = try sent()
        setWritable(false)
        for revision: Int64 in 2...5 { try publish("k\(revision)", to: 0, at: revision) }
        try publish("b", to: 2, at: 2)
        try publish("c", to: 1, at: 2)
        #expect(try sent() == "")
        setWritable(true)
        #expect(
            try sent()
                == "[store0 k2][store2 b][store1 c][store0 k3][store0 k4][store0 k5]")
        #expect(hub.waitingBytes == 0)
    }

    @Test func `a keep-alive comes once, whatever stores have ended`() throws {
        let stream = try open(3)
        _ = try sent()
        for _ in 1...2 {
            hub.keepAlive(tick: 7)
            #expect(try sent() == ":\n\n")
            stream.end(0, with: ByteBuffer(string: "end"))
            _ = try sent()
        }
        setWritable(false)
        hub.keepAlive(tick: 7)
        #expect(try sent() == "")
    }

    @Test func `a store that was interrupted ends, and the others go on`() throws {
        _ = try open(2, at: 5)
        _ = try sent()
        // Another subscriber has read an older copy of the store.
        let other = EventStream(hub, count: 1, isShared: false, takesBinary: false, on: loop)
        other.start { _ in }
        let subscriber = try hub.subscribe(rights, to: reference(0), in: other)
        hub.begin(subscriber, at: Sample.position(3))
        let text = try sent()
        #expect(text.hasPrefix("event: ended\ndata: {"))
        #expect(text.contains("\"store\":\"store0\"") && text.contains("\"code\":\"unavailable\""))
        #expect(text.contains("\"retryAfterSeconds\":\"1\""))
        #expect(other.hasEnded)
        try publish("b", to: 1, at: 6)
        #expect(try sent() == "[store1 b]")
        #expect(hub.count == 1)
    }

    @Test func `a stream ends with the last of its stores`() throws {
        let stream = try open(2)
        _ = try sent()
        stream.end(1, with: ByteBuffer(string: "1 "))
        stream.end(1, with: ByteBuffer(string: "again"))
        #expect(try sent() == "1 " && !stream.hasEnded)
        stream.end(0, with: ByteBuffer(string: "0 "))
        #expect(try sent() == "0 " && stream.hasEnded)
        #expect(hub.count == 0)
    }

    @Test func `an end does not come within a beginning`() throws {
        let stream = EventStream(hub, count: 1, isShared: true, takesBinary: false, on: loop)
        stream.start { _ in }
        let subscriber = try hub.subscribe(rights, to: reference(0), in: stream)
        // The connection takes the first piece, and no more.
        try channel.pipeline.syncOperations.addHandlers([OnePiece(channel), stream])
        var beginning = Answer()
        for piece in ["<0", "0>"] { beginning.append(ByteBuffer(string: piece)) }
        subscriber.begin(with: beginning, StreamStart(Sample.position(1).cursor))
        subscriber.end(.overflow)
        #expect(try sent().contains("<0\r\n"))
        setWritable(true)
        let text = try sent()
        #expect(text.hasPrefix("2\r\n0>\r\n") && text.contains(#"data: {"store":"store0"}"#))
        #expect(text.hasSuffix("0\r\n\r\n") && hub.count == 0)
    }

    /// Takes one piece.
    private final class OnePiece: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        private let channel: EmbeddedChannel
        private var isOver = false

        init(_ channel: EmbeddedChannel) { self.channel = channel }

        func write(
            context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
        ) {
            if !isOver { channel.isWritable = false }
            isOver = true
            context.write(data, promise: promise)
        }
    }

    @Test func `an end of all takes effect within a beginning, and drops what waits`() throws {
        channel.isWritable = false
        let stream = try open(3)
        hub.end { $0.device == rights.reference }
        #expect(try sent() == "" && stream.hasEnded)
        #expect(hub.waitingBytes == 0)
        // It has closed the connection.
        #expect(!channel.isActive && hub.count == 0)
    }

    @Test func `a stream whose connection is gone leaves no subscription`() throws {
        let stream = try open(3)
        #expect(hub.count == 3)
        setWritable(false)
        try publish("a", to: 0, at: 2)
        #expect(hub.waitingBytes > 0)
        try channel.close().wait()
        loop.run()
        #expect(hub.count == 0 && hub.waitingBytes == 0 && stream.hasEnded)
    }
}
