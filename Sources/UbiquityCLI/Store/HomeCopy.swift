// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// A copy of a store in a home that cannot be written, to read it: SQLite makes files beside a database
/// that it reads. The copy has no sign-in, so nothing of it is sent, and no keys.
struct HomeCopy {
    let home: DeviceHome

    /// - Returns: Nil if the home can be written, or does not exist.
    /// - Throws: ``Failure`` if the store cannot be copied.
    init?(ifReadOnly original: DeviceHome, _ state: DeviceState, store: String) throws {
        guard access(original.path, F_OK) == 0, access(original.path, W_OK) != 0 else { return nil }
        home = try DeviceHome(
            path: NSTemporaryDirectory() + "/ubiquity-" + UUID().uuidString)
        do {
            try home.update { copied in
                copied = state
                copied.signedIn = nil
                (copied.keyrings, copied.proposals) = ([:], [:])
            }
            try PrivateFiles.makeFolder(home.storesFolder(state.folder))
            try Self.copy(
                original.storePath(for: store, folder: state.folder),
                to: home.storePath(for: store, folder: state.folder))
        } catch {
            remove()
            throw Failure(
                .inputOutput,
                "the folder \(original.path) cannot be written, and its store cannot be copied to "
                    + "read it: \(error)")
        }
    }

    /// Copies the database and its log, and again if something was written meanwhile, as by another
    /// machine.
    private static func copy(_ from: String, to: String) throws {
        let suffixes = ["", "-wal"]
        func times() -> [Date?] {
            suffixes.map { suffix in
                let attributes = try? FileManager.default.attributesOfItem(atPath: from + suffix)
                return attributes?[.modificationDate] as? Date
            }
        }
        for _ in 0..<triesMax {
            let before = times()
            for (suffix, time) in zip(suffixes, before) where time != nil {
                guard let bytes = FileManager.default.contents(atPath: from + suffix) else {
                    throw SystemError(errno)
                }
                try PrivateFiles.replace(to + suffix, with: bytes)
            }
            if times() == before { return }
        }
        throw Failure(.unavailable, "it is being written")
    }

    private static let triesMax = 5

    func remove() { try? FileManager.default.removeItem(atPath: home.path) }
}
