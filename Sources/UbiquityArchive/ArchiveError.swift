// SPDX-License-Identifier: Apache-2.0

/// The reason bytes are not an archive of an account, or cannot be used, as a sentence for people.
package enum ArchiveError: Error, Hashable, Sendable {
    /// Not a tar archive at all.
    case notTar
    /// It is incomplete.
    case incomplete
    case tooLarge(max: Int)
    /// A header with invalid numbers or a wrong checksum.
    case headerDamaged(offset: Int)
    /// A name that could lead out of a folder, or an empty name.
    case nameUnsafe(String)
    case twice(String)
    /// A link, a device, or anything else that is neither a file nor a folder.
    case notFile(String)
    case tooManyMembers(max: Int)
    case manifestMissing
    case manifestInvalid(String)
    /// The manifest's format is newer.
    case newer(format: Int64, known: Int64)
    case fileMissing(String)
    /// A store's file that the manifest does not list.
    case fileUnlisted(String)
    case fileDamaged(String, reason: String)
    case digestsInvalid
    /// The file does not match the list of digests.
    case fileChanged(String)
    case unreadable(String)
}

extension ArchiveError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notTar: "it is no tar archive"
        case .incomplete: "it is not complete; export it again"
        case .tooLarge(let max): "it has more than \(max >> 20) MB"
        case .headerDamaged(let offset): "it is damaged at byte \(offset); export it again"
        case .nameUnsafe(let name):
            "it has a file named \"\(name)\", which could lead elsewhere; an export has none such"
        case .twice(let name): "it has the file \(name) twice"
        case .notFile(let name):
            "\"\(name)\" in it is neither a file nor a folder; an export has no links"
        case .tooManyMembers(let max): "it has more than \(max) files"
        case .manifestMissing: "it has no file \(ArchiveManifest.fileName); it is no export"
        case .manifestInvalid(let reason): "its \(ArchiveManifest.fileName) is unusable: \(reason)"
        case .newer(let format, let known):
            "its format is \(format), and this program knows formats up to \(known); use a newer "
                + "version of the program"
        case .fileMissing(let name): "its manifest lists \(name), which is not in it"
        case .fileUnlisted(let name): "its manifest does not list \(name)"
        case .digestsInvalid: "its \(ArchiveDigests.fileName) is no list of SHA-256 sums"
        case .fileChanged(let name):
            "its file \(name) is not the one that was exported, by \(ArchiveDigests.fileName); export "
                + "it again, or remove that list where the change is meant"
        case .unreadable(let reason): "it cannot be read: \(reason)"
        case .fileDamaged(let name, let reason): "its file \(name) is unusable: \(reason)"
        }
    }
}
