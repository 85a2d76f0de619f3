// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A colour, kept in the three ways in which apps keep one.
struct BackgroundColor: Codable, Equatable {
    var red: CGFloat
    var green: CGFloat
    var blue: CGFloat
    var alpha: CGFloat = 1
}

// MARK: - Four numbers

extension BackgroundColor {
    private static let names = ["red", "green", "blue", "alpha"].map { "background.\($0)" }

    func saveAsNumbers(to store: NSUbiquitousKeyValueStore = .default) {
        for (name, value) in zip(Self.names, [red, green, blue, alpha]) {
            store.set(Double(value), forKey: name)
        }
        store.synchronize()
    }

    init?(numbersFrom store: NSUbiquitousKeyValueStore = .default) {
        guard store.object(forKey: Self.names[0]) != nil else { return nil }
        let parts = Self.names.map { CGFloat(store.double(forKey: $0)) }
        self.init(red: parts[0], green: parts[1], blue: parts[2], alpha: parts[3])
    }
}

// MARK: - An array

extension BackgroundColor {
    func saveAsArray(to store: NSUbiquitousKeyValueStore = .default) {
        store.set([red, green, blue, alpha], forKey: "background.parts")
    }

    init?(arrayFrom store: NSUbiquitousKeyValueStore = .default) {
        guard let parts = store.array(forKey: "background.parts") as? [Double], parts.count == 4
        else { return nil }
        self.init(red: parts[0], green: parts[1], blue: parts[2], alpha: parts[3])
    }
}

// MARK: - Data

extension BackgroundColor {
    func saveAsData(to store: NSUbiquitousKeyValueStore = .default) throws {
        store.set(try JSONEncoder().encode(self), forKey: "background.data")
    }

    init?(dataFrom store: NSUbiquitousKeyValueStore = .default) {
        guard let data = store.data(forKey: "background.data"),
            let color = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = color
    }
}

// MARK: - Hex

extension BackgroundColor {
    func saveAsHex(to store: NSUbiquitousKeyValueStore = .default) {
        let bytes = [red, green, blue].map { Int(($0 * 255).rounded()) }
        store.set("#" + bytes.map { String(format: "%02X", $0) }.joined(), forKey: "background.hex")
    }

    init?(hexFrom store: NSUbiquitousKeyValueStore = .default) {
        guard let hex = store.string(forKey: "background.hex"),
            let number = Int(hex.dropFirst(), radix: 16)
        else { return nil }
        let parts = [16, 8, 0].map { CGFloat(number >> $0 & 0xFF) / 255 }
        self.init(red: parts[0], green: parts[1], blue: parts[2])
    }
}
