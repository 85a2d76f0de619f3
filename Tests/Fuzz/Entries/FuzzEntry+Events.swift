// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore
internal import UbiquityWire

extension FuzzEntry {
    /// A stream of server-sent events, in whatever pieces, and the engine that hears it.
    static var events: FuzzEntry {
        FuzzEntry("events", stack: .system) {
            try Samples.streams()
        } check: { bytes in
            // The small bound is one that short inputs reach.
            for eventBytesMax in [48, 1 << 20] { try checkPieces(bytes, eventBytesMax) }
            guard let events = try? events(in: [bytes[...]], 1 << 20) else { return }
            try check(events)
        }
    }

    private static func checkPieces(_ bytes: [UInt8], _ eventBytesMax: Int) throws {
        let whole = Result { try events(in: [bytes[...]], eventBytesMax) }
        for pieces in [singles(bytes), pieces(bytes)] {
            let result = Result { try events(in: pieces, eventBytesMax) }
            try must((try? result.get()) == (try? whole.get()), "the pieces make a difference")
        }
    }

    private static func events(
        in pieces: [ArraySlice<UInt8>], _ eventBytesMax: Int
    ) throws -> [StreamEvent] {
        var parser = EventStreamParser(eventBytesMax: eventBytesMax)
        return try pieces.flatMap { try $0.withUnsafeBytes { try parser.consume($0) } }
    }

    private static func singles(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.indices.map { bytes[$0...$0] }
    }

    /// The same for the same bytes, empty ones among them.
    private static func pieces(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var random = RandomSource(seed: bytes.reduce(1) { $0 &* 31 &+ UInt64($1) })
        var pieces: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int(random.next() % 24))
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    private static func check(_ events: [StreamEvent]) throws {
        var device = EngineTrial()
        for event in events {
            // The first that cannot be read ends the stream.
            let bounds = IntakeLimits(nil).message
            guard let message = try? ChangeEvent(event, within: bounds)?.message else {
                continue
            }
            try device.hear(message)
        }
        try device.write()
        try device.fail(LinkFailure(.unreachable, "the stream broke"))
    }
}
