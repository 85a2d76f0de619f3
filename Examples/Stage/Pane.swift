// SPDX-License-Identifier: Apache-2.0

public import ExampleScreen
public import Foundation
public import Ubiquity
public import UbiquityDefaults

/// What an example shows of its app on one device, and what its keys do there.
@MainActor
public protocol Pane: AnyObject {
    /// What the example is called, as its program is.
    static var name: String { get }
    /// Of the app's store.
    static var identifier: String { get }
    /// Options of this example alone, each with a value, such as `--edition lite`.
    static var options: [String] { get }

    /// Starts the app.
    init(_ device: StageDevice) throws

    /// What there is to see.
    var lines: [Line] { get }
    /// How the pane looks where the lines do not say.
    var ground: Style { get }
    /// Whether any key is text.
    var isTyping: Bool { get }
    /// A key that is not the stage's.
    func press(_ key: Key)
}

extension Pane {
    /// None.
    public static var options: [String] { [] }
    /// As the terminal has it.
    public var ground: Style { .plain }
    /// Never.
    public var isTyping: Bool { false }
}

/// What an app finds on its device.
@MainActor
public struct StageDevice {
    /// Such as "device A".
    public let name: String
    /// 0 for the first.
    public let number: Int
    /// The app's store on this device.
    public let store: UbiquitousKeyValueStore
    /// The app's preferences.
    public let preferences: DefaultsDomain
    /// The same, for an app that writes them itself.
    public let defaults: UserDefaults
    /// For the app's own files.
    public let folder: String
    /// What the example's own options were given.
    public let options: [String: String]

    /// For tests, and for a stage of one's own.
    public init(
        name: String, number: Int, store: UbiquitousKeyValueStore, preferences: DefaultsDomain,
        defaults: UserDefaults, folder: String, options: [String: String] = [:]
    ) {
        self.name = name
        self.number = number
        self.store = store
        self.preferences = preferences
        self.defaults = defaults
        self.folder = folder
        self.options = options
    }
}
