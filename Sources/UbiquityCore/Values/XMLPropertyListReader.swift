// SPDX-License-Identifier: Apache-2.0

/// Reads the XML format of a property list, in time that grows with its length.
///
/// A text that is not well-formed is refused, also where other readers guess: a missing end, an entity that
/// XML does not have by itself, a value without a key, text between values.
struct XMLPropertyListReader {
    /// The elements that contain others.
    private enum Element: String {
        case plist, dict, array
    }

    private let bytes: [UInt8]
    private var at: Int
    private var builder: ValueBuilder
    private var open: [Element] = []
    private var hasRoot = false

    /// - Parameter bytes: Text in UTF-8.
    init(_ bytes: [UInt8], depthMax: Int, unsupported: ValueBuilder.Unsupported?) {
        self.bytes = bytes
        at = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        builder = ValueBuilder(bytes, depthMax: depthMax, unsupported: unsupported)
    }

    mutating func root() throws(PropertyListError) -> PropertyListValue {
        try declaration()
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "<") {
                try markup()
            } else {
                guard XMLValue.isBlank(bytes[at]) else { throw broken("text outside of a value") }
                at += 1
            }
        }
        if let last = open.last { throw broken("it ends within <\(last)>") }
        guard let root = builder.root else { throw broken("it has no <plist> with a value") }
        return root
    }

    // MARK: - Markup between values

    private mutating func markup() throws(PropertyListError) {
        let start = at
        if try skip() { return }
        if take("<!DOCTYPE") {
            guard !hasRoot, open.isEmpty else { throw broken("a document type in its content") }
            while at < bytes.count, !"[>".utf8.contains(bytes[at]) { at += 1 }
            // Entities and attributes of its own would follow a bracket.
            guard take(">") else { throw broken("a document type with declarations of its own") }
        } else if take("</") {
            let name = try name()
            try endOfEndTag()
            try close(name, at: start)
        } else {
            guard take("<") else { throw broken("markup that property lists do not have") }
            try element(start)
        }
    }

    private mutating func element(_ start: Int) throws(PropertyListError) {
        let name = try name()
        let isEmpty = try tagEnd(of: name)
        if let element = Element(rawValue: name) {
            try begin(element, at: start)
            if isEmpty { try close(name, at: start) }
            return
        }
        guard XMLValue.elements.contains(name) else {
            throw broken("an element that property lists do not have: <\(name)>", at: start)
        }
        try checkPlace(of: name, at: start)
        let content = isEmpty ? [] : try self.content(of: name)
        try take(name, content, at: start)
    }

    private mutating func begin(_ element: Element, at start: Int) throws(PropertyListError) {
        if element == .plist {
            guard !hasRoot else { throw broken("a second <plist>", at: start) }
            hasRoot = true
        } else {
            try checkPlace(of: element.rawValue, at: start)
            try builder.begin(isDictionary: element == .dict, at: start)
        }
        open.append(element)
    }

    private mutating func close(_ name: String, at start: Int) throws(PropertyListError) {
        guard let last = open.popLast() else {
            throw broken("</\(name)> without a beginning", at: start)
        }
        guard name == last.rawValue else {
            throw broken("</\(name)> where </\(last)> should be", at: start)
        }
        if last == .dict, builder.hasKey { throw broken("a key without a value", at: start) }
        if last == .plist {
            guard builder.root != nil else { throw broken("a <plist> without a value", at: start) }
        } else {
            builder.end()
        }
    }

    private mutating func checkPlace(of name: String, at start: Int) throws(PropertyListError) {
        guard let parent = open.last else {
            throw broken("<\(name)> outside of <plist>", at: start)
        }
        if name == "key" {
            guard parent == .dict else { throw broken("a key outside of <dict>", at: start) }
            if builder.hasKey { throw broken("a key without a value", at: start) }
        } else if parent == .dict {
            guard builder.takesValue else { throw broken("a value without a key", at: start) }
        } else if parent == .plist, builder.root != nil {
            throw broken("a second value in <plist>", at: start)
        }
    }

    /// - Returns: Whether the tag is the end of its element too.
    private mutating func tagEnd(of name: String) throws(PropertyListError) -> Bool {
        skipBlanks()
        if name == Element.plist.rawValue { while isName { try attribute() } }
        let isEmpty = take("/")
        guard take(">") else { throw broken("<\(name)> has something besides its name") }
        return isEmpty
    }

    private mutating func attribute() throws(PropertyListError) {
        _ = try name()
        skipBlanks()
        guard take("=") else { throw broken("an attribute without a value") }
        skipBlanks()
        guard at < bytes.count, "'\"".utf8.contains(bytes[at]) else {
            throw broken("an attribute without quotation marks")
        }
        let quote = bytes[at]
        at += 1
        while at < bytes.count, bytes[at] != quote, bytes[at] != UInt8(ascii: "<") { at += 1 }
        guard at < bytes.count, bytes[at] == quote else { throw broken("an attribute without end") }
        at += 1
        skipBlanks()
    }

    private mutating func endOfEndTag() throws(PropertyListError) {
        skipBlanks()
        guard take(">") else { throw broken("an end tag that does not end") }
    }

    private var isName: Bool { at < bytes.count && Self.isNameByte(bytes[at]) }

    private mutating func name() throws(PropertyListError) -> String {
        let name = bytes[at...].prefix(Self.nameBytesMax).prefix(while: Self.isNameByte)
        guard !name.isEmpty else { throw broken("markup that property lists do not have") }
        at = name.endIndex
        return String(decoding: name, as: UTF8.self)
    }

    private static let nameBytesMax = 64

    // MARK: - Text

    /// The text of an element, with its end tag.
    private mutating func content(of name: String) throws(PropertyListError) -> [UInt8] {
        var content: [UInt8] = []
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "&"): content += try reference()
            case UInt8(ascii: "<"):
                let start = at
                if try skip() { continue }
                if take("<![CDATA[") {
                    try verbatim(into: &content)
                } else {
                    guard take("</") else { throw broken("an element in <\(name)>") }
                    let end = try self.name()
                    guard end == name else {
                        throw broken("</\(end)> where </\(name)> should be", at: start)
                    }
                    try endOfEndTag()
                    return content
                }
            default:
                if bytes[at] == UInt8(ascii: "]"), starts("]]>") { throw broken("]]> in a text") }
                content.append(try character())
            }
        }
        throw broken("it ends within <\(name)>")
    }

    private mutating func verbatim(into content: inout [UInt8]) throws(PropertyListError) {
        while !take("]]>") {
            guard at < bytes.count else { throw broken("it ends within <![CDATA[") }
            content.append(try character())
        }
    }

    /// A byte of a text. All line ends become line feeds.
    private mutating func character() throws(PropertyListError) -> UInt8 {
        let byte = bytes[at]
        // The last two are U+FFFE and U+FFFF.
        let isNone =
            byte == 0xEF && at + 2 < bytes.count && bytes[at + 1] == 0xBF
            && bytes[at + 2] >= 0xBE
        guard byte >= 0x20 || XMLValue.isBlank(byte), !isNone else {
            throw broken("a character that XML does not have")
        }
        at += 1
        guard byte == 0x0D else { return byte }
        _ = take("\n")
        return 0x0A
    }

    private mutating func reference() throws(PropertyListError) -> [UInt8] {
        let name = bytes[(at + 1)...].prefix(10).prefix { $0 != UInt8(ascii: ";") }
        let text = String(decoding: name, as: UTF8.self)
        guard name.endIndex < bytes.count, bytes[name.endIndex] == UInt8(ascii: ";"),
            let content = Self.entities[text] ?? Self.scalar(text)
        else { throw broken("an entity that property lists do not have") }
        at = name.endIndex + 1
        return Array(content.utf8)
    }

    private static let entities = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"]

    /// The character of a reference by number that XML can have; nil for any other text.
    private static func scalar(_ text: String) -> String? {
        let isHexadecimal = text.hasPrefix("#x")
        let digits = text.dropFirst(isHexadecimal ? 2 : 1)
        guard text.hasPrefix("#"), digits.first?.isHexDigit == true,
            let number = UInt32(digits, radix: isHexadecimal ? 16 : 10),
            let scalar = Unicode.Scalar(number),
            number >= 0x20 || [0x09, 0x0A, 0x0D].contains(number), number & ~1 != 0xFFFE
        else { return nil }
        return String(Character(scalar))
    }

    // MARK: - Values

    private mutating func take(
        _ name: String, _ content: [UInt8], at start: Int
    ) throws(PropertyListError) {
        let text = String(decoding: content, as: UTF8.self)
        if name == "key" { return try builder.key(text, at: start) }
        if let value = XMLValue.value(of: name, text, content) {
            try builder.add(value, at: start)
        } else {
            let shown = text.count > 40 ? text.prefix(40) + "…" : text[...]
            try builder.fail("\"\(shown)\" is not \(XMLValue.article(name))", at: start)
        }
    }
}

// MARK: - Bytes

extension XMLPropertyListReader {
    /// `<?xml … ?>` at the beginning, which may name the encoding.
    private mutating func declaration() throws(PropertyListError) {
        guard starts("<?xml"), at + 5 < bytes.count, XMLValue.isBlank(bytes[at + 5]) else { return }
        let start = at
        while at < bytes.count, !starts("?>") { at += 1 }
        let text = String(decoding: bytes[start..<at], as: UTF8.self).lowercased()
        guard take("?>") else { throw broken("it ends within <?xml") }
        let words = text.split { "= \t\r\n\"'".contains($0) }
        guard let name = words.firstIndex(of: "encoding") else { return }
        let encoding = words.dropFirst(name + 1).first ?? ""
        guard ["utf-8", "utf8", "us-ascii", "ascii", "utf-16"].contains(encoding) else {
            throw broken(
                "it is in the encoding \(encoding); UTF-8 and UTF-16 can be read", at: start)
        }
    }

    /// Skips a comment or a processing instruction.
    /// - Returns: Whether there was one.
    private mutating func skip() throws(PropertyListError) -> Bool {
        let start = at
        if take("<!--") {
            while !starts("--") {
                guard at < bytes.count else { throw broken("a comment without end", at: start) }
                at += 1
            }
            guard take("-->") else { throw broken("-- in a comment") }
            return true
        }
        guard take("<?") else { return false }
        if starts("xml"), at + 3 < bytes.count, XMLValue.isBlank(bytes[at + 3]) {
            throw broken("<?xml behind the beginning", at: start)
        }
        while !take("?>") {
            guard at < bytes.count else { throw broken("an instruction without end", at: start) }
            at += 1
        }
        return true
    }

    private mutating func skipBlanks() {
        while at < bytes.count, XMLValue.isBlank(bytes[at]) { at += 1 }
    }

    private mutating func take(_ text: StaticString) -> Bool {
        guard starts(text) else { return false }
        at += text.utf8CodeUnitCount
        return true
    }

    private func starts(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { part in
            part.count <= bytes.count - at && part.indices.allSatisfy { bytes[at + $0] == part[$0] }
        }
    }

    private mutating func broken(_ what: String, at offset: Int? = nil) -> PropertyListError {
        .unreadable(what, at: builder.place(offset ?? at))
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
        default: byte >= 0x80
        }
    }
}
