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
        /// The name of the file with its history in the archive; nil if it was not exported.
        package var history: String?
    }

    package struct Device: Hashable, Sendable {
        package var id: String
        package var name: String
        /// The server's milliseconds since 1970; the same for ``seenMilliseconds``.
        package var createdMilliseconds: Int64
        package var seenMilliseconds: Int64

        package init(id: String, name: String, createdMilliseconds: Int64, seenMilliseconds: Int64)
        {
            self.id = id
            self.name = name
            self.createdMilliseconds = createdMilliseconds
            self.seenMilliseconds = seenMilliseconds
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
}

extension ArchiveManifest {
    var propertyList: PropertyListValue {
        .dictionary([
            "format": .integer(Self.format), "made": .date(Self.seconds(made)),
            "account": .dictionary(["id": .string(accountID), "name": .string(accountName)]),
            "stores": .array(
                stores.map { store in
                    var fields: [ExactString: PropertyListValue] = [
                        "identifier": .string(store.identifier.string), "file": .string(store.file),
                        "keys": .integer(Int64(store.keys)), "bytes": .integer(Int64(store.bytes)),
                    ]
                    fields["history"] = store.history.map { .string($0) }
                    return .dictionary(fields)
                }),
            "devices": .array(
                devices.map {
                    .dictionary([
                        "id": .string($0.id), "name": .string($0.name),
                        "created": .date(Self.seconds($0.createdMilliseconds)),
                        "seen": .date(Self.seconds($0.seenMilliseconds)),
                    ])
                }),
        ])
    }

    /// Ignores unknown fields.
    /// - Throws: ``ArchiveError``.
    init(_ value: PropertyListValue) throws(ArchiveError) {
        let fields: StoredFields
        let format: Int64
        do {
            fields = try StoredFields(value)
            format = try fields.count("format")
        } catch { throw .manifestInvalid("\(error)") }
        guard format <= Self.format else { throw .newer(format: format, known: Self.format) }
        do { try self.init(fields) } catch { throw .manifestInvalid("\(error)") }
    }

    private init(_ fields: StoredFields) throws(StoredFieldError) {
        let account = try StoredFields.need(fields.fields("account"), "account")
        self.init(
            made: try fields.milliseconds("made"), accountID: try account.text("id"),
            accountName: try account.text("name"), stores: [], devices: [])
        for value in try StoredFields.need(fields.array("stores"), "stores") {
            stores.append(try Store(StoredFields(value)))
        }
        for value in try StoredFields.need(fields.array("devices"), "devices") {
            devices.append(try Device(StoredFields(value)))
        }
    }

    private static let millisecondsTo2001: Int64 = 978_307_200_000

    /// Whole seconds since 2001, which the XML format can represent.
    static func seconds(_ milliseconds: Int64) -> Double {
        let seconds = (Double(milliseconds - millisecondsTo2001) / 1_000).rounded(.down)
        return min(max(seconds, XMLCompatibility.firstSecond), XMLCompatibility.lastSecond)
    }

    fileprivate static func milliseconds(_ seconds: Double) -> Int64 {
        Int64(seconds * 1_000) + millisecondsTo2001
    }
}

extension ArchiveManifest.Store {
    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        let text = try fields.text("identifier")
        guard let identifier = try? StoreIdentifier(text) else { throw .otherType("identifier") }
        self.init(
            identifier: identifier, file: try fields.text("file"),
            keys: Int(try fields.count("keys")), bytes: Int(try fields.count("bytes")),
            history: try fields.string("history"))
    }
}

extension ArchiveManifest.Device {
    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(
            id: try fields.text("id"), name: try fields.text("name"),
            createdMilliseconds: try fields.milliseconds("created"),
            seenMilliseconds: try fields.milliseconds("seen"))
    }
}

extension StoredFields {
    fileprivate func count(_ name: ExactString) throws(StoredFieldError) -> Int64 {
        let count: Int64 = try Self.need(integer(name), name)
        guard count >= 0 else { throw .otherType(name.string) }
        return count
    }

    fileprivate func milliseconds(_ name: ExactString) throws(StoredFieldError) -> Int64 {
        guard case .date(let seconds) = self[name], seconds >= XMLCompatibility.firstSecond,
            seconds <= XMLCompatibility.lastSecond
        else { throw .otherType(name.string) }
        return ArchiveManifest.milliseconds(seconds)
    }
}
