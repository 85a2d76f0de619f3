// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquitySimulation

struct DigestTests {
    @Test func `each kind of observation has a digest of its own`() {
        let disk = DiskReference(device: 1, folder: "1", store: 0)
        let observations: [Observation] = [
            .ended(process: 1), .moved(process: 1, disk), .synchronized(process: 1),
            .opensStream(process: 1), .pulls(process: 1), .copied(device: 1), .lost(disk),
            .wiped(disk), .clock(device: 1, error: 0, drift: 0, boot: 1),
            .paused(device: 1, milliseconds: 1), .keptBack(device: 1, milliseconds: 1),
        ]
        let digests = observations.map { observation in
            var digest = Digest()
            digest.combine(observation, at: 0)
            return digest
        }
        #expect(Set(digests).count == observations.count)
    }
}
