// SPDX-License-Identifier: Apache-2.0

internal import ExampleScreen
internal import Foundation

/// The devices of a stage on the terminal, until somebody ends it.
@MainActor
final class Play<App: Pane> {
    private let apps: [RunningApp<App>]
    private var focus = 0
    private var terminal: Terminal?
    private var isOver = false

    init(_ apps: [RunningApp<App>]) { self.apps = apps }

    /// Pictures a second, for what nobody tells of; one that is as the last costs nothing.
    private static var interval: Duration { .milliseconds(100) }

    func run() async {
        terminal = Terminal(resized: { [weak self] in self?.draw() }) { [weak self] key in
            self?.press(key)
            self?.draw()
        }
        while !isOver {
            draw()
            try? await Task.sleep(for: Self.interval)
        }
        terminal?.close()
    }

    func press(_ key: Key) {
        let app = apps[focus]
        switch key {
        case .tab where !app.pane.isTyping || apps.count > 1:
            focus = (focus + 1) % apps.count
        case .interrupt: isOver = true
        case _ where app.pane.isTyping: app.pane.press(key)
        case .character("q"): isOver = true
        case .character("o"): app.toggle()
        default: app.pane.press(key)
        }
    }

    private func draw() {
        guard let terminal else { return }
        let (columns, rows) = terminal.size
        terminal.show(frame(columns: columns, rows: rows))
    }

    /// - Parameter rows: Nil: as many as it takes.
    func frame(columns: Int, rows: Int?) -> Frame {
        let needed = apps.map { $0.pane.lines.count + 2 }.max() ?? 0
        let height = max(1, rows.map { $0 - 3 } ?? needed)
        let title = Line(" \(App.name)  ", .bold) + Line(subtitle, .dim)
        return Frame([title, ""], columns: columns)
            .above(panes(columns: columns, rows: height))
            .above(Frame([Line(keys, .dim)], columns: columns))
    }

    private func panes(columns: Int, rows: Int) -> Frame {
        let width = (columns - apps.count + 1) / apps.count
        let frames = apps.indices.map { index in
            // The last has what is over.
            apps[index].frame(
                columns: index == apps.count - 1 ? columns - (width + 1) * index : width,
                rows: rows, hasFocus: index == focus)
        }
        return frames.dropFirst().reduce(frames[0]) { $0.beside($1) }
    }

    private var subtitle: String {
        apps.count > 1 ? "two devices of one person, and a server" : "one device"
    }

    private var keys: String {
        let stage = apps.count > 1 ? "Tab other device   o offline/online   " : ""
        return " " + stage + "q end"
    }
}
