// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness

/// The folder of a stage on the disk, which is removed when the program ends.
enum StageFolder {
    /// The same after the program has started again.
    static let path: String = {
        let known = ProcessInfo.processInfo.environment[variable] ?? ""
        // What is removed in the end must be the stage's own.
        return known.contains(prefix) ? known : new()
    }()

    private static func new() -> String {
        let folder = NSTemporaryDirectory() + prefix + UUID().uuidString
        setenv(variable, folder, 1)
        return folder
    }

    private static let prefix = "/ubiquity-example-"
    private static let variable = "UBIQUITY_EXAMPLE_STAGE"
}

/// The folder of the examples' preferences. It is inside the device's folder, because two devices
/// on one machine must not share a file.
enum PreferencesFolder {
    /// Foundation on Linux looks for the place once, before any code of a program's: so the program
    /// starts again with it, if it was started with another.
    static func use(in home: String) throws {
        let path = URL(fileURLWithPath: home).path + "/config"
        // A folder that cannot be made is the store's to complain of.
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        guard ProcessInfo.processInfo.environment[variable] != path else { return }
        setenv(variable, path, 1)
        execv(Bundle.main.executablePath ?? CommandLine.arguments[0], CommandLine.unsafeArgv)
        throw Trouble.system("the program cannot start again")
    }

    private static let variable = "XDG_CONFIG_HOME"
}
