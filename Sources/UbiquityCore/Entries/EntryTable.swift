// SPDX-License-Identifier: Apache-2.0

/// The entries of a store, which of them are not on disk yet, and the state derived from all of
/// them.
///
/// An app's calls wait for it: one look-up finds a key, and everything else is done in place.
struct EntryTable: Sendable {
    private struct Slot: Sendable {
        let key: Key
        /// A copy of what the app sees, so that reading it copies a value rather than an entry. It
        /// is next to the key, which a look-up has just compared.
        var value: PropertyListValue?
        var entry = Entry()
        /// The key has parts: what the app sees is made of all of them.
        var hasParts = false
        /// What the disk has, if the entry differs from the disk.
        var base: Base?
        /// Whether a save of it is under way.
        var isSaving = false

        var stored: StoredEntry {
            StoredEntry(
                key: key, confirmed: entry.confirmed, pending: entry.pending,
                wasUnkept: entry.wasUnkept)
        }
    }

    /// In a box because few entries have one, and memory that is not touched costs no time.
    fileprivate final class Base: Sendable {
        let confirmed: Record?
        let pending: PendingWrite?

        init(_ confirmed: Record?, _ pending: PendingWrite?) {
            self.confirmed = confirmed
            self.pending = pending
        }
    }

    /// An entry being saved, and what the disk still has if the save fails.
    struct Saving: Sendable {
        fileprivate var slot: Int
        fileprivate var base: Base
    }

    /// The place of each key in ``slots``.
    private var index = KeyIndex()
    private var slots: [Slot] = []
    /// The slots that became unsaved. Some may have become equal to the disk since.
    private var unsaved: [Int] = []
    private var unsavedCount = 0
    /// The number of slots with empty entries.
    private var emptyCount = 0
    private(set) var usage = Usage()
    /// The usage of the confirmed records, including those hidden by a waiting write, and the
    /// weight of the tombstones among them.
    private(set) var agreed = Usage()
    private(set) var tombstones = 0
    /// The keys with a write that waits for the server.
    private(set) var waiting: Set<Key> = []

    /// The keys that have parts.
    private var mergeStates: [ExactString: Members] = [:]
    /// The keys with parts that changed, and what the app saw before.
    private var touched: [Key: PropertyListValue?] = [:]
    /// The merge rules of the app.
    private var rules: [ExactString: Rule] = [:]
    /// Whether the account is sealed, see ``MergeState/isSealed``.
    var isSealed = false
    /// The keys with values that wait for a deferred rule.
    private var undecided: [Key: Undecided] = [:]

    private struct Rule: Sendable {
        var resolver: Resolver
        /// Whether the table does not call it: see ``takeConflict()``.
        var isDeferred = true
        /// The last conflict that it resolved, and the result.
        var decision: (values: [ConcurrentValue], result: PropertyListValue)?
    }

    private struct Undecided: Sendable {
        /// The reason of the notification that follows the decision; nil for none.
        var reason: Notice.Reason?
        /// Whether the rule is being called.
        var isTaken = false

        /// The values have changed once more: the rule must be called again. An own write does not
        /// hide what others have written, nor does a later change hide a first download.
        func again(_ later: Notice.Reason?) -> Self {
            switch later {
            case nil, .ownWrite: Self(reason: reason ?? later)
            case .serverChange where reason != .ownWrite: Self(reason: reason ?? later)
            default: Self(reason: later)
            }
        }
    }

    private struct Members: Sendable {
        /// The slots of parts with a value. There may be thousands more with tombstones.
        private(set) var parts: [Int] = []
        private var places: [Int: Int] = [:]
        /// The key's own value. Its slot holds what the app sees.
        var own: PropertyListValue?

        init(own: PropertyListValue?) { self.own = own }

        mutating func add(_ slot: Int) {
            places[slot] = parts.count
            parts.append(slot)
        }

        mutating func remove(_ slot: Int) {
            guard let place = places.removeValue(forKey: slot), let last = parts.popLast(),
                last != slot
            else { return }
            parts[place] = last
            places[last] = place
        }
    }

    init() {}

    /// Makes a table of a disk's entries, all of them saved. Does the same as
    /// ``update(_:saves:_:)`` for each entry, except for what only a change needs.
    init(disk: [StoredEntry]) { self.init(disk: disk, rules: [:]) }

    private init(disk: [StoredEntry], rules: [ExactString: Rule]) {
        self.rules = rules
        index = KeyIndex(capacity: disk.count)
        slots.reserveCapacity(disk.count)
        for stored in disk { load(stored) }
        refreshViews()
    }

    private mutating func load(_ stored: StoredEntry) {
        // A damaged disk may hold a key twice; the last one wins.
        let number = slotNumber(of: stored.key)
        let waited = slots[number].entry.waits
        let wasEmpty = slots[number].entry.isEmpty
        noteAgreed(stored.key, stored.confirmed, before: slots[number].entry.confirmed)
        slots[number].entry.confirmed = stored.confirmed
        slots[number].entry.pending = stored.pending
        slots[number].entry.wasUnkept = stored.wasUnkept
        noteEmpty(slots[number].entry.isEmpty, before: wasEmpty)
        noteWaiting(stored.key, slots[number].entry.waits, before: waited)
        show(slots[number].entry.visible?.value, at: number)
    }

    // MARK: - Reading

    subscript(key: Key) -> Entry? { number(of: key).map { slots[$0].entry } }

    /// The value of a key that the app sees.
    func value(_ key: Key) -> PropertyListValue? {
        guard let number = number(of: key) else { return nil }
        return slots[number].value
    }

    /// The own value of a key, or of a part, which an app never sees alone.
    func content(_ key: Key) -> PropertyListValue? {
        guard let number = number(of: key) else { return nil }
        return slots[number].hasParts
            ? slots[number].entry.visible?.value : slots[number].value
    }

    /// The ``PendingWrite/had`` of a write that replaces the entry. The server may have the waiting
    /// write, or what that one replaced, but only if it was sent, and only writes on disk are.
    func had(_ key: Key) -> Stamp? {
        guard let number = number(of: key) else { return nil }
        if case .some(.value) = slots[number].entry.confirmed?.content {
            return slots[number].entry.confirmed?.stamp.withoutDigest
        }
        return slots[number].base == nil
            ? slots[number].entry.pending?.passedOn : slots[number].entry.pending?.had
    }

    /// The transaction of the waiting write; nil if there is none.
    func transaction(of key: Key) -> UInt64? {
        number(of: key).flatMap { slots[$0].entry.pending?.transaction }
    }

    /// All values that the app sees.
    var values: [Key: PropertyListValue] {
        var values: [Key: PropertyListValue] = [:]
        values.reserveCapacity(usage.keys)
        for slot in slots where !slot.key.isPart { values[slot.key] = slot.value }
        return values
    }

    /// The values that the app would see of these records. Calls the app's rules.
    func values(of records: some Sequence<Record>) -> [Key: PropertyListValue] {
        EntryTable(
            disk: records.map { StoredEntry(key: $0.key, confirmed: $0) },
            rules: rules.mapValues { Rule(resolver: $0.resolver, isDeferred: false) }
        ).values
    }

    /// The value of each record by its own key.
    var contents: [Key: PropertyListValue] {
        var values: [Key: PropertyListValue] = [:]
        for slot in slots { values[slot.key] = slot.entry.visible?.value }
        return values
    }

    var all: some Sequence<(key: Key, entry: Entry)> { slots.lazy.map { ($0.key, $0.entry) } }

    // MARK: - Changing

    /// Changes an entry and updates everything derived from it.
    /// - Parameter saves: Whether the change must be saved to disk.
    /// - Returns: Whether the app sees a different value now. For a key with parts, call
    ///   ``refreshViews()`` after all changes made at once.
    @discardableResult
    mutating func update(
        _ key: Key, saves: Bool = true, _ change: (inout Entry) -> Void
    ) -> Bool {
        let number = slotNumber(of: key)
        let old = slots[number].entry
        var entry = old
        change(&entry)
        slots[number].entry = entry
        noteEmpty(entry.isEmpty, before: old.isEmpty)
        if entry.confirmed != old.confirmed {
            noteAgreed(key, entry.confirmed, before: old.confirmed)
        }
        // A record that is already known is not saved again.
        if saves, (entry.confirmed, entry.pending) != (old.confirmed, old.pending) {
            noteUnsaved(number, base: old.confirmed, old.pending)
        }
        noteWaiting(key, entry.waits, before: old.waits)
        return show(entry.visible?.value, at: number)
    }

    /// - Returns: Whether the app sees a different value now.
    @discardableResult
    private mutating func show(_ value: PropertyListValue?, at number: Int) -> Bool {
        guard !slots[number].hasParts, !slots[number].key.isPart else {
            noteMember(value, at: number)
            return false
        }
        guard slots[number].value != value else { return false }
        usage.replace(slots[number].value, by: value, of: slots[number].key)
        slots[number].value = value
        return true
    }

    /// Adds a write that the app just made. A faster ``update(_:saves:_:)`` for this one case.
    mutating func write(_ write: PendingWrite) {
        let key = write.record.key
        let number = slotNumber(of: key)
        let waited = slots[number].entry.waits
        noteEmpty(false, before: slots[number].entry.isEmpty)
        // Not copied without need.
        if slots[number].base == nil {
            noteUnsaved(number, base: slots[number].entry.confirmed, slots[number].entry.pending)
        }
        slots[number].entry.pending = write
        slots[number].entry.isAcknowledged = false
        if write.isUnkept { slots[number].entry.wasUnkept = true }
        noteWaiting(key, true, before: waited)
        show(write.record.content.value, at: number)
    }

    private mutating func slotNumber(of key: Key) -> Int {
        if let number = number(of: key) { return number }
        index.add(slots.count, key.quickHash(index.seed))
        slots.append(Slot(key: key))
        emptyCount += 1
        let number = slots.count - 1
        if key.isPart { makeMergeState(of: key.whole) }
        return number
    }

    /// Compares a key without a part field by field: an app's calls wait, and copying a key counts
    /// references.
    @inline(__always)
    private func number(of key: Key) -> Int? {
        guard key.isPart else {
            return index.find(key.name.quickHash(index.seed)) {
                !slots[$0].key.isPart && slots[$0].key.name == key.name
            }
        }
        return index.find(key.quickHash(index.seed)) { slots[$0].key == key }
    }

    private mutating func noteEmpty(_ isEmpty: Bool, before wasEmpty: Bool) {
        if isEmpty != wasEmpty { emptyCount += isEmpty ? 1 : -1 }
    }

    private mutating func noteAgreed(_ key: Key, _ record: Record?, before: Record?) {
        agreed.replace(before?.content.value, by: record?.content.value, of: key)
        let weight = key.tombstoneWeight
        if before?.content == .deleted { tombstones -= weight }
        if record?.content == .deleted { tombstones += weight }
    }

    private mutating func noteWaiting(_ key: Key, _ waits: Bool, before: Bool) {
        guard waits != before else { return }
        if waits {
            waiting.insert(key)
        } else {
            waiting.remove(key)
        }
    }

    // MARK: - The disk

    var isSaved: Bool { unsavedCount == 0 }

    /// Whether the disk has the key as it is in memory.
    func isSaved(_ key: Key) -> Bool {
        number(of: key).map { slots[$0].base == nil && !slots[$0].isSaving } ?? true
    }

    /// The pending write that the disk has, for a key that differs from the disk; nil if it does
    /// not differ.
    func base(of key: Key) -> PendingWrite?? {
        number(of: key).flatMap { slots[$0].base.map { $0.pending } }
    }

    /// Compares a key with the disk's current content.
    mutating func compare(_ key: Key, with disk: StoredEntry) {
        let number = slotNumber(of: key)
        let entry = slots[number].entry
        if slots[number].base != nil {
            slots[number].base = nil
            unsavedCount -= 1
        }
        if (entry.confirmed, entry.pending, entry.wasUnkept)
            != (disk.confirmed, disk.pending, disk.wasUnkept)
        {
            noteUnsaved(number, base: disk.confirmed, disk.pending)
        }
    }

    /// The keys that differ from the disk.
    var unsavedKeys: [Key] {
        unsaved.compactMap { slots[$0].base == nil ? nil : slots[$0].key }
    }

    /// Forgets what the server has sent since the disk was last saved, for a process that does not
    /// lead. What the app wrote stays, and what was taken for agreed waits again.
    mutating func forgetReceived() {
        for key in unsavedKeys {
            guard let number = number(of: key), let base = slots[number].base,
                base.confirmed != slots[number].entry.confirmed
            else { continue }
            update(key, saves: false) { entry in
                entry.confirmed = base.confirmed
                if entry.pending == nil { entry.pending = base.pending }
                entry.isAcknowledged = false
            }
            compare(
                key,
                with: StoredEntry(
                    key: key, confirmed: base.confirmed, pending: base.pending,
                    wasUnkept: slots[number].entry.wasUnkept))
        }
    }

    private mutating func noteUnsaved(
        _ number: Int, base confirmed: Record?, _ pending: PendingWrite?
    ) {
        guard slots[number].base == nil else { return }
        slots[number].base = Base(confirmed, pending)
        unsaved.append(number)
        unsavedCount += 1
    }

    /// Begins to save everything that is unsaved.
    mutating func beginSave() -> (entries: [StoredEntry], saving: [Saving]) {
        var entries: [StoredEntry] = []
        var saving: [Saving] = []
        entries.reserveCapacity(unsavedCount)
        saving.reserveCapacity(unsavedCount)
        for number in unsaved {
            guard let base = slots[number].base else { continue }
            slots[number].base = nil
            slots[number].isSaving = true
            let slot = slots[number]
            saving.append(Saving(slot: number, base: base))
            entries.append(slot.stored)
        }
        unsaved.removeAll(keepingCapacity: true)
        unsavedCount = 0
        return (entries, saving)
    }

    /// - Parameter emptyMax: Empty entries are dropped when there are more than this, and more than
    ///   half of all.
    mutating func finishSave(_ saving: [Saving], emptyMax: Int) {
        for entry in saving { slots[entry.slot].isSaving = false }
        if emptyCount > emptyMax, emptyCount > slots.count / 2, isSaved { dropEmpty() }
    }

    /// Call only when everything is saved: the table is rebuilt as if read from disk.
    private mutating func dropEmpty() {
        refreshViews()
        let kept = slots.filter { !$0.entry.isEmpty }
        let acknowledged = kept.filter { $0.entry.isAcknowledged }.map { $0.key }
        let undecided = undecided.map { ($0, value($0), $1) }
        let isSealed = isSealed
        self = EntryTable(
            disk: kept.map { $0.stored }, rules: rules)
        self.isSealed = isSealed
        for key in acknowledged { update(key, saves: false) { $0.isAcknowledged = true } }
        for (key, value, waiting) in undecided {
            if let number = number(of: key) { slots[number].value = value }
            self.undecided[key] = waiting
        }
    }

    /// The number of entries, empty ones included.
    var count: Int { slots.count }

    /// Marks what a failed save was to write as unsaved again.
    mutating func undoSave(_ saving: [Saving]) {
        for entry in saving {
            slots[entry.slot].isSaving = false
            noteUnsaved(entry.slot, base: entry.base.confirmed, entry.base.pending)
            // If it changed meanwhile, the older base stays: it is what the disk has.
            slots[entry.slot].base = entry.base
        }
    }

    // MARK: - Keys with parts

    func hasParts(_ key: Key) -> Bool { !mergeStates.isEmpty && mergeStates[key.name] != nil }

    func mergeState(_ key: Key) -> MergeState {
        let parts = (mergeStates[key.name]?.parts ?? []).compactMap { slot in
            record(slots[slot].entry).map { MergeState.Part(id: slots[slot].key.part!, $0) }
        }
        return MergeState(
            base: number(of: key).flatMap { record(slots[$0].entry) }, parts: parts,
            isSealed: isSealed)
    }

    /// The visible value of an entry and its stamp; nil if there is none.
    private func record(_ entry: Entry) -> ConcurrentValue? {
        guard let record = entry.pending?.record ?? entry.confirmed,
            let value = record.content.value
        else { return nil }
        return ConcurrentValue(value: value, stamp: record.stamp)
    }

    /// - Parameter resolver: Nil removes the rule.
    mutating func setResolver(_ resolver: Resolver?, for key: Key) {
        rules[key.name] = resolver.map { Rule(resolver: $0) }
        refreshView(of: key, nil)
    }

    func resolver(of key: Key) -> Resolver? { rules[key.name]?.resolver }

    /// Takes over the rule of another table, which may be deferred.
    mutating func adoptRule(of key: Key, from other: EntryTable) {
        rules[key.name] = other.rules[key.name]
        refreshView(of: key, .accountChange)
    }

    /// Whether values wait for a deferred rule that nobody calls yet.
    var hasConflict: Bool { !undecided.isEmpty && undecided.values.contains { !$0.isTaken } }

    /// The next values to merge by a deferred rule, which the app sees as before until
    /// ``decide(_:as:)`` is called. Nil if there are none, or all were taken.
    mutating func takeConflict() -> Conflict? {
        guard let key = undecided.filter({ !$0.value.isTaken }).keys.min(),
            let rule = rules[key.name]
        else { return nil }
        undecided[key]?.isTaken = true
        return Conflict(key: key, values: mergeState(key).conflict, rule: rule.resolver)
    }

    /// The values that the app's value of a key was made of; nil for all that there are.
    func shown(of key: Key) -> [PropertyListValue]? {
        guard let rule = rules[key.name], rule.isDeferred, hasParts(key) else { return nil }
        let values = mergeState(key).conflict
        guard !values.isEmpty, rule.decision?.values != values else { return nil }
        guard let decision = rule.decision, decision.result == value(key) else { return [] }
        return decision.values.map { $0.value }
    }

    /// Shows what a deferred rule has made of its values, unless they have changed since or
    /// another thread has decided.
    /// - Returns: The reason of the notification; nil if the app needs none.
    mutating func decide(_ conflict: Conflict, as result: PropertyListValue) -> Notice.Reason? {
        let key = conflict.key
        guard let waiting = undecided[key], mergeState(key).conflict == conflict.values else {
            return nil
        }
        rules[key.name]?.decision = (conflict.values, result)
        return refreshView(of: key, nil) ? waiting.reason : nil
    }

    @discardableResult
    private mutating func refreshView(of key: Key, _ reason: Notice.Reason?) -> Bool {
        if hasParts(key), let number = number(of: key) { touch(number) }
        return refreshViews(reason).contains(key)
    }

    /// The value of a key with parts that the app is to see.
    private mutating func view(
        of key: Key, at number: Int, _ reason: Notice.Reason?
    ) -> PropertyListValue? {
        let state = mergeState(key)
        let earlier = undecided.removeValue(forKey: key)
        guard let rule = rules[key.name], rule.isDeferred else {
            return state.value(rules[key.name]?.resolver)
        }
        let values = state.conflict
        guard !values.isEmpty else { return state.value(nil) }
        if let decision = rule.decision, decision.values == values { return decision.result }
        undecided[key] = earlier?.again(reason) ?? Undecided(reason: reason)
        return slots[number].value ?? state.value(nil)
    }

    /// Updates the visible values of all keys with changed parts.
    /// - Parameter reason: The reason of the notification of values that wait for a deferred rule;
    ///   nil for none.
    /// - Returns: The keys whose value changed for the app.
    @discardableResult
    mutating func refreshViews(_ reason: Notice.Reason? = .serverChange) -> Set<Key> {
        guard !touched.isEmpty else { return [] }
        var changed: Set<Key> = []
        for (key, before) in touched {
            guard let number = number(of: key) else { continue }
            slots[number].value = view(of: key, at: number, reason)
            if slots[number].value != before { changed.insert(key) }
        }
        touched = [:]
        return changed
    }

    /// Whether no other process can know of it. An entry of a dictionary has a name that others may
    /// have written too.
    func isNew(_ key: Key) -> Bool {
        if let part = key.part, part.policy == .dictionary, !part.isHiddenEntry { return false }
        guard let number = number(of: key) else { return true }
        let slot = slots[number]
        return slot.entry.confirmed == nil && !slot.isSaving
            && slot.base.map { $0.pending == nil } ?? (slot.entry.pending == nil)
    }

    private mutating func makeMergeState(of key: Key) {
        let number = slotNumber(of: key)
        if !slots[number].hasParts {
            slots[number].hasParts = true
            mergeStates[key.name] = Members(own: slots[number].value)
        }
    }

    /// Updates the bookkeeping for the new value of a part, or of a key with parts.
    private mutating func noteMember(_ value: PropertyListValue?, at number: Int) {
        let key = slots[number].key
        if key.isPart {
            usage.replace(slots[number].value, by: value, of: key)
            switch (slots[number].value == nil, value == nil) {
            case (true, false): mergeStates[key.name]?.add(number)
            case (false, true): mergeStates[key.name]?.remove(number)
            case (true, true), (false, false): break
            }
            slots[number].value = value
        } else {
            usage.replace(mergeStates[key.name]?.own, by: value, of: key)
            mergeStates[key.name]?.own = value
        }
        if let whole = self.number(of: key.whole) { touch(whole) }
    }

    private mutating func touch(_ number: Int) {
        let key = slots[number].key
        if touched[key] == nil { touched[key] = .some(slots[number].value) }
    }
}

extension Sequence<Record> {
    /// The values that an app without merge rules of its own sees of these records.
    package var visibleValues: [Key: PropertyListValue] {
        EntryTable().values(of: self)
    }
}
