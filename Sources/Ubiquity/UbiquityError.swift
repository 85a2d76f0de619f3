// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The error for anything that this library failed to do.
public struct UbiquityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a failure, for programs.
    public enum Code: String, Hashable, Sendable {
        /// The app has no store identifier.
        case notConfigured
        /// This device is not signed in to an account, or its credential is no longer valid.
        case notSignedIn
        /// No server could be reached, or it did not respond.
        case unreachable
        /// Another process of this device holds the connection and does not respond, because it was
        /// stopped by a debugger or a signal. Writes are sent when it continues or ends.
        case heldUp
        /// The server or a limit refuses the request.
        case refused
        /// The local file is damaged, of a newer version, or cannot be written.
        case storage
        /// The server has something that this device does not take, see ``UbiquityStatus/setAsideKeys``.
        /// Reported once, until nothing is left of it.
        case notTaken
        /// The value is not a property list, or the key is invalid.
        case invalid
    }

    /// The kind of the failure.
    public var code: Code
    /// A sentence for people.
    public var description: String
    /// The keys whose writes the server refused, sorted. Empty unless thrown by
    /// ``UbiquityAdditions/synchronizeNow()``. These keys have the last confirmed values again, and
    /// ``UbiquityAdditions/refusedWrites()`` returns what was to be stored.
    ///
    /// At most 100 if another process holds the connection.
    public var refusedKeys: [String]

    package init(_ code: Code, _ description: String, refusedKeys: [String] = []) {
        self.code = code
        self.description = description
        self.refusedKeys = refusedKeys
    }

    /// For callers that still wait for a store when it is closed.
    static let closed = UbiquityError(.storage, "the store was closed")

    /// The error for a refused write of a key.
    init(refused key: String, _ error: any Error) {
        let (code, reason): (Code, String) =
            switch error {
            case let error as UnsupportedValue: (.invalid, error.description(forKey: key))
            case LimitViolation.keyTooLong: (.invalid, "\(error)")
            case is LimitViolation: (.refused, "\(error)")
            default: (.invalid, "\(error)")
            }
        self.init(code, "the write of the key \"\(key)\" was refused: \(reason)")
    }

    /// The error for a refused transaction of these keys.
    init(refused keys: some Sequence<Key>, _ error: any Error) {
        self.init(refused: keys.sorted().map(\.string).joined(separator: "\", \""), error)
    }

    package init(_ failure: LinkFailure) {
        let code: Code =
            switch failure.kind {
            case .unauthorized: .notSignedIn
            case .refused, .sealed, .tooLarge, .clockAhead: .refused
            case .unreachable, .timedOut, .busy, .tooManyStreams, .cursorGone: .unreachable
            }
        self.init(
            code, failure.detail, refusedKeys: failure.refusedKeys.sorted().map(\.string))
    }
}

/// Converts errors of files and folders to those of the public API.
func storageErrors<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw UbiquityError(.storage, "\(error)") }
}
