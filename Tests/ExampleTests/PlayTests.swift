// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Foundation
import Testing
import Ubiquity

@testable import ExampleStage

/// The keys that are the stage's, with devices that nobody is signed in on.
@MainActor
struct PlayTests {
    private let apps: [RunningApp<Recorder>]
    private let play: Play<Recorder>

    init() throws {
        apps = try ["A", "B"].map { name in
            let suite = TestFiles.prefix + UUID().uuidString
            return try RunningApp(
                name, home: NSTemporaryDirectory() + "/" + suite, suite: suite, options: [:])
        }
        play = Play(apps)
    }

    private func pressed(on app: Int) -> [Key] { apps[app].pane.pressed }

    @Test func `keys go to the device that Tab has chosen`() {
        for key in [Key.up, .tab, .down, .tab, .enter] { play.press(key) }
        #expect(pressed(on: 0) == [.up, .enter])
        #expect(pressed(on: 1) == [.down])
    }

    @Test func `the stage's own keys are text where somebody types`() {
        apps[0].pane.isTyping = true
        for key in [Key.character("q"), .character("o"), .escape] { play.press(key) }
        #expect(pressed(on: 0) == [.character("q"), .character("o"), .escape])
        apps[0].pane.isTyping = false
        for key in [Key.character("o"), .character("q")] { play.press(key) }
        #expect(pressed(on: 0).count == 3)
    }

    @Test func `the picture has both devices, and fits`() {
        let frame = play.frame(columns: 60, rows: 10)
        #expect((frame.columns, frame.rows) == (60, 10))
        for text in ["Recorder", "A", "B", "signed out", "Tab other device"] {
            #expect(frame.text.contains(text))
        }
        #expect(frame.text.components(separatedBy: "what there is to see").count == 3)
        for columns in 0..<12 { #expect(play.frame(columns: columns, rows: 1).rows >= 1) }
    }
}

/// An app that takes note of its keys.
final class Recorder: Pane {
    static let name = "Recorder"
    static let identifier = "EXAMPLES.recorder"

    var isTyping = false
    private(set) var pressed: [Key] = []

    init(_ device: StageDevice) {}

    var lines: [Line] { ["what there is to see"] }
    func press(_ key: Key) { pressed.append(key) }
}
