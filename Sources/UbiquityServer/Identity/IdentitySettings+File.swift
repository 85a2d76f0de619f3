// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension IdentitySettings {
    /// Checks the file at the start of the server, so that a problem is not discovered only at the
    /// first sign-in. An address is not checked, because it may be unavailable for a moment.
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
