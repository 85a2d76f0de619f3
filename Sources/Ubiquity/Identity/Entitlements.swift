// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import UbiquityCore

/// The property list in which an app for Apple's systems names its store.
package enum Entitlements {
    static let identifierKey = "com.apple.developer.ubiquity-kvstore-identifier"

    package struct Failure: Error, Hashable { package var description: String }

    /// The entitlements file beside the program: the one with its name, or else the only one there.
    static func file(beside program: URL) -> URL? {
        let folder = program.resolvingSymlinksInPath().deletingLastPathComponent()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let candidates = names.filter { $0.hasSuffix(".entitlements") }
        let own = programName(program) + ".entitlements"
        let name = candidates.contains(own) ? own : candidates.count == 1 ? candidates[0] : nil
        return name.map(folder.appendingPathComponent)
    }

    /// The program's name. A period is part of it, except in the Windows suffix.
    static func programName(_ program: URL) -> String {
        let isSuffixed = program.pathExtension.lowercased() == "exe"
        return (isSuffixed ? program.deletingPathExtension() : program).lastPathComponent
    }

    package static func identifier(in file: URL) -> Result<String, Failure> {
        let entries: [PropertyListFile.Entry]
        do { entries = try PropertyListFile.read(path: file.path) } catch {
            return .failure(Failure(description: "\(error)"))
        }
        let entry = entries.first { $0.key == identifierKey }
        guard case .success(.string(let text)) = entry?.value else {
            return .failure(Failure(description: "\(file.path) has no \(identifierKey)"))
        }
        // Xcode expands these variables when it signs; nothing does elsewhere.
        guard !text.string.contains("$(") else {
            return .failure(
                Failure(
                    description: "\(file.path) has \(text.string) as \(identifierKey); write out "
                        + "what stands for the variable"))
        }
        return .success(text.string)
    }
}
