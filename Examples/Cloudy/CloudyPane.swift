// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import ExampleStage
import Foundation

/// Bookmarks that several devices change at the same time.
@main
final class CloudyPane: Pane {
    static let name = "Cloudy"
    static let identifier = "EXAMPLES.cloudy"

    private enum Mode {
        case list
        case title(TextField)
        case address(TextField, title: String)
        case newTitle(TextField, address: String)
    }

    private let bookmarks: Bookmarks
    private var mode = Mode.list
    private var selected = 0
    /// Why the last thing was not done.
    private var trouble: String?

    init(_ device: StageDevice) { bookmarks = Bookmarks(device.store) }

    var isTyping: Bool { if case .list = mode { false } else { true } }

    // MARK: - The picture

    var lines: [Line] {
        var lines = bookmarks.all.enumerated().flatMap { index, item in
            [
                Line(item.bookmark.title, index == selectedIndex ? .reversed : .bold),
                Line("  " + item.address, Style(.cyan)),
            ]
        }
        if lines.isEmpty { lines = [Line("No bookmarks yet.", .dim)] }
        lines += ["", question]
        if let trouble { lines += wrapped(trouble).map { Line($0, Style(.red)) } }
        return lines
    }

    private var question: Line {
        switch mode {
        case .list: Line("a add  e edit  d delete  b one of 1.1 MB", .dim)
        case .title(let field), .address(let field, _), .newTitle(let field, _): field.line
        }
    }

    /// In lines that fit into half of a usual terminal.
    private func wrapped(_ text: String) -> [String] {
        var lines = [""]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].count + word.count > 36 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
        }
        return lines
    }

    /// Bookmarks may have gone meanwhile.
    private var selectedIndex: Int { min(selected, bookmarks.all.count - 1) }

    private var selection: (address: String, bookmark: Bookmark)? {
        bookmarks.all.isEmpty ? nil : bookmarks.all[selectedIndex]
    }

    // MARK: - Keys

    func press(_ key: Key) {
        switch mode {
        case .list: pressInList(key)
        case .title(let field):
            type(key, field, Mode.title) {
                mode = .address(TextField("Address", text: "https://"), title: $0)
            }
        case .address(let field, let title):
            type(key, field, { .address($0, title: title) }) {
                add(title: title, address: $0)
            }
        case .newTitle(let field, let address):
            type(key, field, { .newTitle($0, address: address) }) { title in
                attempt { try bookmarks.rename(address, to: title) }
            }
        }
    }

    private func pressInList(_ key: Key) {
        trouble = nil
        switch key {
        case .up: selected = max(0, selectedIndex - 1)
        case .down: selected = selectedIndex + 1
        case .character("a"): mode = .title(TextField("Title"))
        case .character("e"):
            guard let (address, bookmark) = selection else { return }
            mode = .newTitle(TextField("Title", text: bookmark.title), address: address)
        case .character("d"):
            guard let (address, _) = selection else { return }
            attempt { try bookmarks.delete(address) }
        case .character("b"):
            let title = "Huge " + String(repeating: "x", count: 1_100_000)
            add(title: title, address: "https://example.com/huge")
        default: break
        }
    }

    private func type(
        _ key: Key, _ field: TextField, _ next: (TextField) -> Mode, done: (String) -> Void
    ) {
        var field = field
        switch field.press(key) {
        case .typing: mode = next(field)
        case .cancelled: mode = .list
        case .done:
            mode = .list
            done(field.text)
        }
    }

    private func add(title: String, address: String) {
        attempt { try bookmarks.add(title: title, address: address) }
    }

    private func attempt(_ body: () throws -> Void) {
        do { try body() } catch { trouble = "\(error)" }
    }
}
