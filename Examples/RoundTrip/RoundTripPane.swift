// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import ExampleStage

/// A note whose title and text never come apart, and what a device sees of it while it is offline.
@main
final class RoundTripPane: Pane {
    static let name = "RoundTrip"
    static let identifier = "EXAMPLES.roundtrip"

    private enum Mode {
        case reading
        case title(TextField)
        case text(TextField, title: String)
    }

    private let notepad: Notepad
    private var mode = Mode.reading

    init(_ device: StageDevice) { notepad = Notepad(device.store, folder: device.folder) }

    var isTyping: Bool { if case .reading = mode { false } else { true } }

    var lines: [Line] {
        let note = notepad.note
        var lines: [Line] = [
            Line(note.title.isEmpty ? "No title" : note.title, .bold), Line(note.text), "", state,
            "",
        ]
        if let replaced = notepad.replaced {
            lines += [Line("Replaced: \(replaced.title), \(replaced.text)", .dim)]
        }
        switch mode {
        case .reading: lines.append(Line("e  edit   u  restore previous", .dim))
        case .title(let field), .text(let field, _): lines.append(field.line)
        }
        if let trouble = notepad.trouble { lines.append(Line(trouble, Style(.red))) }
        return lines
    }

    private var state: Line {
        switch notepad.progress {
        case .unwritten: Line("Nothing has been written yet.", .dim)
        case .inFile: Line("It is only in the file on this device.", Style(.red))
        case .waiting: Line("Title and text wait to be sent.", Style(.yellow))
        case .onServer: Line("The server has this note.", Style(.green))
        }
    }

    func press(_ key: Key) {
        switch mode {
        case .reading: pressReading(key)
        case .title(var field):
            switch field.press(key) {
            case .typing: mode = .title(field)
            case .cancelled: mode = .reading
            case .done:
                mode = .text(TextField("Text", text: notepad.note.text), title: field.text)
            }
        case .text(var field, let title):
            switch field.press(key) {
            case .typing: mode = .text(field, title: title)
            case .cancelled: mode = .reading
            case .done:
                mode = .reading
                notepad.write(Note(title: title, text: field.text))
            }
        }
    }

    private func pressReading(_ key: Key) {
        switch key {
        case .character("e"): mode = .title(TextField("Title", text: notepad.note.title))
        case .character("u"): notepad.takeBack()
        default: break
        }
    }
}
