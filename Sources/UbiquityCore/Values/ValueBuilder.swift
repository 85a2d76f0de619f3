// SPDX-License-Identifier: Apache-2.0

/// Builds a value from the parts that a reader of text finds one after the other, within bounds.
///
/// A part that no store can hold spoils the entry of the root dictionary that it is in. If the caller
/// wants to know such entries, reading goes on behind it; otherwise it is an error.
struct ValueBuilder {
    typealias Unsupported = (ExactString, UnsupportedValue) -> Void

    /// The maximum number of values in a file.
    static let partsMax = 1 << 20

    private struct Container {
        let isDictionary: Bool
        var values: [PropertyListValue] = []
        var entries: [ExactString: PropertyListValue] = [:]
        var key: ExactString?
    }

    private let depthMax: Int
    private let unsupported: Unsupported?
    private var places: PlaceFinder
    private var stack: [Container] = []
    private var parts = 0
    /// The defect of the entry of the root that is being read.
    private var fault: UnsupportedValue?
    /// The number of open containers below the maximum depth, which are not kept.
    private var ignored = 0
    private var leftOut: Set<ExactString> = []

    /// The value, once it is complete.
    private(set) var root: PropertyListValue?
    /// The beginnings of the root's entries, by key.
    private(set) var offsets: [ExactString: Int] = [:]

    init(_ bytes: [UInt8], depthMax: Int, unsupported: Unsupported?) {
        self.depthMax = depthMax
        self.unsupported = unsupported
        places = PlaceFinder(bytes)
    }

    /// Whether a value can come next: there is a key for it, if it needs one.
    var takesValue: Bool {
        guard ignored == 0, let top = stack.last else { return ignored > 0 || root == nil }
        return !top.isDictionary || top.key != nil
    }

    /// Whether the key of the next value says that it is a real number, in the exact form.
    var isReal: Bool { stack.last?.key.map { ["real", "date"].contains($0) } ?? false }

    /// Whether a key stands without its value.
    var hasKey: Bool { ignored == 0 && stack.last?.key != nil }

    mutating func place(_ offset: Int) -> PropertyListPlace { places.place(offset) }

    mutating func begin(isDictionary: Bool, at offset: Int) throws(PropertyListError) {
        try count(offset)
        guard ignored == 0, stack.count < depthMax else {
            if ignored == 0 { try spoil(PropertyListValue.depthRule, at: offset) }
            ignored += 1
            return
        }
        stack.append(Container(isDictionary: isDictionary))
    }

    /// Takes the key of the next value. A key that stands twice spoils its entry: nobody knows which
    /// of the values was meant.
    mutating func key(_ text: String, at offset: Int) throws(PropertyListError) {
        guard ignored == 0, let top = stack.indices.last else { return }
        let key = ExactString(text)
        stack[top].key = key
        if top == 0 { offsets[key] = offset }
        let isLeftOut = top == 0 && leftOut.contains(key)
        guard stack[top].entries[key] != nil || isLeftOut else { return }
        try spoil(PropertyListValue.keyTwice, at: offset)
    }

    mutating func add(_ value: PropertyListValue, at offset: Int) throws(PropertyListError) {
        try count(offset)
        guard ignored == 0 else { return }
        if stack.count >= depthMax { try spoil(PropertyListValue.depthRule, at: offset) }
        put(value)
    }

    /// Replaces an entry without a valid value.
    /// - Parameter reason: What is wrong with it, as a sentence without a final full stop.
    mutating func fail(_ reason: String, at offset: Int) throws(PropertyListError) {
        try count(offset)
        guard ignored == 0 else { return }
        try spoil(reason, at: offset)
        put(.boolean(false))
    }

    mutating func end() {
        if ignored > 0 {
            ignored -= 1
            if ignored == 0 { put(.boolean(false)) }
        } else if let top = stack.popLast() {
            put(top.isDictionary ? .dictionary(top.entries) : .array(top.values))
        }
    }

    private mutating func put(_ value: PropertyListValue) {
        guard let top = stack.indices.last else { return root = value }
        guard stack[top].isDictionary else { return stack[top].values.append(value) }
        guard let key = stack[top].key else { return }
        stack[top].key = nil
        guard top == 0, let fault else { return stack[top].entries[key] = value }
        self.fault = nil
        stack[top].entries[key] = nil
        if leftOut.insert(key).inserted { unsupported?(key, fault) }
    }

    private mutating func spoil(_ reason: String, at offset: Int) throws(PropertyListError) {
        guard fault == nil else { return }
        let keepsOn = unsupported != nil && stack.first?.isDictionary == true
        var value = UnsupportedValue(reason, place: places.place(offset))
        for container in stack.dropFirst(keepsOn ? 1 : 0).reversed() {
            value =
                container.key.map { value.within(key: $0.string) }
                ?? value.within(index: container.values.count)
        }
        guard keepsOn else { throw .unsupported(value) }
        fault = value
    }

    private mutating func count(_ offset: Int) throws(PropertyListError) {
        parts += 1
        guard parts <= Self.partsMax else {
            throw .unreadable("it has more than \(Self.partsMax) values", at: place(offset))
        }
    }
}

extension PropertyListValue {
    static let keyTwice = "the key stands twice in one dictionary"
}
