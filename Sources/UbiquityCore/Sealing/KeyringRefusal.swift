// SPDX-License-Identifier: Apache-2.0

/// The reason that a code, or keys from outside, are not taken. None repeats them.
package enum KeyringRefusal: Error, Hashable, Sendable {
    /// The keys are from before the account's present key.
    case older
    /// They are not the ones that the account is sealed with, according to its server.
    case other
    /// They do not go on from the keys that the device has.
    case unrelated
    /// The account is not sealed, according to its server.
    case notSealed
    /// No device has left keys for the code's secret.
    case noKeys
    /// The code cannot be read.
    case mistyped
    /// A secret without the rest of its code, or a recovery key, in place of a code.
    case secretAlone
    /// The code is not one that a locked device shows.
    case notOfLocked
    /// The device does not have the keys that another one asks for.
    case lackingKeys
    /// The keys are of so many stores that they do not fit into a handover.
    case tooMany
    /// The server's answer is not one.
    case unreadable
    /// The server has nothing for the recovery key.
    case noRecoveryKey
    /// In place of a recovery key, so many letters and digits.
    case recoveryKeyLength(Int)
    case recoveryKeyMistyped
    /// The recovery key does not open the account's keys.
    case recoveryKeyOther
}

extension KeyringRefusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .older:
            "these keys are from before the account's present key; use a device that has the newest, or "
                + "the newest recovery key"
        case .other: "these keys are not the ones that the account is sealed with on this server"
        case .unrelated:
            "these keys do not go on from the ones that this device has of the account, so they were "
                + "not taken: use another of your own devices. If the account was reset, save what you "
                + "need from this device, sign it out and wipe it, and sign in again"
        case .notSealed:
            "the account is not sealed, according to its server, so there is no key to get. If this "
                + "device is locked, the account was reset, or the server is not honest: sign in anew"
        case .noKeys: "no device has given keys for this code; show a new one"
        case .mistyped: "the code was mistyped, or a part of it is missing"
        case .secretAlone:
            "that is a recovery key, or a part of a code, which is shown to nobody; give the whole code"
        case .notOfLocked: "that is not the code of a locked device"
        case .lackingKeys: "this device does not have the keys that the other one asks for"
        case .tooMany: "the keys of so many stores do not fit"
        case .unreadable: "what the server answers about the account's keys cannot be read"
        case .noRecoveryKey:
            "the server keeps nothing that a recovery key opens here: the account has none, or this device "
                + "may use some stores only; get the key from another device"
        case .recoveryKeyLength(let count):
            "a recovery key has \(RecoveryKey.textDigits) letters and digits, and this has \(count); a "
                + "code of a locked device begins with \"ubiquity:\""
        case .recoveryKeyMistyped:
            "the recovery key was mistyped: a letter or digit is wrong, or two are exchanged"
        case .recoveryKeyOther:
            "that recovery key was typed right, but it is not this account's present one: it is an older "
                + "one, or another account's"
        }
    }
}
