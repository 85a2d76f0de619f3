// SPDX-License-Identifier: Apache-2.0

// The functions that a shell calls. An instance of the module is one store in one process, or the
// streams of several. All that crosses is a property list in Core's binary form, in one place of the
// memory that both use.

nonisolated(unsafe) private var place = UnsafeMutableRawBufferPointer(start: nil, count: 0)
nonisolated(unsafe) private var engine: Engine?
nonisolated(unsafe) private var pool: StreamPool?

/// Makes room for a property list.
/// - Returns: The place. It stays until the next call of any function.
@_expose(wasm, "buffer") @_cdecl("ubiquity_buffer")
public func buffer(_ count: Int32) -> UnsafeMutableRawPointer? {
    if count > place.count {
        place.deallocate()
        place = .allocate(byteCount: max(Int(count), 1 << 16), alignment: 16)
    }
    return place.baseAddress
}

/// Takes the event of `count` bytes in the buffer. The first one is `start`, or `pool`; what is asked
/// of codes and keys may come before.
/// - Parameters:
///   - wall: The milliseconds since 1970 by the device's clock.
///   - uptime: The milliseconds of a clock that nobody sets.
/// - Returns: The size of the answer in the buffer: the steps to carry out, in order.
@_expose(wasm, "handle") @_cdecl("ubiquity_handle")
public func handle(_ count: Int32, _ wall: Double, _ uptime: Double) -> Int32 {
    answer(to: count) { event throws(StoredFieldError) in
        let word = try event.word("do")
        if let answer = try KeyQuestion.answer(to: word, event) { return answer }
        switch word {
        case "start":
            engine = nil
            engine = try Engine(starting: event, wall: wall, uptime: uptime)
        case "pool": pool = try StreamPool(event)
        default: break
        }
        if pool != nil { return try pool!.handle(event, at: Int64(bounded: uptime)) }
        guard let engine else { throw .missing("start") }
        return try engine.handle(event, at: engine.reading(wall, uptime))
    }
}

/// Writes what is in the buffer, as one transaction. What follows from it are the steps of the next
/// event, so that a hundred writes are one save.
/// - Returns: The size of the answer in the buffer: the refusal, if it was refused.
@_expose(wasm, "write") @_cdecl("ubiquity_write")
public func write(_ count: Int32, _ wall: Double, _ uptime: Double) -> Int32 {
    answer(to: count) { event throws(StoredFieldError) in
        guard let engine else { throw .missing("start") }
        return try engine.write(event, at: engine.reading(wall, uptime))
    }
}

/// The value of the key whose UTF-8 is in the buffer.
/// - Returns: The size of the value in the buffer; 0 if there is none.
@_expose(wasm, "value") @_cdecl("ubiquity_value")
public func value(_ count: Int32) -> Int32 {
    guard let key = try? Key(String(decoding: bytes(count), as: UTF8.self)),
        let value = engine?.driver.engine.value(key)
    else { return 0 }
    return put(BinaryPropertyList.encode(value))
}

private func bytes(_ count: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: place.prefix(max(0, Int(count))))
}

private func put(_ bytes: [UInt8]) -> Int32 {
    _ = buffer(Int32(bytes.count))
    place.copyBytes(from: bytes)
    return Int32(bytes.count)
}

private func answer(
    to count: Int32, _ body: (StoredFields) throws(StoredFieldError) -> PropertyListValue
) -> Int32 {
    let answer: PropertyListValue
    do throws(StoredFieldError) {
        answer = try body(StoredFields(.decoded(Array(bytes(count)))))
    } catch { answer = .fields(["error": .string("event"), "detail": .string(error.description)]) }
    return put(BinaryPropertyList.encode(answer))
}
