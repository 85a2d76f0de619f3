// SPDX-License-Identifier: Apache-2.0

import Ubiquity

// As an app declares its keys, in a file that imports nothing else.

struct AppGame: Codable, Equatable {
    var level = 1
    var player: String?
}

extension UbiquityKeys {
    static let appVolume = UbiquityKey("volume", default: 0.8)
    static let appNickname = UbiquityKey<String?>("nickname")
    static let appGame = UbiquityKey("game", default: AppGame())
    static let appMarks = UbiquityKey<[Int?]>("marks", default: [])
    static let appCount = UbiquityKey("count", default: 0)
}

func turnUp(_ store: UbiquitousKeyValueStore) -> Double {
    store[.appVolume] += 0.1
    store[.appGame].level = 2
    store[.appNickname] = store[.appNickname] ?? "nobody"
    return store[.appVolume]
}
