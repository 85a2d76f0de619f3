// SPDX-License-Identifier: Apache-2.0

// snippet.app
import Ubiquity

extension UbiquityKeys {
    static let volume = UbiquityKey("volume", default: 5)
}

let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.app")
store[.volume] = 7
for await volume in store.values(for: .volume) {
    print("The volume is \(volume) on every device.")
}
// snippet.end
