// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.notes")

// snippet.room
let status = store.status
print("\(status.bytes) of \(status.bytesMax) bytes, \(status.keys) of \(status.keysMax) keys")
// snippet.end

// snippet.throwing
extension UbiquityKeys {
    static let draft = UbiquityKey("draft", default: "")
}

func save(_ draft: String) {
    do {
        try store.set(draft, for: .draft)
    } catch let error as UbiquityError where error.code == .refused {
        print("there is no room: \(error)")
    } catch {
        print("it cannot be stored: \(error)")
    }
}
// snippet.end

// snippet.errors
func logErrors() async {
    for await error in store.errors { print("\(error.code): \(error)") }
}
// snippet.end

// snippet.refused
func rescueRefusedWrites(into folder: URL) throws {
    for (number, write) in try store.refusedWrites().enumerated() {
        let text = "\(write.key), \(write.date): \(write.value ?? "removed")\n\(write.reason)\n"
        try Data(text.utf8).write(to: folder.appendingPathComponent("refused-\(number).txt"))
    }
    try store.forgetRefusedWrites()
}
// snippet.end

// snippet.configure
var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.notes")
configuration.keyLimit = .utf16Units(128)
#if DEBUG
configuration.isStrict = true
#endif
// snippet.end

// snippet.hide
save("Dear diary")
let task = Task { await logErrors() }
task.cancel()
if CommandLine.arguments.count > 1 {
    try rescueRefusedWrites(into: URL(fileURLWithPath: CommandLine.arguments[1]))
    try UbiquitousKeyValueStore.configureDefault(configuration)
}
