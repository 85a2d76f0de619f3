// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// A signed-in device.
struct Device: Hashable, Sendable {
    var rights: DeviceRights
    /// The name that its owner gave it.
    var displayName: String
    /// The server's milliseconds since 1970.
    var createdMilliseconds: Int64
    /// When it was last seen, in milliseconds since 1970 by the server's clock, to about a minute.
    var seenMilliseconds: Int64
    /// Nil if it has not said what its clock shows.
    var clock: ClockMeasurement?
    /// The version of the client library that it last used; nil if it has not said.
    var version: String?

    var reference: DeviceReference { rights.reference }
}

extension Device {
    /// A device that is signed in just now.
    init(_ new: NewDevice, _ reference: DeviceReference, now: Int64) {
        rights = DeviceRights(
            reference: reference, stores: new.stores, expiresMilliseconds: new.expiresMilliseconds)
        displayName = new.displayName
        (createdMilliseconds, seenMilliseconds) = (now, now)
    }

    /// - Parameter row: Has the ``columns``. The name is in bytes.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading) throws(StorageError) {
        let reference = DeviceReference(account: try row.account(0), id: try row.device(1))
        rights = DeviceRights(
            reference: reference, stores: try StoreList.set(row.textIfAny(5)),
            expiresMilliseconds: row.isNull(6) ? nil : try row.time(6),
            limits: try AccountLimits(stored: row.textIfAny(10)),
            generation: try SealingState.generation(row, 11),
            announcedCheck: row.isNull(12) ? nil : Array(try row.bytes(12)))
        displayName = String(decoding: try row.bytes(2), as: UTF8.self)
        createdMilliseconds = try row.time(3)
        seenMilliseconds = try row.time(4)
        if !row.isNull(8) {
            clock = ClockMeasurement(
                aheadMilliseconds: try row.time(7), milliseconds: try row.time(8))
        }
        version = try row.textIfAny(9)
    }
}

/// By how much a device's clock was ahead of the server's.
struct ClockMeasurement: Hashable, Sendable {
    var aheadMilliseconds: Int64
    /// When that was, in milliseconds since 1970 by the server's clock.
    var milliseconds: Int64
}

/// A device to be signed in. The storage draws its ID.
struct NewDevice: Hashable, Sendable {
    var displayName: String
    var credential: SecretHash
    var devicesPerAccountMax: Int
    /// As ``DeviceRights/stores``. The terms of a code replace it.
    var stores: Set<StoreIdentifier>?
    /// As ``DeviceRights/expiresMilliseconds``. The terms of a code replace it.
    var expiresMilliseconds: Int64?
    /// The confined device that adds it, with which it ends; nil if the operator or another one does.
    var adder: DeviceID?

    /// - Parameters:
    ///   - count: The number of the account's devices that have not expired.
    ///   - added: How many of them confined devices have added.
    /// - Throws: ``StorageError/tooManyDevices(_:_:max:)``.
    func checkRoom(besides count: Int, added: Int) throws(StorageError) {
        guard count < devicesPerAccountMax else {
            throw .tooManyDevices("in this account", count, max: devicesPerAccountMax)
        }
        let addedMax = PairingRule.addedDevicesMax(of: devicesPerAccountMax)
        guard adder == nil || added < addedMax else {
            throw .tooManyDevices("that confined ones have added", added, max: addedMax)
        }
    }
}

/// Makes the name of a device fit for display: in one line that is not too long, with single spaces.
enum DeviceDisplayName {
    /// - Returns: The visible text, shortened if necessary; nil if nothing is left.
    static func fit(_ text: String) -> String? {
        let visible = text.unicodeScalars.filter { !$0.isControl }
        var displayName = String(String.UnicodeScalarView(visible))
            .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        while displayName.utf8.count > AccountName.bytesMax { displayName.removeLast() }
        return displayName.isEmpty ? nil : displayName
    }

    /// The name of a new device, which need not give one.
    static func ofNewDevice(_ text: String) -> String { fit(text) ?? "device" }
}

extension AccountID {
    static func random() -> AccountID { AccountID(rawValue: UInt64.random(in: 1 ... .max)) }
}

extension DeviceID {
    /// A random ID other than ``unassigned``.
    static func random() -> DeviceID {
        DeviceID(rawValue: UInt64.random(in: 1 ... .max))
    }
}

/// Last-seen information of devices that is not stored yet. Losing it does no harm.
struct LastSeenUpdate: Hashable, Sendable {
    /// In milliseconds since 1970 by the server's clock.
    var seenMilliseconds: [DeviceReference: Int64] = [:]
    /// The position up to which the device has said to have saved the store. Only what is of the
    /// store's history when it is stored counts: a database may have been replaced meanwhile.
    var passed: [DeviceStore: Position] = [:]
    var clocks: [DeviceReference: ClockMeasurement] = [:]
    var versions: [DeviceReference: String] = [:]

    struct DeviceStore: Hashable, Sendable {
        var device: DeviceReference
        var store: StoreReference
    }

    var isEmpty: Bool {
        seenMilliseconds.isEmpty && passed.isEmpty && clocks.isEmpty && versions.isEmpty
    }

    /// Divides it: each part is about at most so many devices, or has so many saved revisions.
    func parts(of max: Int) -> [LastSeenUpdate] {
        var parts: [LastSeenUpdate] = []
        var numbers: [DeviceReference: Int] = [:]
        /// All of one row is in one part.
        func note(_ device: DeviceReference, _ note: (inout LastSeenUpdate) -> Void) {
            let number = numbers[device] ?? numbers.count / max
            numbers[device] = number
            if number == parts.count { parts.append(LastSeenUpdate()) }
            note(&parts[number])
        }
        for (device, time) in seenMilliseconds {
            note(device) { $0.seenMilliseconds[device] = time }
        }
        for (device, clock) in clocks { note(device) { $0.clocks[device] = clock } }
        for (device, version) in versions { note(device) { $0.versions[device] = version } }
        for (number, saved) in passed.enumerated() {
            if number.isMultiple(of: max) { parts.append(LastSeenUpdate()) }
            parts[parts.count - 1].passed[saved.key] = saved.value
        }
        return parts
    }

    /// Adds what was learnt before, where this has nothing newer.
    mutating func add(older: LastSeenUpdate) {
        seenMilliseconds.merge(older.seenMilliseconds) { newer, _ in newer }
        passed.merge(older.passed) { newer, _ in newer }
        clocks.merge(older.clocks) { newer, _ in newer }
        versions.merge(older.versions) { newer, _ in newer }
    }
}
