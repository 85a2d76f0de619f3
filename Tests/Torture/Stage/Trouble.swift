// SPDX-License-Identifier: Apache-2.0

/// Why the torture cannot go on; nothing is said of promises.
struct Trouble: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Waits until something is so, and looks often.
/// - Throws: ``Trouble`` if it is not within the time.
func until(_ what: String, within seconds: Double, _ isSo: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
    while try await !isSo() {
        guard ContinuousClock.now < deadline else {
            throw Trouble("\(what) did not happen within \(seconds) s")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}
