// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// The first run of an empty server: the link in its log by which a browser makes the first account.
///
/// The link has a sign-in code for an account that does not exist yet, and grants no more than that:
/// whoever opens it first gets one account, not the operator's rights.
///
/// State: `isEmpty`, set with the link, and reset once an account was made or found, which ends the
/// search; if all accounts are erased, a restart makes a new link.
final class FirstRun: Sendable {
    private let isEmpty = Atomic(false)
    private let storage: any AccountStorage & PairingStorage
    private let settings: ServerSettings
    private let tls: TLSIdentity?

    /// - Parameter tls: Nil if devices do not see it.
    init(
        storage: any AccountStorage & PairingStorage, settings: ServerSettings, tls: TLSIdentity?
    ) {
        (self.storage, self.settings, self.tls) = (storage, settings, tls)
    }

    /// Makes a link; nil if there is an account, or no page to open. Blocks.
    /// - Parameter port: The port that the server listens on.
    func link(port: Int) throws(StorageError) -> String? {
        guard settings.servesPage else { return nil }
        let (code, now) = (TypedCode.random(.signIn), settings.clock.now())
        let new = NewCode(
            hash: code.hash, account: .random(),
            expiresMilliseconds: now + PairingRule.firstCodeMilliseconds)
        guard try storage.addFirstCode(new, now: now) else { return nil }
        isEmpty.store(true, ordering: .relaxed)
        // Browsers send what is after a number sign to nobody.
        let pin = tls?.pin.map { ";\($0)" } ?? ""
        return "\(settings.address(port: port))/#\(code.text)\(pin)"
    }

    /// Whether the page is to show how to make the first account, as of the last look.
    var needsFirstAccount: Bool { isEmpty.load(ordering: .relaxed) }

    /// Records that there is an account. Call before the request that made it is answered, because its
    /// sender may open the page at once.
    func end() { isEmpty.store(false, ordering: .relaxed) }

    /// Checks whether another node has made an account by now. Blocks.
    func look() throws(StorageError) {
        if needsFirstAccount, try !storage.accounts(after: nil, max: 1).isEmpty { end() }
    }
}
