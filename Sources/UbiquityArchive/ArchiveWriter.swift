// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Makes an archive of an account piece by piece, with one store at a time in memory.
///
/// The pieces form a tar archive: a file for each store, and at the end the manifest, which then
/// knows their content, and the digests of all files. A file has the XML format of a property list
/// if that represents all values exactly, and otherwise the binary format.
package struct ArchiveWriter: Sendable {
    private var manifest: ArchiveManifest
    private var digests = ArchiveDigests()
    /// The name of the next store's file of history.
    private var history: String?

    package init(
        made: Int64, accountID: String, accountName: String, devices: [ArchiveManifest.Device]
    ) {
        manifest = ArchiveManifest(
            made: made, accountID: accountID, accountName: accountName, stores: [],
            devices: devices)
    }

    /// - Parameter values: The values as an app sees them.
    package mutating func store(
        _ identifier: StoreIdentifier, _ values: [Key: PropertyListValue]
    ) -> [UInt8] {
        let file = fileName(for: identifier, in: Archive.storesFolder)
        manifest.stores.append(
            ArchiveManifest.Store(
                identifier: identifier, file: file, keys: values.count,
                bytes: values.values.reduce(0) { $0 + $1.quotaBytes }, history: history))
        history = nil
        return member(file, Self.content(of: .entries(values)))
    }

    /// The manifest, the digests, and the end of the archive.
    package mutating func end() -> [UInt8] {
        let content = Self.content(of: manifest.propertyList)
        return member(ArchiveManifest.fileName, content)
            + member(ArchiveDigests.fileName, digests.content)
            + [UInt8](repeating: 0, count: 2 * TarHeader.blockBytes)
    }

    private static func content(of value: PropertyListValue) -> [UInt8] {
        let xml = XMLCompatibility.isExact(value) ? PropertyListXML.encode(value) : nil
        return xml ?? BinaryPropertyList.encode(value)
    }

    private mutating func member(_ name: String, _ content: [UInt8]) -> [UInt8] {
        digests.add(name, content: content)
        let header = TarHeader(name: name, size: content.count, time: manifest.made / 1_000)
        let padding = TarHeader.paddedBytes(content.count) - content.count
        return header.block + content + [UInt8](repeating: 0, count: padding)
    }

    /// A header has space for a hundred bytes. No identifier begins with an underscore.
    private func fileName(for identifier: StoreIdentifier, in folder: String) -> String {
        let name = folder + identifier.string + Archive.suffix
        return name.utf8.count <= TarHeader.nameBytesMax
            ? name : folder + "_\(manifest.stores.count + 1)" + Archive.suffix
    }
}

extension ArchiveWriter {
    /// The file with the history of a store. Call it before ``store(_:_:)``, which lists it.
    /// - Parameter versions: In the order of the file.
    package mutating func history(
        of identifier: StoreIdentifier, _ versions: [RecordVersion]
    ) -> [UInt8] {
        let file = fileName(for: identifier, in: Archive.historyFolder)
        history = file
        return member(file, Self.content(of: .array(versions.map(\.propertyList))))
    }
}

extension RecordVersion {
    /// Times are whole seconds, as in the manifest.
    fileprivate var propertyList: PropertyListValue {
        func date(_ milliseconds: Int64) -> PropertyListValue {
            .date(ArchiveManifest.seconds(milliseconds))
        }
        var fields: [ExactString: PropertyListValue] = [
            "key": .string(record.key.string),
            "written": date(record.stamp.timestamp.milliseconds),
            "device": .string(record.stamp.device.description),
        ]
        if let part = record.key.part { fields["part"] = .string(part.text.string) }
        if let value = record.content.value { fields["value"] = value }
        if let came, came.milliseconds > 0 { fields["came"] = date(came.milliseconds) }
        if let ended { fields["ended"] = date(ended.milliseconds) }
        switch outcome {
        case .current: fields["outcome"] = .string("current")
        case .replaced: fields["outcome"] = .string("replaced")
        case .lost: fields["outcome"] = .string("lost")
        }
        return .dictionary(fields)
    }
}
