// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A stream of changes: in order and without gaps until it breaks, like a connection.
package final class VirtualStream {
    /// Numbers the streams of all processes in the order in which they were opened.
    package let id: Int
    let store: StoreReference
    let device: DeviceID
    /// The number of the account's key that the device has; 0 for none.
    let generation: UInt32
    private unowned let world: any VirtualWorld
    let listener: any VirtualListener
    /// The listener's number for it.
    private let number: Int
    private let openedAt: Int64
    private var isOpen = true
    /// Where the listener goes on.
    private(set) var cursor: Cursor?
    /// Whether the listener has once been told that it has everything.
    private(set) var isReady: Bool
    /// A node has it. If the network repeats the request, nobody reads the other answer.
    var isTaken = false
    /// Nothing arrives any more, and nobody has noticed.
    package private(set) var isHalfOpen = false
    private var lastArrival: Int64 = 0
    /// The messages that a proxy holds back.
    private var kept: [StreamMessage] = []

    /// The longest silence that a client tolerates. The server sends keep-alives more often.
    static let silenceMax = IdleTimeout.streamMilliseconds(keepAliveSeconds: 0)

    package init(
        number: Int, listener: any VirtualListener, store: StoreReference, device: DeviceID,
        world: any VirtualWorld, cursor: Cursor? = nil, isReady: Bool = false,
        generation: UInt32 = 0
    ) {
        self.generation = generation
        id = world.newStreamID()
        self.number = number
        self.listener = listener
        self.store = store
        self.device = device
        self.world = world
        (self.cursor, self.isReady) = (cursor, isReady)
        openedAt = world.now
    }

    // MARK: - The server's side

    func send(_ message: StreamMessage) {
        guard isOpen, !isHalfOpen else { return }
        guard listener.line.isOnline else { return goSilent() }
        if listener.line.quality.isBuffering {
            if kept.isEmpty { waitInVain() }
            return kept.append(message)
        }
        arrive(message)
    }

    private func arrive(_ message: StreamMessage) {
        lastArrival = max(lastArrival, world.now + listener.line.delay(.back))
        var rest = listener.line.quality.milliseconds(for: message.virtualBytes)
        while rest > 0 {
            deliver(.progress)
            lastArrival += min(rest, 1_000)
            rest -= 1_000
        }
        deliver(message)
    }

    private func deliver(_ message: StreamMessage) {
        world.at(lastArrival) { [self] in
            guard isOpen, !isHalfOpen else { return }
            switch message {
            case .changes(let changes):
                if isReady, changes.isWhole { return listener.received(.resync, on: number) }
                cursor = changes.cursor
            case .ready(let place, _): (cursor, isReady) = (place, true)
            case .progress, .resync: break
            }
            listener.received(message, on: number)
        }
    }

    /// The client receives nothing and gives up.
    private func waitInVain() {
        world.after(Self.silenceMax) { [self] in
            guard isOpen else { return }
            world.server.unsubscribe(self)
            end(LinkFailure(.timedOut, "silence"))
        }
    }

    /// Ends it with a message.
    package func breakOff(_ failure: LinkFailure?) {
        guard isOpen else { return }
        bringKept()
        lastArrival = max(lastArrival, world.now + listener.line.delay(.back))
        world.at(lastArrival) { [self] in end(failure) }
    }

    private func bringKept() {
        defer { kept = [] }
        guard !isHalfOpen, !kept.isEmpty else { return }
        world.note(.keptBack(device: listener.line.number, milliseconds: world.now - openedAt))
        for message in kept { arrive(message) }
    }

    /// The server is gone: the client's system notices, or nobody does.
    func lose() {
        if world.chance.perMille(800) {
            breakOff(LinkFailure(.unreachable, "reset"))
        } else {
            goSilent()
        }
    }

    // MARK: - The network

    /// Breaks in the middle: messages under way are lost.
    package func cut() {
        guard isOpen else { return }
        world.server.unsubscribe(self)
        isHalfOpen = true
        world.after(listener.line.delay(.back)) { [self] in
            end(LinkFailure(.unreachable, "cut"))
        }
    }

    /// Nothing arrives any more. The client notices by the silence, the server much later.
    package func goSilent() {
        guard isOpen, !isHalfOpen else { return }
        isHalfOpen = true
        world.after(Self.silenceMax) { [self] in
            world.server.unsubscribe(self)
            end(LinkFailure(.timedOut, "silence"))
        }
    }

    // MARK: - The client's side

    package func hangUp() {
        isOpen = false
        world.server.unsubscribe(self)
    }

    private func end(_ failure: LinkFailure?) {
        guard isOpen else { return }
        isOpen = false
        listener.streamEnded(number, failure)
    }
}

/// The process that opened a stream.
package protocol VirtualListener: AnyObject {
    var line: any VirtualLine { get }

    /// - Parameter stream: The listener's number for it.
    func received(_ message: StreamMessage, on stream: Int)

    /// - Parameter failure: Nil if the server ended it normally.
    func streamEnded(_ stream: Int, _ failure: LinkFailure?)
}

extension StreamMessage {
    fileprivate var virtualBytes: Int {
        if case .changes(let changes) = self { changes.virtualBytes } else { 0 }
    }
}
