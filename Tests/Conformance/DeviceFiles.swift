// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The folder of a device, with the file of its store, whose disk fails when it is told to.
final class DeviceFiles {
    private let folder: String
    private var home: String { folder + "/home" }
    private var path: String { home + "/store.sqlite" }

    init() throws {
        let memory = "/dev/shm"
        let place = FileManager.default.fileExists(atPath: memory) ? memory : NSTemporaryDirectory()
        folder = place + "/ubiquity-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
    }

    func open() throws -> SQLiteStorage { try SQLiteStorage(path: path) }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// What a file says that another program has locked.
    var closed: LocalStorageError { LocalStorageError(.busy, path: path, cause: "locked") }

    /// Does this while the disk fails as Protocol/conformance.md says.
    func failing<Result>(_ how: String, _ body: () throws -> Result) throws -> Result {
        switch how {
        case "full": return try withoutRoom(body)
        case "readOnly": throw LocalStorageError(.notWritable, path: path, cause: how)
        case "silent": throw LocalStorageError(.failed, path: path, cause: "")
        case "gone":
            try FileManager.default.moveItem(atPath: home, toPath: home + ".away")
            defer {
                try? FileManager.default.removeItem(atPath: home)
                try? FileManager.default.moveItem(atPath: home + ".away", toPath: home)
            }
            return try body()
        case "replaced":
            try replace()
            return try body()
        case "late":
            _ = try body()
            throw LocalStorageError(.failed, path: path, cause: how)
        default: throw closed
        }
    }

    /// No file gets another byte.
    private func withoutRoom<Result>(_ body: () throws -> Result) rethrows -> Result {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &none)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) }
        return try body()
    }

    /// Puts copies in the place of the store's files, as who restores a backup does.
    private func replace() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: home)
        where name.hasPrefix("store.sqlite") && !name.hasSuffix("-shm") {
            let file = home + "/" + name
            try FileManager.default.copyItem(atPath: file, toPath: file + ".copy")
            guard rename(file + ".copy", file) == 0 else { throw closed }
        }
    }
}
