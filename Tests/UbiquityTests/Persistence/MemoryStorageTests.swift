// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityCore

struct MemoryStorageTests {
    @Test func `a storage that stands for a file which cannot be opened fails every access`() {
        let failure = LocalStorageError(.notWritable, path: "memory", cause: "not opened")
        let storage = MemoryStorage(failing: failure)
        #expect(throws: failure) { try storage.load() }
        #expect(throws: failure) { try storage.changes(after: 0) }
        #expect(throws: failure) { try storage.save(SaveBatch(after: 0)) }
        #expect(throws: failure) { try storage.refusedWrites() }
        #expect(throws: failure) { try storage.forgetRefusedWrites() }
    }
}
