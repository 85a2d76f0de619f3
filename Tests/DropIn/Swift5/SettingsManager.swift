// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The singleton with a property for each setting.
class SettingsManager {
    static let sharedInstance = SettingsManager()
    let store = NSUbiquitousKeyValueStore.default

    private init() {}

    var isMetric: Bool {
        get { return store.bool(forKey: "classic.isMetric") }
        set {
            store.set(newValue, forKey: "classic.isMetric")
            store.synchronize()
        }
    }

    var fontSize: Float {
        get { return Float(store.double(forKey: "classic.fontSize")) }
        set { store.set(Double(newValue), forKey: "classic.fontSize") }
    }

    var visits: Int {
        get { return (store.object(forKey: "classic.visits") as? NSNumber)?.intValue ?? 0 }
        set { store.set(NSNumber(value: newValue), forKey: "classic.visits") }
    }

    var margin: CGFloat {
        get { return CGFloat((store.object(forKey: "classic.margin") as? Double) ?? 8) }
        set { store.set(newValue, forKey: "classic.margin") }
    }

    var lastVisit: Date? {
        get { return store.object(forKey: "classic.lastVisit") as? Date }
        set { store.set(newValue, forKey: "classic.lastVisit") }
    }

    var background: [String: Any] {
        get { return store.dictionary(forKey: "classic.background") ?? [:] }
        set { store.set(newValue, forKey: "classic.background") }
    }

    var nickname: String? {
        get { return store.value(forKey: "classic.nickname") as? String }
        set { store.setValue(newValue, forKey: "classic.nickname") }
    }

    subscript(key: String) -> Any? {
        get { return store.object(forKey: key) }
        set {
            if newValue == nil {
                store.removeObject(forKey: key)
            } else {
                store.set(newValue!, forKey: key)
            }
        }
    }
}
