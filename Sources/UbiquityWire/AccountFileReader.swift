// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Reads the file of an account in pieces, with one of its stores at a time in memory. The last
/// record of a key wins. Ignores fields that it does not know, and histories, which are for
/// people.
package struct AccountFileReader: Sendable {
    package struct Store: Sendable {
        package var identifier: StoreIdentifier
        package var entries: [ExactString: PropertyListValue]
    }

    /// The most bytes and elements of a store's records that are kept. Data of the most bytes that a
    /// device may have fits in.
    private static let bytesMax = 128 << 20
    private static let elementsMax = 2 << 20
    private static let storesMax = 1 << 16
    /// The most bytes of any other field that is read.
    private static let fieldBytesMax = 1 << 20

    /// The lists and objects that are read element by element, each within the one before.
    private enum Level {
        case root, stores, store, records

        var isList: Bool { self == .stores || self == .records }
    }

    private enum Place {
        case beginning
        /// Before the first or a further field of an object or element of a list.
        case item(isFirst: Bool)
        case colon
        case value
        case leaf
        /// After an item.
        case next
        case end
    }

    private enum Leaf {
        case name, format, account, identifier, record, ignored
    }

    private let keepsValues: Bool
    private var place = Place.beginning
    private var level = Level.root
    private var leaf = Leaf.ignored
    /// The open brackets of the leaf that is being read, and its strings.
    private var depth = 0
    private var texts = JSONTexts()
    /// The bytes of the leaf, unless it is ignored.
    private var kept: [UInt8] = []
    private var name = ""
    private var isKnown = false
    private var hasStores = false
    private var identifiers: Set<StoreIdentifier> = []
    private var identifier: StoreIdentifier?
    private var entries: [ExactString: PropertyListValue] = [:]
    private var storeBytes = 0
    private var storeElements = 0
    /// The number of bytes so far.
    package private(set) var bytes = 0
    package private(set) var accountName = ""

    /// - Parameter keepsValues: False to check only whether a file is whole.
    package init(keepsValues: Bool = true) { self.keepsValues = keepsValues }

    /// The size of the beginning that ``isAccount(_:)`` needs.
    package static let beginningBytes = 256

    /// Whether bytes are the file of an account, judged by their beginning.
    package static func isAccount(_ beginning: some Sequence<UInt8>) -> Bool {
        let start = beginning.prefix(beginningBytes).filter { !$0.isBlank }
        return start.starts(with: #"{"format":"ubiquity-account-"#.utf8)
    }

    /// - Returns: The stores that end in this piece.
    /// - Throws: ``AccountFileError`` as soon as this cannot become a whole file.
    package mutating func take(_ piece: some Sequence<UInt8>) throws(AccountFileError) -> [Store] {
        var stores: [Store] = []
        for byte in piece {
            bytes += 1
            if case .leaf = place {
                if try takeLeaf(byte) { continue }
            }
            if !byte.isBlank { try take(byte, &stores) }
        }
        return stores
    }

    /// Must be called after the last piece.
    package func finish() throws(AccountFileError) {
        guard case .end = place else { throw isKnown ? .incomplete : .notAccount }
    }

    private var malformed: AccountFileError {
        isKnown ? .malformed(offset: bytes - 1) : .notAccount
    }

    private mutating func take(
        _ byte: UInt8, _ stores: inout [Store]
    ) throws(AccountFileError) {
        switch (place, byte) {
        case (.beginning, UInt8(ascii: "{")): place = .item(isFirst: true)
        case (.item(isFirst: true), UInt8(ascii: "]")), (.next, UInt8(ascii: "]")):
            guard level.isList else { throw malformed }
            level = level == .records ? .store : .root
            place = .next
        case (.item(isFirst: true), UInt8(ascii: "}")), (.next, UInt8(ascii: "}")):
            guard !level.isList else { throw malformed }
            try endObject(&stores)
        case (.next, UInt8(ascii: ",")): place = .item(isFirst: false)
        case (.item, UInt8(ascii: "\"")) where !level.isList: try begin(.name, byte)
        case (.item, UInt8(ascii: "{")) where level == .stores:
            (level, place) = (.store, .item(isFirst: true))
            (identifier, entries, storeBytes, storeElements) = (nil, [:], 0, 0)
        case (.item, UInt8(ascii: "{")) where level == .records: try begin(.record, byte)
        case (.colon, UInt8(ascii: ":")): place = .value
        case (.value, _): try beginValue(byte)
        default: throw malformed
        }
    }

    /// Begins the value of a field.
    private mutating func beginValue(_ byte: UInt8) throws(AccountFileError) {
        switch (level, name) {
        case (.root, "stores"), (.store, "records"):
            guard byte == UInt8(ascii: "["), level == .store || !hasStores else { throw malformed }
            hasStores = true
            (level, place) = (level == .root ? .stores : .records, .item(isFirst: true))
        case (.root, "format"): try begin(.format, byte)
        case (.root, "account"): try begin(.account, byte)
        case (.store, "identifier"): try begin(.identifier, byte)
        default: try begin(.ignored, byte)
        }
    }

    private mutating func endObject(_ stores: inout [Store]) throws(AccountFileError) {
        guard level == .store else {
            guard isKnown, hasStores else { throw malformed }
            place = .end
            return
        }
        guard let identifier else { throw malformed }
        guard identifiers.insert(identifier).inserted else { throw .twice(identifier.string) }
        guard identifiers.count <= Self.storesMax else { throw .tooLarge("the list of stores") }
        stores.append(Store(identifier: identifier, entries: entries))
        entries = [:]
        (level, place) = (.stores, .next)
    }

    // MARK: - Leaves

    private mutating func begin(_ kind: Leaf, _ byte: UInt8) throws(AccountFileError) {
        (place, leaf, depth, texts) = (.leaf, kind, 0, JSONTexts())
        kept.removeAll(keepingCapacity: kind == .record)
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"), UInt8(ascii: "}"):
            throw malformed
        default: _ = try takeLeaf(byte)
        }
    }

    /// - Returns: False if the leaf ended before this byte.
    private mutating func takeLeaf(_ byte: UInt8) throws(AccountFileError) -> Bool {
        var isLast = false
        if texts.take(byte) {
            isLast = depth == 0 && !texts.isOpen
        } else {
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                storeElements += leaf == .record ? 1 : 0
            case UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","):
                if depth == 0 {
                    try endLeaf()
                    return false
                }
                if byte == UInt8(ascii: ",") {
                    storeElements += leaf == .record ? 1 : 0
                } else {
                    depth -= 1
                    isLast = depth == 0
                }
            default:
                if depth == 0, byte.isBlank { isLast = true }
            }
        }
        try keep(byte)
        if isLast { try endLeaf() }
        return true
    }

    private mutating func keep(_ byte: UInt8) throws(AccountFileError) {
        switch leaf {
        case .ignored: return
        case .record:
            guard keepsValues else { return }
            storeBytes += 1
            guard storeBytes <= Self.bytesMax, storeElements <= Self.elementsMax else {
                throw .tooLarge("a store (\(identifier?.string ?? ""))")
            }
        case .name, .format, .account, .identifier:
            guard kept.count < Self.fieldBytesMax else { throw malformed }
        }
        kept.append(byte)
    }

    private mutating func endLeaf() throws(AccountFileError) {
        place = .next
        switch leaf {
        case .ignored: break
        case .name:
            name = try text()
            guard isKnown || name == "format" else { throw .notAccount }
            place = .colon
        case .format:
            let format = try text()
            guard format == AccountFileWriter.format else {
                throw format.hasPrefix("ubiquity-account-") ? .newer : .notAccount
            }
            isKnown = true
        case .account:
            let account: WireAccount
            do { account = try WireFormat.json.decode(WireAccount.self, from: kept) } catch {
                throw malformed
            }
            accountName = account.name
        case .identifier:
            guard identifier == nil, let found = try? StoreIdentifier(try text()) else {
                throw malformed
            }
            identifier = found
        case .record: if keepsValues { try takeRecord() }
        }
    }

    private func text() throws(AccountFileError) -> String {
        // The decoder knows texts in messages only.
        let message = Array(#"{"key":"#.utf8) + kept + Array("}".utf8)
        do {
            return try WireFormat.json.decode(WireDictionary.Entry.self, from: message).key
        } catch { throw malformed }
    }

    private mutating func takeRecord() throws(AccountFileError) {
        let key: ExactString
        let value: PropertyListValue?
        do {
            let entry = try WireFormat.json.decode(WireDictionary.Entry.self, from: kept)
            key = ExactString(entry.key)
            value = entry.hasValue ? try PropertyListValue(entry.value) : nil
            if case .sealed = value {
                throw WireError(
                    "its value is sealed; export the account on a device that has its key")
            }
        } catch { throw .recordInvalid(store: identifier?.string ?? "", reason: "\(error)") }
        entries[key] = value
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
