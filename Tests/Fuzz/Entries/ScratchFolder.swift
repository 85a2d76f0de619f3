// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A folder of one check, which is gone after it.
struct ScratchFolder: ~Copyable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "ubiquity-fuzz-" + UUID().uuidString
        guard mkdir(path, 0o700) == 0 else { throw Broken("there is no folder for a check") }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    /// A file for this user alone.
    func write(_ bytes: [UInt8], to name: String) throws -> String {
        let path = file(name)
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
        else { throw Broken("there is no file for a check") }
        return path
    }
}
