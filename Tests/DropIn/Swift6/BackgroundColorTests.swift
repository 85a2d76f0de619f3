// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

struct BackgroundColorTests {
    private let store: NSUbiquitousKeyValueStore
    private let color = BackgroundColor(red: 0.2, green: 0.4, blue: 0.6)

    init() {
        TestHome.use()
        store = DictionaryStore()
    }

    @Test func `there is no colour before one is saved`() {
        #expect(BackgroundColor(numbersFrom: store) == nil)
        #expect(BackgroundColor(arrayFrom: store) == nil)
        #expect(BackgroundColor(dataFrom: store) == nil)
        #expect(BackgroundColor(hexFrom: store) == nil)
    }

    @Test func `a colour comes back from four numbers, an array, data and text`() throws {
        color.saveAsNumbers(to: store)
        color.saveAsArray(to: store)
        try color.saveAsData(to: store)
        color.saveAsHex(to: store)
        #expect(BackgroundColor(numbersFrom: store) == color)
        #expect(BackgroundColor(arrayFrom: store) == color)
        #expect(BackgroundColor(dataFrom: store) == color)
        #expect(BackgroundColor(hexFrom: store) == color)
        #expect(store.string(forKey: "background.hex") == "#336699")
    }

    @Test func `the default store is meant where none is named`() {
        color.saveAsArray()
        #expect(BackgroundColor(arrayFrom: .default) == color)
        #expect(BackgroundColor() == color)
    }
}

extension BackgroundColor {
    fileprivate init?() { self.init(arrayFrom: NSUbiquitousKeyValueStore()) }
}

#endif
