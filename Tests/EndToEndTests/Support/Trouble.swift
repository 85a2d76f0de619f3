// SPDX-License-Identifier: Apache-2.0

/// Why a test cannot go on.
struct Trouble: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Waits until something is so, and looks often.
/// - Throws: ``Trouble`` after five minutes. The limit guards against hanging, and does not test
///   speed.
func until(_ what: String, _ isSo: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while try await !isSo() {
        guard ContinuousClock.now < deadline else { throw Trouble("\(what) never came") }
        try await Task.sleep(for: .milliseconds(5))
    }
}
