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
        let file = fileName(for: identifier)
        manifest.stores.append(
            ArchiveManifest.Store(
                identifier: identifier, file: file, keys: values.count,
                bytes: values.values.reduce(0) { $0 + $1.quotaBytes }))
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
    private func fileName(for identifier: StoreIdentifier) -> String {
        let name = Archive.storesFolder + identifier.string + Archive.suffix
        return name.utf8.count <= TarHeader.nameBytesMax
            ? name : Archive.storesFolder + "_\(manifest.stores.count + 1)" + Archive.suffix
    }
}
