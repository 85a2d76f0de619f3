// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import UbiquityCore

/// The store that an app's values belong to.
struct StoreIdentity {
    /// Nil if the app has none. Its values then stay on this machine.
    var identifier: StoreIdentifier?
    /// The store's file name without suffix.
    var fileName: String
    /// A message for the app's developer.
    var warning: UbiquityError?
}

extension UbiquityConfiguration {
    /// Takes the identifier from code, the environment, or the entitlements beside the program, in
    /// this order.
    /// - Throws: ``UbiquityError`` for a malformed identifier.
    func identity(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        // Evaluated only if needed: Foundation lists the folder, which takes milliseconds.
        program findProgram: @autoclosure () -> URL? = Bundle.main.executableURL
    ) throws -> StoreIdentity {
        if let text = givenIdentifier(environment) {
            return try StoreIdentity(
                identified: text,
                by: identifier == nil ? "the variable \(Self.identifierVariable)" : giver)
        }
        let program = findProgram()
        let name = program?.lastPathComponent ?? "program"
        guard let file = program.flatMap(Entitlements.file) else {
            return StoreIdentity(unnamed: name, Self.missingIdentifier)
        }
        switch Entitlements.identifier(in: file) {
        case .success(let text):
            return try StoreIdentity(identified: text, by: file.path)
        case .failure(let error):
            return StoreIdentity(unnamed: name, "\(error.description). \(Self.missingIdentifier)")
        }
    }

    /// Nil if no store is named.
    package func resolvedIdentifier() throws -> String? { try identity().identifier?.string }

    private func givenIdentifier(_ environment: [String: String]) -> String? {
        // An empty variable counts as unset. An empty name in code is a mistake, and must not
        // select the environment's store.
        identifier ?? environment[nonEmpty: Self.identifierVariable]
    }

    private static let missingIdentifier =
        "This app has no store identifier, so its values stay on this machine and do not sync. "
        + "Configure the store in code, set \(identifierVariable), or put an entitlements file "
        + "with \(Entitlements.identifierKey) beside the program."
}

extension StoreIdentity {
    fileprivate init(identified text: String, by source: String) throws {
        do {
            let identifier = try StoreIdentifier(text)
            self.init(identifier: identifier, fileName: text)
        } catch {
            throw UbiquityError(
                .invalid,
                "\"\(text)\", from \(source), is not a store identifier: \(error). Use one such as "
                    + "TEAMID.com.example.app, the same in all apps that share the store.")
        }
    }

    /// Apps without an identifier must not see each other's values.
    fileprivate init(unnamed program: String, _ warning: String) {
        self.init(
            // No identifier begins with a period.
            fileName: ".unconfigured-" + Self.fileName(of: program),
            warning: UbiquityError(.notConfigured, warning))
    }

    /// ASCII letters and digits stay, every other byte becomes its number, so different programs
    /// have different names.
    private static func fileName(of program: String) -> String {
        let parts = program.utf8.map { byte in
            let character = Character(Unicode.Scalar(byte))
            let isSafe = character.isASCII && (character.isLetter || character.isNumber)
            return isSafe ? String(character) : "_\(byte)_"
        }
        return String(parts.joined().prefix(fileNameLengthMax))
    }

    /// File systems allow 255 bytes, including SQLite's suffixes.
    private static let fileNameLengthMax = 200
}

/// The property list in which an app for Apple's systems names its store.
package enum Entitlements {
    static let identifierKey = "com.apple.developer.ubiquity-kvstore-identifier"

    package struct Failure: Error, Hashable { package var description: String }

    /// The entitlements file beside the program: the one with its name, or else the only one there.
    static func file(beside program: URL) -> URL? {
        let folder = program.resolvingSymlinksInPath().deletingLastPathComponent()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let candidates = names.filter { $0.hasSuffix(".entitlements") }
        let own = program.lastPathComponent + ".entitlements"
        let name = candidates.contains(own) ? own : candidates.count == 1 ? candidates[0] : nil
        return name.map(folder.appendingPathComponent)
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
                    description: "\(file.path) has \(text.string) as \(identifierKey); replace the "
                        + "variable with its value"))
        }
        return .success(text.string)
    }
}
