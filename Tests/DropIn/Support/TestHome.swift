// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import Foundation

/// Where the default store of this process keeps its values, so that no test touches a person's.
public enum TestHome {
    /// To be called before the default store is used first.
    public static func use() { _ = path }

    private static let path: String = {
        let process = ProcessInfo.processInfo.processIdentifier
        let path = NSTemporaryDirectory() + "ubiquity-drop-in-\(process)"
        // A process of that number may have been killed.
        try? FileManager.default.removeItem(atPath: path)
        setenv("UBIQUITY_HOME", path, 1)
        // Empty is none: the store works, and stays on this machine.
        setenv("UBIQUITY_KVSTORE_IDENTIFIER", "", 1)
        atexit { try? FileManager.default.removeItem(atPath: TestHome.path) }
        return path
    }()
}

#endif
