// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// What apps add to the class.

extension NSUbiquitousKeyValueStore {
    func encode<Value: Encodable>(_ value: Value, forKey key: String) throws {
        set(try JSONEncoder().encode(value), forKey: key)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: String) throws -> Value? {
        guard let data = data(forKey: key) else { return nil }
        return try JSONDecoder().decode(type, from: data)
    }

    func url(forKey key: String) -> URL? { string(forKey: key).flatMap(URL.init(string:)) }

    /// Preferred to the setter of any value where the argument is a URL.
    func set(_ url: URL, forKey key: String) { set(url.absoluteString, forKey: key) }

    func integer(forKey key: String) -> Int { Int(longLong(forKey: key)) }

    func contains(_ key: String) -> Bool { object(forKey: key) != nil }

    func removeAll(withPrefix prefix: String) {
        for key in dictionaryRepresentation.keys where key.hasPrefix(prefix) {
            removeObject(forKey: key)
        }
    }

    var launchCount: Int64 {
        get { longLong(forKey: "launchCount") }
        set { set(newValue, forKey: "launchCount") }
    }

    static var shared: NSUbiquitousKeyValueStore { .default }
}
