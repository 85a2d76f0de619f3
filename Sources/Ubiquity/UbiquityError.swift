// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Why something that this library was asked for did not happen.
public struct UbiquityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is, for a program to decide by.
    public enum Code: String, Hashable, Sendable {
        /// The app has no store identifier.
        case notConfigured
        /// This device is not signed in to an account, or its credential is no longer valid.
        case notSignedIn
        /// No server could be reached, or it did not answer.
        case unreachable
        /// Another process of this device holds its connection and does not answer, because it was
        /// stopped by a debugger or a signal. What was written is sent when it goes on or ends.
        case heldUp
        /// The server, or a limit, refuses what was asked.
        case refused
        /// The local file is damaged, of a newer version, or cannot be written.
        case storage
        /// The value is no property list, or the key cannot be one.
        case invalid
    }

    /// What kind of failure it is.
    public var code: Code
    /// One sentence for people.
    public var description: String
    /// The keys whose writes the server refused, in their order; empty except where
    /// ``UbiquityAdditions/synchronizeNow()`` throws it. Their keys have the last agreed values again,
    /// and ``UbiquityAdditions/refusedWrites()`` gives what was to be stored.
    ///
    /// At most 100 where another process holds the connection.
    public var refusedKeys: [String]

    package init(_ code: Code, _ description: String, refusedKeys: [String] = []) {
        self.code = code
        self.description = description
        self.refusedKeys = refusedKeys
    }

    /// Who waited for the store waits in vain.
    static let closed = UbiquityError(.storage, "the store was closed")

    /// The write of a key was refused.
    init(refused key: String, _ error: any Error) {
        let (code, reason): (Code, String) =
            switch error {
            case let error as NotPropertyList: (.invalid, error.description(forKey: key))
            case LimitViolation.keyTooLong: (.invalid, "\(error)")
            case is LimitViolation: (.refused, "\(error)")
            default: (.invalid, "\(error)")
            }
        self.init(code, "the write of the key \"\(key)\" was refused: \(reason)")
    }

    init(signIn error: any Error) {
        if let failure = error as? LinkFailure {
            self.init(failure)
        } else {
            self.init(.storage, "\(error)")
        }
    }

    package init(_ failure: LinkFailure) {
        let code: Code =
            switch failure.kind {
            case .unauthorized: .notSignedIn
            case .refused, .tooLarge, .clockAhead: .refused
            case .unreachable, .timedOut, .busy, .tooManyStreams, .cursorGone: .unreachable
            }
        self.init(
            code, failure.detail, refusedKeys: failure.refusedKeys.sorted().map(\.string))
    }
}

/// Gives what files and folders throw the form of the public API.
func storageErrors<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw UbiquityError(.storage, "\(error)") }
}
