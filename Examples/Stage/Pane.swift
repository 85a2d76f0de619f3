// SPDX-License-Identifier: Apache-2.0

public import ExampleScreen
public import Foundation
public import Ubiquity
public import UbiquityDefaults

/// A view of an example's app on one device, and of what keys do in it.
@MainActor
public protocol Pane: AnyObject {
    /// The name of the example and of its program.
    static var name: String { get }
    /// The identifier of the app's store.
    static var identifier: String { get }
    /// Options of this example alone, each with a value, such as `--edition lite`.
    static var options: [String] { get }

    /// Starts the app.
    init(_ device: StageDevice) throws

    /// The lines to show.
    var lines: [Line] { get }
    /// The pane's style where the lines set none.
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
    /// Runs the example's program, of which the pane is the `@main` type.
    public static func main() async { await Stage.run(self) }
}

/// A device as an app finds it.
@MainActor
public struct StageDevice {
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
    /// The values given for the example's own options.
    public let options: [String: String]

    /// For tests, and for a stage of one's own.
    public init(
        number: Int, store: UbiquitousKeyValueStore, preferences: DefaultsDomain,
        defaults: UserDefaults, folder: String, options: [String: String] = [:]
    ) {
        self.number = number
        self.store = store
        self.preferences = preferences
        self.defaults = defaults
        self.folder = folder
        self.options = options
    }
}
