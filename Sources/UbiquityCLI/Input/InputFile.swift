// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// Reads files that a person names; "-" is the standard input.
enum InputFile {
    /// The maximum size of a file read at once. An account's may be larger, because it is read in
    /// parts.
    static let bytesMax = PropertyList.bytesMax
    private static let pieceBytes = 1 << 20

    /// - Throws: ``Failure`` with the system's reason, or for more than ``bytesMax``.
    static func read(_ path: String) throws(Failure) -> Data {
        try read(try open(path), path)
    }

    /// Reads from the file's current position.
    static func read(_ handle: FileHandle, _ path: String) throws(Failure) -> Data {
        var data = Data()
        let tooLarge = Failure(.badInput, "\(name(path)) has more than \(bytesMax >> 20) MB")
        // The size of a regular file is known.
        if let start = try? handle.offset(), let end = try? handle.seekToEnd() {
            guard end <= start + UInt64(bytesMax) else { throw tooLarge }
            try? handle.seek(toOffset: start)
        }
        do {
            while let piece = try handle.read(upToCount: pieceBytes), !piece.isEmpty {
                data += piece
                guard data.count <= bytesMax else { break }
            }
        } catch { throw failure(error, path) }
        guard data.count <= bytesMax else { throw tooLarge }
        return data
    }

    static func open(_ path: String) throws(Failure) -> FileHandle {
        if path == "-" { return .standardInput }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue
        {
            throw Failure(.noInput, "\(path) is a folder")
        }
        do { return try FileHandle(forReadingFrom: URL(fileURLWithPath: path)) } catch {
            throw failure(error, path)
        }
    }

    private static func failure(_ error: any Error, _ path: String) -> Failure {
        if path == "-" { return Failure(.noInput, "standard input cannot be read") }
        return Failure(.noInput, (error as? CocoaError)?.sentence(about: path) ?? "\(error)")
    }

    /// Reads a file with a secret, which nobody else may be able to read.
    /// - Throws: ``Failure``.
    static func readSecret(_ path: String) throws(Failure) -> Data {
        if path == "-" { return try read(path) }
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
                "\(path) contains a secret, and other users can read it; run `chmod 600 \(path)`")
        }
    }

    static func name(_ path: String) -> String { path == "-" ? "the standard input" : path }
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
