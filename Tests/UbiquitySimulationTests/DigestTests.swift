// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

struct DigestTests {
    @Test func `kinds of observations with the same content have digests of their own`() {
        let store = StoreReference(account: 1, store: 1)
        let disk = DiskReference(device: 1, folder: "1", store: 0)
        let observations: [Observation] = [
            .ended(process: 1), .moved(process: 1, disk), .synchronized(process: 1),
            .opensStream(process: 1), .pulls(process: 1), .copied(device: 1), .lost(disk),
            .wiped(disk), .clock(device: 1, error: 0, drift: 0, boot: 1),
            .paused(device: 1, milliseconds: 1), .keptBack(device: 1, milliseconds: 1),
            .opened(process: 1, disk: disk, values: [:]), .resumed(process: 1, disk: disk, from: 1),
            .rested(process: 1, values: [:]), .refused(process: 1, []), .saves(process: 1, [], nil),
            .askedRoundTrip(process: 1, id: 1, waiting: []), .withdrawn(disk: disk, []),
            .discarded(disk: disk, []), .compacted(store, [], left: 1, .folded),
            .signedIn(device: 1, folder: "1", account: 1), .cloned(device: 1, from: 1),
            .serverClock(error: 1), .serverRestored([:]),
            .read(store, Position(epoch: 1, revision: 1)),
        ]
        let digests = observations.map { observation in
            var digest = Digest()
            digest.combine(observation, at: 0)
            return digest
        }
        #expect(Set(digests).count == observations.count)
    }
}
