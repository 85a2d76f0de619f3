// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Mounts of this process's own, which are gone with the last of its processes, however that ends.
enum MountNamespace {
    private static let mark = "UBIQUITY_TORTURE_MOUNTS"

    static var isOwn: Bool { ProcessInfo.processInfo.environment[mark] != nil }

    /// Begins this program anew with mounts of its own. Does not return, unless the system does not
    /// let us.
    static func enter() {
        // Who is not root may be root in a name space for users.
        for option in ["--mount", "--map-root-user"] {
            let arguments = [option, "--mount"]
            guard mayRun(arguments) else { continue }
            setenv(mark, "1", 1)
            let program = Bundle.main.executablePath ?? CommandLine.arguments[0]
            let words = ["unshare"] + arguments + [program] + CommandLine.arguments.dropFirst()
            var pointers = words.map { strdup($0) } + [nil]
            execvp("unshare", &pointers)
            unsetenv(mark)
        }
    }

    private static func mayRun(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["unshare"] + arguments + ["true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
