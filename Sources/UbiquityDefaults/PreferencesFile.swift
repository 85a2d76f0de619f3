// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The file of some preferences on Linux, to see by a glance whether another process wrote it.
///
/// Only a hint: where it lies elsewhere than thought, other processes' writes are noticed when
/// something else has the preferences written or read anew.
struct PreferencesFile {
    /// What is another one after a write.
    struct Look: Equatable {
        var date: Date?
        var number: Int?
        var bytes: Int?
    }

    let path: String

    init(_ domain: DefaultsDomain) {
        let name = domain.suite ?? ProcessInfo.processInfo.processName
        let environment = ProcessInfo.processInfo.environment
        let folder =
            environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : $0 }
            ?? NSHomeDirectory() + "/.config"
        path = "\(folder)/\(name).plist"
    }

    /// Nil: there is no such file.
    var look: Look? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            return nil
        }
        return Look(
            date: attributes[.modificationDate] as? Date,
            number: (attributes[.systemFileNumber] as? NSNumber)?.intValue,
            bytes: (attributes[.size] as? NSNumber)?.intValue)
    }
}
