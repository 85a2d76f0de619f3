// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

/// One long story with every fault, observed step by step.
private struct Story {
    private(set) var observations: [String] = []
    private let two: TwoDevices
    private let tablet: TestDevice
    private var stores: [UbiquitousKeyValueStore]

    init(seed: UInt64) {
        two = TwoDevices(seed: seed)
        tablet = two.cloud.newDevice("tablet", isSignedIn: false)
        stores = [two.a, two.b, tablet.openStore(TwoDevices.identifier)]
        play()
    }

    private var cloud: TestCloud { two.cloud }

    private mutating func play() {
        for round in 0..<12 {
            cause(round)
            for (number, store) in stores.enumerated() {
                store.set("\(round) of \(number)", forKey: "shared")
                store.set(round, forKey: "own \(number)")
                if round % 3 == number { store.removeObject(forKey: "own \(number)") }
                cloud.advance(by: .milliseconds(137 * (number + 1)))
                observe()
            }
        }
        two.phone.network = TestNetwork()
        cloud.settle()
        observe()
    }

    private mutating func cause(_ round: Int) {
        switch round {
        case 1: two.laptop.goOffline()
        case 2: two.phone.clockError = .seconds(600)
        case 3: two.phone.network.lostAnswers = 0.5
        case 4: tablet.signIn(to: cloud.account)
        case 5: cloud.server.stop()
        case 6: cloud.server.start()
        case 7:
            two.phone.restart()
            stores[0] = two.phone.openStore(TwoDevices.identifier)
        case 8: cloud.server.restore(cloud.server.backUp())
        case 9: two.laptop.goOnline()
        case 10: tablet.isDiskFull = true
        case 11:
            tablet.isDiskFull = false
            cloud.advance(by: .seconds(86_400))
        default: break
        }
    }

    private mutating func observe() {
        observations.append("\(cloud.now.timeIntervalSince1970)")
        for store in stores {
            observations.append(text(store.dictionaryRepresentation))
            observations.append("\(store.status)")
        }
        observations.append(text(two.onServer))
        for device in [two.phone, two.laptop, tablet] {
            observations.append("\(device.notifications)")
        }
    }

    private func text(_ values: [String: Any]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
    }

    /// The final content of all stores and the server.
    var last: [String] { stores.map { text($0.dictionaryRepresentation) } + [text(two.onServer)] }
}

@Suite("A test with a cloud")
struct DeterminismTests {
    @Test func `does the same each time, observation by observation`() {
        let (first, second) = (Story(seed: 7), Story(seed: 7))
        #expect(first.observations.count > 200)
        for (one, other) in zip(first.observations, second.observations) where one != other {
            Issue.record("\(one)\n\(other)")
        }
        #expect(first.observations == second.observations)
    }

    /// Each process has its own order of sets and dictionaries.
    @Test func `does the same in another process`() async {
        let result = await #expect(
            processExitsWith: .success, observing: [\.standardOutputContent]
        ) {
            for observation in Story(seed: 9).observations { print(observation) }
        }
        let there = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        let here = Story(seed: 9).observations.joined(separator: "\n")
        #expect(there.contains(here))
    }

    @Test(arguments: [1, 2, 3, 4, 5])
    func `ends in agreement with any seed`(seed: UInt64) {
        let story = Story(seed: seed)
        #expect(Set(story.last).count == 1)
        #expect(story.observations != Story(seed: seed + 100).observations)
    }

    /// Would not finish in real time.
    @Test func `lets three days pass at once`() {
        let two = TwoDevices()
        two.a.set("x", forKey: "k")
        two.cloud.advance(by: .seconds(3 * 86_400))
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `leaves nothing behind`() {
        weak var store: UbiquitousKeyValueStore?
        weak var cloud: TestCloud?
        do {
            let two = TwoDevices()
            two.a.set("x", forKey: "k")
            two.cloud.settle()
            two.a.set("y", forKey: "k")
            (store, cloud) = (two.a, two.cloud)
        }
        #expect(cloud == nil)
        #expect(store == nil)
    }

    @Test func `leaves a store that outlives it usable in memory`() {
        let store = TestCloud().newDevice("phone").openStore(TwoDevices.identifier)
        store.set("x", forKey: "k")
        #expect(store.string(forKey: "k") == "x")
    }
}
