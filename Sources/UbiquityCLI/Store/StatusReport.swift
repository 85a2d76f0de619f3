// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// The output of `status`.
struct StatusReport {
    var home: String
    var account: SignedInAccount?
    var store: (identifier: String, status: EngineStatus)?
    /// The name that the store's app was registered with, if the server was asked and knows one.
    var appName: String?
    /// Whether a store was named that does not exist yet.
    var isStoreMissing = false
    /// False if no process of this device talks to the server now, so the last known state is old.
    var knowsConnection = true
    /// The other process that holds the connection, and will go on after this command; nil if there
    /// is none.
    var leader: String?
    /// The process that holds the connection and does not respond, or was stopped.
    var heldUpBy: String?
    /// The server does not let this device use the store, and retrying will not help.
    var isRefused = false
    /// Nil if the server was not asked, or did not say.
    var sealing: SealingProgress?
    /// This device as the server knows it; nil if the server was not asked.
    var ownDevice: Result<ServerDevice, UbiquityError>?

    /// A sentence, and below it the details.
    var text: TerminalText {
        let rows = [("Folder", home)] + accountRows + storeRows
        let width = rows.map(\.0.count).max() ?? 0
        return "\(Output.styled("\(sentence)", .bold))\n\n"
            + TerminalText(
                lines: rows.map { name, value in
                    let padding = String(repeating: " ", count: width + 2 - name.count)
                    return "\(Output.styled("\(name)", .dim))\(padding)\(value)"
                })
    }

    /// The state of sync in one sentence, with advice where there is something to do. Only this
    /// command's process ends now, so what happens later is left to ``leader``.
    var sentence: String {
        guard let (_, status) = store else {
            return account.map(sentence) ?? Self.notSignedIn
        }
        if let failure = status.diskFailure {
            return "Changes cannot be saved on this device: \(failure)"
        }
        let waiting = Waiting(count: status.pendingKeys.count)
        guard account != nil else {
            return Self.notSignedIn
        }
        if status.link.state == .unauthorized {
            return Self.unauthorized + "\(waiting.then("until then"))."
        }
        if isRefused {
            return "The server does not let this device use this store"
                + (waiting.count > 0
                    ? ", so \(waiting.keys) \(waiting.verb("stays", "stay")) here" : "")
                + (status.link.lastError.map { ": \($0)" } ?? "") + "."
        }
        if let heldUpBy {
            return
                "\(heldUpBy) holds the connection and does not respond, so nothing is synced; let "
                + "it continue (kill -CONT), or end it."
        }
        if let unsendable = status.unsendable {
            return sentence(status, waiting) + " But \(unsendable)."
        }
        return sentence(status, waiting)
    }

    private static let notSignedIn = "This device is not signed in, so values stay on it."
    private static let unauthorized =
        "The server does not accept this device's sign-in any more. Sign in again with `ubiquity "
        + "sign-in --replace`"

    /// Without a store.
    private func sentence(_ account: SignedInAccount) -> String {
        let signedIn = "This device is signed in to \(account.accountName)"
        return switch ownDevice {
        case nil: "\(signedIn). The server was not asked."
        case .success where sealing?.isLocked ?? false: "\(signedIn). \(Phrase.locked)"
        case .success: "\(signedIn), and the server accepts it."
        case .failure(let error) where error.code == .notSignedIn: Self.unauthorized + "."
        case .failure(let error) where error.code == .refused:
            "\(signedIn), but the server refuses to answer: \(error.description)."
        case .failure(let error):
            "\(signedIn), but the server cannot be reached: \(error.description)."
        }
    }

    private func sentence(_ status: EngineStatus, _ waiting: Waiting) -> String {
        let sync = waiting.count > 0 ? "; `ubiquity sync` sends \(waiting.verb("it", "them"))" : ""
        guard knowsConnection else {
            return "The server was not asked. \(waiting.sentence)\(sync)."
        }
        switch status.link.state {
        case .connected, .polling:
            if waiting.count == 0 {
                return status.hasCompletedFirstSync
                    ? "Everything is synced." : "The first download is not complete yet."
            }
            if status.link.state == .connected, let reason = status.link.lastError {
                return "The server can be reached, but does not take changes: \(reason). "
                    + "\(waiting.sentence)\(sync)."
            }
            return leader.map { "\($0) is connected, and sends \(waiting.keys)." }
                ?? "The server can be reached. \(waiting.sentence)\(sync)."
        case .locked: return "\(Phrase.locked) \(waiting.sentence)."
        case .waiting, .connecting, .signedOut, .unauthorized:
            let reason = status.link.lastError.map { ": \($0)" } ?? ""
            let retry =
                leader.map { "\($0) tries again" } ?? "`ubiquity sync` tries again"
            return "The server cannot be reached\(reason). \(waiting.sentence); \(retry)."
        }
    }

    /// The keys that wait to be sent, in words.
    private struct Waiting {
        var count: Int

        var keys: String { Phrase.keys(count) }
        func verb(_ one: String, _ several: String) -> String { count == 1 ? one : several }
        var sentence: String {
            count == 0
                ? "Nothing waits to be sent" : "\(keys) \(verb("waits", "wait")) to be sent"
        }
        func then(_ time: String) -> String {
            count == 0 ? "" : "; \(keys) \(verb("waits", "wait")) \(time)"
        }
    }

    /// In milliseconds, as the server measured it; nil if that is not known.
    private var clockAhead: Int64? { try? ownDevice?.get().clockAheadMilliseconds }

    /// Whether the server accepts the sign-in; nil if it did not say.
    private var isAccepted: Bool? {
        switch ownDevice {
        case .success: true
        case .failure(let error) where error.code == .notSignedIn: false
        case .failure, nil: nil
        }
    }

    private var accountRows: [(String, String)] {
        guard let account else {
            return [("Account", "not signed in; values stay on this device")]
        }
        return [
            ("Account", "\(account.accountName) at \(account.server)"),
            ("Device", "\(account.deviceName) (\(account.device.shortID))"),
        ] + (clockAhead.map { [("Clock", Phrase.clock($0))] } ?? [])
            + (sealingText.map { [("Sealed", $0)] } ?? [])
            + (security(of: account).map { [("Encryption", $0)] } ?? [])
            + (HTTPTransport.proxy(of: account).map { [("Proxy", $0)] } ?? [])
    }

    /// Nil if the account is not sealed.
    private var sealingText: String? {
        guard let sealing else { return nil }
        let author = Phrase.author(of: sealing.server).map { ", \($0)" } ?? ""
        if sealing.isLocked { return "yes\(author), and this device does not have the key" }
        let isSealed = sealing.server.generation > 0
        if sealing.step == .restored || !isSealed && sealing.keyring != nil {
            return "not as before; see `ubiquity encryption status`"
        }
        return isSealed ? "yes\(author)" : nil
    }

    /// Nil if the connection is as it should be.
    private func security(of account: SignedInAccount) -> String? {
        guard let address = try? ServerAddress(account.server) else { return nil }
        if !address.isPrivate {
            return "none: anybody on the network can read the credential; sign in again with https"
        }
        if let pin = account.pin { return "only with the server's key \(pin)" }
        return account.certificates == nil ? nil : "with the certificate given at sign-in"
    }

    private var storeRows: [(String, String)] {
        guard let (identifier, status) = store else {
            let row = ("Store", "none given; use --store IDENTIFIER to see one")
            return isStoreMissing ? [] : [row]
        }
        let (usage, limits) = (status.usage, status.limits)
        let rows: [(String, String?)] = [
            ("Store", identifier), ("App", appName), ("Connection", connection(status.link)),
            ("Held up by", heldUpBy.map { "\($0), which does not respond" }),
            ("Waiting", waiting(status)),
            ("Never sent", status.unsendable?.description),
            ("Keys", "\(Phrase.grouped(usage.keys)) of \(Phrase.grouped(limits.keysMax))"),
            ("Values", "\(Phrase.grouped(usage.bytes)) of \(Phrase.bytes(limits.storeBytesMax))"),
            ("First download", status.hasCompletedFirstSync ? "complete" : "not yet complete"),
            ("Last synced", status.link.lastSync.map(Phrase.time) ?? "never"),
            ("Last error", status.link.lastError),
            ("Next try", nextRetry(status.link).map(Phrase.time)),
            ("Disk", status.diskFailure),
        ]
        return rows.compactMap { name, value in value.map { (name, $0) } }
    }

    /// Nil where nobody will try again: this command's process ends now, and only another one that
    /// holds the connection goes on.
    private func nextRetry(_ link: LinkStatus) -> Int64? {
        let goesOn = leader != nil && heldUpBy == nil && !isRefused && link.state != .unauthorized
        return goesOn ? link.nextRetry : nil
    }

    private func waiting(_ status: EngineStatus) -> String {
        let count = status.pendingKeys.count
        if count == 0 { return "nothing" }
        return Phrase.keys(count) + (isRefused ? ", which the server does not accept" : "")
    }

    private func connection(_ link: LinkStatus) -> String {
        if !knowsConnection { return "not asked for" }
        if isRefused { return "refused by the server, for this store" }
        return switch link.state {
        case .connected where leader == nil, .polling where leader == nil:
            "the server answers; no program stays connected"
        case .connected: "connected, by \(leader ?? "")"
        case .polling:
            "connected, by \(leader ?? ""), without a live stream; it asks for changes at least once "
                + "a minute"
        case .connecting: "no answer yet"
        case .waiting: leader.map { "not connected; \($0) tries again" } ?? "not connected"
        case .unauthorized: "refused by the server; sign in again"
        case .locked: "none; this device does not have the account's key"
        case .signedOut: "none; this device is not signed in"
        }
    }
}

extension StatusReport {
    var json: JSON {
        [
            "home": .string(home), "account": accountJSON,
            "isAccepted": isAccepted.map(JSON.boolean) ?? .null,
            "isSealed": sealing.map { .boolean($0.server.generation > 0) } ?? .null,
            "isLocked": sealing.map { .boolean($0.isLocked) } ?? .null,
            "clockAhead": .seconds(clockAhead),
            "store": storeJSON,
        ]
    }

    private var accountJSON: JSON { account.map(JSON.account) ?? .null }

    private var storeJSON: JSON {
        guard let (identifier, status) = store else { return .null }
        return [
            "identifier": .string(identifier),
            "connection": .optional(knowsConnection ? status.link.state.rawValue : nil),
            "heldUpBy": .optional(heldUpBy), "pendingKeys": .integer(status.pendingKeys.count),
            "neverSent": .optional(status.unsendable?.description),
            "keys": .integer(status.usage.keys), "keysMax": .integer(status.limits.keysMax),
            "bytes": .integer(status.usage.bytes),
            "bytesMax": .integer(status.limits.storeBytesMax),
            "firstSyncCompleted": .boolean(status.hasCompletedFirstSync),
            "lastSync": .optional(status.link.lastSync.map(Phrase.isoTime)),
            "lastError": .optional(status.link.lastError),
            "nextRetry": .optional(nextRetry(status.link).map(Phrase.isoTime)),
            "diskError": .optional(status.diskFailure),
        ]
    }
}

extension JSON {
    /// Omits the credential.
    static func account(_ account: SignedInAccount) -> JSON { .object(accountFields(account)) }

    static func accountFields(_ account: SignedInAccount) -> [(String, JSON)] {
        [
            ("name", .string(account.accountName)), ("id", .string(account.account)),
            ("server", .string(account.server)), ("device", .string(account.device)),
            ("deviceName", .string(account.deviceName)),
        ]
    }
}
