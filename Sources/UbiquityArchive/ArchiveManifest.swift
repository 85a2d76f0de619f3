// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The manifest of an account's archive, `manifest.plist`.
package struct ArchiveManifest: Hashable, Sendable {
    package struct Store: Hashable, Sendable {
        package var identifier: StoreIdentifier
        /// The file's name in the archive.
        package var file: String
        package var keys: Int
        /// The size of its values, counted like the limits.
        package var bytes: Int

        package init(identifier: StoreIdentifier, file: String, keys: Int, bytes: Int) {
            self.identifier = identifier
            self.file = file
            self.keys = keys
            self.bytes = bytes
        }
    }

    package struct Device: Hashable, Sendable {
        package var id: String
        package var name: String
        /// The server's milliseconds since 1970; the same for ``seen``.
        package var created: Int64
        package var seen: Int64

        package init(id: String, name: String, created: Int64, seen: Int64) {
            self.id = id
            self.name = name
            self.created = created
            self.seen = seen
        }
    }

    package static let fileName = "manifest.plist"
    /// The archive format that this program writes, and the newest that it reads.
    package static let format: Int64 = 1

    /// When the archive was made, in milliseconds since 1970.
    package var made: Int64
    package var accountID: String
    package var accountName: String
    package var stores: [Store]
    package var devices: [Device]

    package init(
        made: Int64, accountID: String, accountName: String, stores: [Store], devices: [Device]
    ) {
        self.made = made
        self.accountID = accountID
        self.accountName = accountName
        self.stores = stores
        self.devices = devices
    }
}

extension ArchiveManifest {
    var propertyList: PropertyListValue {
        .dictionary([
            "format": .integer(Self.format), "made": .date(Self.seconds(made)),
            "account": .dictionary(["id": .string(accountID), "name": .string(accountName)]),
            "stores": .array(
                stores.map {
                    .dictionary([
                        "identifier": .string($0.identifier.string), "file": .string($0.file),
                        "keys": .integer(Int64($0.keys)), "bytes": .integer(Int64($0.bytes)),
                    ])
                }),
            "devices": .array(
                devices.map {
                    .dictionary([
                        "id": .string($0.id), "name": .string($0.name),
                        "created": .date(Self.seconds($0.created)),
                        "seen": .date(Self.seconds($0.seen)),
                    ])
                }),
        ])
    }

    /// Ignores unknown fields.
    /// - Throws: ``ArchiveError``.
    init(_ value: PropertyListValue) throws(ArchiveError) {
        let fields = try Fields(value, "the manifest")
        let format = try fields.integer("format")
        guard format <= Self.format else {
            throw .newer(format: format, known: Self.format)
        }
        let account = try Fields(fields.value("account"), "the account")
        made = try fields.milliseconds("made")
        accountID = try account.string("id")
        accountName = try account.string("name")
        var stores: [Store] = []
        for store in try fields.array("stores") { stores.append(try Self.store(store)) }
        var devices: [Device] = []
        for device in try fields.array("devices") { devices.append(try Self.device(device)) }
        self.stores = stores
        self.devices = devices
    }

    private static func store(_ value: PropertyListValue) throws(ArchiveError) -> Store {
        let fields = try Fields(value, "a store")
        let text = try fields.string("identifier")
        let identifier: StoreIdentifier
        do { identifier = try StoreIdentifier(text) } catch {
            throw .manifestInvalid("a store's identifier is none")
        }
        return Store(
            identifier: identifier, file: try fields.string("file"),
            keys: Int(try fields.integer("keys")), bytes: Int(try fields.integer("bytes")))
    }

    private static func device(_ value: PropertyListValue) throws(ArchiveError) -> Device {
        let fields = try Fields(value, "a device")
        return Device(
            id: try fields.string("id"), name: try fields.string("name"),
            created: try fields.milliseconds("created"), seen: try fields.milliseconds("seen"))
    }

    private static let millisecondsTo2001: Int64 = 978_307_200_000

    /// Whole seconds since 2001, which the XML format can represent.
    private static func seconds(_ milliseconds: Int64) -> Double {
        let seconds = (Double(milliseconds - millisecondsTo2001) / 1_000).rounded(.down)
        return min(max(seconds, XMLCompatibility.firstSecond), XMLCompatibility.lastSecond)
    }

    /// The fields of a dictionary in the manifest.
    private struct Fields {
        private let entries: [ExactString: PropertyListValue]
        private let name: String

        init(_ value: PropertyListValue, _ name: String) throws(ArchiveError) {
            guard case .dictionary(let entries) = value else {
                throw .manifestInvalid("\(name) is no dictionary")
            }
            self.entries = entries
            self.name = name
        }

        func value(_ key: String) throws(ArchiveError) -> PropertyListValue {
            guard let value = entries[ExactString(key)] else { throw missing(key) }
            return value
        }

        func string(_ key: String) throws(ArchiveError) -> String {
            guard case .string(let string) = try value(key) else { throw missing(key) }
            return string.string
        }

        func integer(_ key: String) throws(ArchiveError) -> Int64 {
            guard case .integer(let integer) = try value(key), integer >= 0 else {
                throw missing(key)
            }
            return integer
        }

        func array(_ key: String) throws(ArchiveError) -> [PropertyListValue] {
            guard case .array(let values) = try value(key) else { throw missing(key) }
            return values
        }

        func milliseconds(_ key: String) throws(ArchiveError) -> Int64 {
            guard case .date(let seconds) = try value(key), seconds >= XMLCompatibility.firstSecond,
                seconds <= XMLCompatibility.lastSecond
            else { throw missing(key) }
            return Int64(seconds * 1_000) + ArchiveManifest.millisecondsTo2001
        }

        private func missing(_ key: String) -> ArchiveError {
            .manifestInvalid("\(name) has no proper \"\(key)\"")
        }
    }
}
