// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension IdentitySettings {
    /// What is wrong with a file is said at the start, and not to the first who wants to sign in. An
    /// address may be away for a moment.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)``.
    func checkFile() throws(ServerStartError) {
        guard case .file(let path) = keys else { return }
        guard let bytes = try PrivateFile.readPublic(path) else {
            throw .fileUnusable(path: path, reason: "there is no such file")
        }
        do { _ = try JSONWebKeys(parsing: Data(bytes)) } catch {
            throw .fileUnusable(path: path, reason: "\(error)")
        }
    }
}
