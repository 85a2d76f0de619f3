// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Reads files that a person names; "-" is the standard input.
enum InputFile {
    /// - Throws: ``Failure`` with the system's reason.
    static func read(_ path: String) throws(Failure) -> Data {
        if path == "-" { return try readStandardInput() }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue
        {
            throw Failure(.noInput, "\(path) is a folder")
        }
        do { return try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw Failure(.noInput, (error as? CocoaError)?.sentence(about: path) ?? "\(error)")
        }
    }

    /// Reads a file with a secret, which nobody else may be able to read.
    /// - Throws: ``Failure``.
    static func readSecret(_ path: String) throws(Failure) -> Data {
        if path == "-" { return try readStandardInput() }
        do {
            guard let bytes = try PrivateFiles.read(path) else {
                throw Failure(.noInput, "there is no file \(path)")
            }
            return bytes
        } catch let failure as Failure {
            throw failure
        } catch {
            guard error as? SystemError == .readableByOthers else {
                throw Failure(.noInput, "\(path): \(error)")
            }
            throw Failure(
                .noPermission,
                "\(path) has a secret and other users can read it; run `chmod 600 \(path)`")
        }
    }

    static func name(_ path: String) -> String { path == "-" ? "the standard input" : path }

    private static func readStandardInput() throws(Failure) -> Data {
        do { return try FileHandle.standardInput.readToEnd() ?? Data() } catch {
            throw Failure(.noInput, "the standard input cannot be read")
        }
    }
}

extension CocoaError {
    /// Foundation on Linux says "The operation could not be completed" for most errors. The file
    /// and the system's reason say more.
    func sentence(about path: String) -> String {
        if code == .fileNoSuchFile || code == .fileReadNoSuchFile {
            return "there is no file \(path)"
        }
        if code == .fileReadNoPermission || code == .fileWriteNoPermission {
            return "\(path): Permission denied"
        }
        let reason = (underlying as? POSIXError).map { String(cString: strerror($0.code.rawValue)) }
        return "\(path): \(reason ?? localizedDescription)"
    }
}
