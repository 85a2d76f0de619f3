// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// One note on all devices of a person, with a copy of it in a file of this device's.
///
/// The copy is the app's own: the store is there to carry values, and an app must still have them when
/// somebody signs out or another account comes. The app learns by it what was changed elsewhere while
/// it did not run.
@MainActor
final class Notepad {
    private let store: UbiquitousKeyValueStore
    private let file: URL
    private var reading: Task<Void, Never>?
    /// The note that this device shows, and keeps in its file.
    private(set) var note: Note
    /// The note that another device's note replaced.
    private(set) var replaced: Note?
    /// Why the last note was not kept.
    private(set) var trouble: String?

    private static let (titleKey, textKey) = ("note.title", "note.text")

    init(_ store: UbiquitousKeyValueStore, folder: String) {
        self.store = store
        file = URL(fileURLWithPath: folder).appendingPathComponent("note.json")
        let copy = try? JSONDecoder().decode(Note.self, from: Data(contentsOf: file))
        note = copy ?? Note()
        let changes = store.changes
        takeOver()
        reading = Task { [weak self] in
            for await change in changes where change.origin != .own { self?.takeOver() }
        }
    }

    deinit { reading?.cancel() }

    /// The note's progress from this device to the server.
    enum Progress {
        case unwritten
        /// In the file and not in the store, which another account may have emptied.
        case inFile
        /// In the store of this device.
        case waiting
        case onServer
    }

    var progress: Progress {
        if note == Note() { return .unwritten }
        if noteInStore != note { return .inFile }
        return store.status.pendingKeys.isEmpty ? .onServer : .waiting
    }

    /// Nil: none, or not a whole one.
    private var noteInStore: Note? {
        guard let title = store.string(forKey: Self.titleKey),
            let text = store.string(forKey: Self.textKey)
        else { return nil }
        return Note(title: title, text: text)
    }

    /// Writes both as one transaction. A note that does not fit changes nothing.
    func write(_ note: Note) {
        do {
            try store.performBatch { batch in
                try batch.set(note.title, forKey: Self.titleKey)
                try batch.set(note.text, forKey: Self.textKey)
            }
            trouble = nil
            keep(note)
        } catch { trouble = "\(error)" }
    }

    /// Puts back what another device's note took the place of.
    func takeBack() {
        guard let note = replaced else { return }
        replaced = nil
        write(note)
    }

    /// Nothing in the store: the copy stays, and goes there when it is written the next time.
    private func takeOver() {
        guard let new = noteInStore, new != note else { return }
        if note != Note() { replaced = note }
        keep(new)
    }

    private func keep(_ note: Note) {
        self.note = note
        do { try JSONEncoder().encode(note).write(to: file, options: .atomic) } catch {
            trouble = "the copy was not written: \(error.localizedDescription)"
        }
    }
}
