// SPDX-License-Identifier: Apache-2.0

/// Reads the head of an answer line by line. Skips provisional ones, and the fields that may follow
/// a body.
struct AnswerHeadReader {
    static let bytesMax = 64 << 10
    static let fieldsMax = 100

    /// Whether the head is complete.
    private(set) var isComplete = false
    private var bytes = 0
    private var head: HTTPAnswerHead?

    /// - Parameter line: With its end.
    /// - Returns: The head, once: when it is complete.
    /// - Throws: ``HTTPFailure`` if it is too large or not a head.
    mutating func read(_ line: UnsafeRawBufferPointer) throws(HTTPFailure) -> HTTPAnswerHead? {
        bytes += line.count
        guard bytes <= Self.bytesMax else { throw .other("the answer's header is too large") }
        guard !isComplete else { return nil }
        let text = line.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
        guard let known = head else {
            head = try Self.statusLine(text)
            return nil
        }
        guard text.isEmpty else {
            try add(text)
            return nil
        }
        // Curl asked for no other protocol, so that 101 is not provisional.
        if (100..<200).contains(known.status), known.status != 101 {
            head = nil
            return nil
        }
        isComplete = true
        return known
    }

    private static func statusLine(
        _ text: Slice<UnsafeRawBufferPointer>
    ) throws(HTTPFailure) -> HTTPAnswerHead {
        let parts = text.split(separator: UInt8(ascii: " "), maxSplits: 2)
        guard parts.count >= 2, parts[0].starts(with: "HTTP/".utf8), parts[1].count == 3,
            let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { throw .other("the answer is not HTTP") }
        return HTTPAnswerHead(
            status: status, reason: parts.count > 2 ? String(decoding: parts[2], as: UTF8.self) : ""
        )
    }

    private mutating func add(_ text: Slice<UnsafeRawBufferPointer>) throws(HTTPFailure) {
        let isContinued = text.first.map(Self.isBlank) ?? false
        if isContinued, let last = head?.fields.indices.last {
            head?.fields[last].value += " " + Self.trimmed(text)
            return
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
            throw .other("the answer's header cannot be read")
        }
        guard head?.fields.count != Self.fieldsMax else {
            throw .other("the answer's header has too many fields")
        }
        head?.fields.append(
            (Self.trimmed(text[..<colon]), Self.trimmed(text[colon...].dropFirst())))
    }

    private static func trimmed(_ text: Slice<UnsafeRawBufferPointer>) -> String {
        var text = text
        while let first = text.first, isBlank(first) { text.removeFirst() }
        while let last = text.last, isBlank(last) { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
