// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityCore

struct MemoryDiskTests {
    @Test func `a disk told to fail does, with nothing written, until told to work again`() throws {
        let disk = MemoryDisk()
        let storage = MemoryStorage(disk)
        let full = LocalStorageError(.diskFull, path: "memory", cause: "told so")
        disk.fail([.save], with: full)
        #expect(throws: full) { try storage.save(SaveBatch(after: 0)) }
        #expect(try storage.load().version == 0)
        disk.fail(with: full)
        #expect(throws: full) { try storage.load() }
        disk.fail(with: nil)
        #expect(try storage.save(SaveBatch(after: 0)) == .saved(version: 1))
    }
}
