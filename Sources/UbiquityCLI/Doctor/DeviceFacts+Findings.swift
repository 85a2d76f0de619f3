// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension DeviceFacts {
    /// The conclusions from the facts, in diagnostic order.
    var findings: [Finding] {
        [homeFinding, signInFinding] + contactFindings
            + [sealingFinding, identifierFinding].compactMap(\.self)
            + stores.flatMap { findings(of: $0) } + [diskFinding, watchFinding].compactMap(\.self)
    }

    private var homeFinding: Finding {
        switch home {
        case .none(let reason): .problem("home", reason)
        case .missing(let path, canBeMade: false):
            .problem(
                "home",
                "There is no folder \(path), and it cannot be made: the folder above it cannot be "
                    + "written. Choose another with UBIQUITY_HOME.")
        case .missing(let path, canBeMade: true):
            .note(
                "home",
                "There is no folder \(path) yet; the first program that stores a value creates it.")
        case .folder(let path, _, isOwn: false):
            .problem(
                "home",
                "The folder \(path) belongs to another user, or cannot be written; give it to the "
                    + "user that runs the programs (chown), or choose another with UBIQUITY_HOME.")
        case .folder(let path, let mode, _)
        where fileSystem.isNetwork || fileSystem != .local && mode & 0o077 == 0:
            Finding("home", fileSystem, of: path) ?? .ok("home", "The folder is \(path).")
        case .folder(let path, let mode, _) where mode & 0o077 != 0:
            .problem(
                "home",
                "Other users can read the folder \(path); make it private: chmod 700 \(path)")
        case .folder(let path, _, _):
            .ok(
                "home",
                "The folder is \(path), and only you can access it.")
        }
    }

    private var signInFinding: Finding {
        switch signIn {
        case .unreadable(let sentence): .problem("sign-in", sentence)
        case .none:
            .note(
                "sign-in",
                "This device is not signed in, so values stay on it; run `ubiquity sign-in` with a "
                    + "code from the server operator.")
        case .account(let name, let server, let device):
            .ok("sign-in", "Signed in to \(name) at \(server) as \(device).")
        }
    }

    // MARK: The connection to the server

    private var contactFindings: [Finding] {
        guard let contact else { return [] }
        return [
            proxyFinding(contact), nameFinding(contact), connectionFinding(contact),
            serverFinding(contact), encryptionFinding(contact), credentialFinding(contact),
            clockFinding(contact),
        ].compactMap(\.self)
    }

    private func proxyFinding(_ contact: Contact) -> Finding? {
        contact.proxy.map { proxy in
            .ok(
                "proxy",
                "The proxy \(proxy), which the environment names, leads to \(contact.host).")
        }
    }

    private func nameFinding(_ contact: Contact) -> Finding? {
        switch contact.name {
        case nil: nil
        case .success: .ok("name", "The name \(contact.host) can be resolved.")
        case .failure(let reason):
            .problem(
                "name",
                "The name \(contact.host) has no address (\(reason)); check that this machine is "
                    + "online and that the name is spelt right.")
        }
    }

    private func connectionFinding(_ contact: Contact) -> Finding? {
        switch contact.connection {
        case nil: nil
        case .success:
            .ok(
                "connection",
                "\(contact.host) accepts connections on port \(contact.port).")
        case .failure(let reason):
            .problem(
                "connection",
                "\(contact.host) accepts no connections on port \(contact.port) (\(reason)); check "
                    + "that the server is running there and that no firewall blocks it.")
        }
    }

    private func serverFinding(_ contact: Contact) -> Finding? {
        switch contact.server {
        case nil: nil
        case .success: .ok("server", "A Ubiquity server answers there.")
        case .failure(let reason):
            .problem("server", "The server there cannot be used: \(reason).")
        }
    }

    private func encryptionFinding(_ contact: Contact) -> Finding? {
        guard contact.server == .success else { return nil }
        if contact.isEncrypted {
            return .ok(
                "encryption",
                "The connection to the server is encrypted.")
        }
        if PlainHTTPRule.isLoopback(contact.host) {
            return .ok("encryption", "The server is on this machine; nothing goes over a network.")
        }
        return .problem(
            "encryption",
            "The connection to the server is not encrypted: anybody on the network can read the "
                + "values and this device's credential. Set up TLS on the server, and sign in to "
                + "its https address.")
    }

    private func credentialFinding(_ contact: Contact) -> Finding? {
        switch contact.credential {
        case nil: nil
        case .valid: .ok("credential", "The server recognises this device.")
        case .refused:
            .problem(
                "credential",
                "The server refuses this device: it was signed out there, or the server was "
                    + "restored from a backup made before it signed in. Sign in again with a new "
                    + "code: `ubiquity sign-in --replace`. Waiting changes are sent then, if it is "
                    + "the same account.")
        case .unknown(let reason):
            .note("credential", "Cannot tell whether the server knows this device: \(reason).")
        }
    }

    private func clockFinding(_ contact: Contact) -> Finding? {
        guard let clock = contact.clock else { return nil }
        let difference = clock.differenceMilliseconds
        guard difference.magnitude > Self.clockErrorMax + clock.uncertaintyMilliseconds.magnitude
        else { return .ok("clock", "This device's clock and the server's agree.") }
        let seconds = Phrase.counted(Int(difference.magnitude / 1_000), "second")
        return .note(
            "clock",
            "This device's clock is \(seconds) \(difference > 0 ? "ahead of" : "behind") the "
                + "server's. Writes are corrected by that; still, synchronise the clocks over the "
                + "network.")
    }

    private var sealingFinding: Finding? {
        switch sealing {
        case nil, .some(.none): nil
        case .withKey?: .ok("sealing", "The account is sealed, and this device has its key.")
        case .locked?:
            .problem("sealing", Phrase.locked + " Nothing is synced meanwhile.")
        case .restored?:
            .problem(
                "sealing",
                "The account is not sealed as this device knows it, so nothing is synced: "
                    + "`ubiquity encryption status` says more.")
        }
    }

    private static let clockErrorMax: UInt64 = 5_000

    // MARK: The store

    private var identifierFinding: Finding {
        switch identifier {
        case .named(let name, let source):
            .ok("identifier", "The store is \(name), from \(source).")
        case .none where !stores.isEmpty:
            .ok("identifier", "No store is given; all stores of this device are checked.")
        case .none:
            .note(
                "identifier",
                "No store is given: use --store, or set UBIQUITY_KVSTORE_IDENTIFIER. An app can "
                    + "name its own in code or in an entitlements file beside it.")
        case .invalid(let sentence): .problem("identifier", sentence)
        }
    }

    private func findings(of store: Store) -> [Finding] {
        switch store.content {
        case nil:
            [
                Finding.note(
                    "store",
                    "\(store.identifier): no program has opened this store on this device yet."),
                accessFinding(store),
            ].compactMap(\.self)
        case .failure(let failure):
            [.problem("store", "\(store.identifier): \(failure.sentence)")]
        case .success(let content):
            [
                fileFinding(store, content), accessFinding(store), leaseFinding(store),
                waitingFinding(store, content),
                content.unsendable.map { .problem("unsendable", "\(store.identifier): \($0).") },
                Phrase.setAside(content.setAside).map {
                    .problem("set-aside", "\(store.identifier): \($0)")
                },
                refusedFinding(store, content), roomFinding(store, content),
            ].compactMap(\.self)
        }
    }

    private func fileFinding(_ store: Store, _ content: Store.Content) -> Finding {
        let keys = Phrase.keys(content.usage.keys)
        return .ok("store", "\(store.identifier): the file is intact, with \(keys).")
    }

    private func accessFinding(_ store: Store) -> Finding? {
        store.refusal.map {
            .problem(
                "access",
                "\(store.identifier): the server does not allow this device to access this store, "
                    + "and nothing in it is sent: \($0).")
        }
    }

    private func leaseFinding(_ store: Store) -> Finding? {
        switch store.lease {
        case .free:
            .ok("lease", "\(store.identifier): no program has this store open and connected now.")
        case .held(let holder, isStopped: true):
            .problem(
                "lease",
                "\(store.identifier): \(holder ?? "a program") holds the connection and is "
                    + "stopped, so nothing is sent; let it continue (kill -CONT), or end it.")
        case .held(let holder, isStopped: false):
            .ok("lease", "\(store.identifier): \(holder ?? "a program") holds the connection.")
        case .unknown: nil
        }
    }

    private func waitingFinding(_ store: Store, _ content: Store.Content) -> Finding {
        let agreed = content.link.lastSync.map { "last synced \(Phrase.time($0))" } ?? "never yet"
        let waiting = Phrase.keys(content.pendingCount)
        guard content.pendingCount > 0, case .account = signIn else {
            return content.pendingCount == 0
                ? .ok("waiting", "\(store.identifier): nothing waits to be sent (\(agreed)).")
                : .note(
                    "waiting",
                    "\(store.identifier): \(waiting) \(content.pendingCount == 1 ? "waits" : "wait") "
                        + "until this device is signed in; if it was before, to the same account.")
        }
        let error = content.link.lastError.map { "; the last attempt: \($0)" } ?? ""
        let sentence =
            "\(store.identifier): \(waiting) \(content.pendingCount == 1 ? "waits" : "wait") to be "
            + "sent (\(agreed)\(error))"
        return .note("waiting", sentence + outlook(store, content))
    }

    /// The condition under which waiting writes will be sent.
    private func outlook(_ store: Store, _ content: Store.Content) -> String {
        if store.refusal != nil { return "; this device may not send it." }
        let isUnauthorized =
            switch contact?.credential {
            case .valid?: false
            case .refused?: true
            case .unknown?, nil: content.link.state == .unauthorized
            }
        if isUnauthorized { return "; it is sent when this device is signed in again." }
        guard store.lease == .free else { return "." }
        return "; no program is connected: `ubiquity sync` "
            + (content.link.lastError == nil ? "sends it now." : "tries again.")
    }

    private func refusedFinding(_ store: Store, _ content: Store.Content) -> Finding? {
        let keys = content.refusedKeys
        guard let newest = keys.first else { return nil }
        return .note(
            "refused",
            "\(store.identifier): the server refused "
                + "\(Phrase.counted(keys.count, "write")), of \(Phrase.names(Set(keys).sorted())); "
                + "see `ubiquity history \(Phrase.word(newest.string)) --store "
                + "\(Phrase.word(store.identifier))`.")
    }

    private func roomFinding(_ store: Store, _ content: Store.Content) -> Finding {
        let (usage, limits) = (content.usage, content.limits)
        let shares = [
            Double(usage.bytes) / Double(max(1, limits.storeBytesMax)),
            Double(usage.keys) / Double(max(1, limits.keysMax)),
        ]
        let share = shares.max() ?? 0
        let sentence =
            "\(store.identifier): \(Phrase.grouped(usage.bytes)) of "
            + "\(Phrase.bytes(limits.storeBytesMax)) and \(Phrase.grouped(usage.keys)) of "
            + "\(Phrase.keys(limits.keysMax)) are used"
        if share >= 1 {
            return .problem(
                "room",
                sentence + ": it is full, and refuses anything that would make it larger; remove "
                    + "keys.")
        }
        return share >= Self.shareNoted
            ? .note("room", sentence + ": it is nearly full.") : .ok("room", sentence + ".")
    }

    private static let shareNoted = 0.9

    // MARK: The machine

    private var diskFinding: Finding? {
        guard let freeBytes else { return nil }
        let free = "\(Phrase.grouped(freeBytes >> 20)) MB are free on the disk of the folder"
        if freeBytes < Self.freeBytesMin {
            return .problem("disk", free + "; make room, or writes may not be saved.")
        }
        return freeBytes < Self.freeBytesNoted
            ? .note("disk", free + "; it is nearly full.") : .ok("disk", free + ".")
    }

    private static let freeBytesMin = 16 << 20
    private static let freeBytesNoted = 256 << 20

    private var watchFinding: Finding? {
        watchFailure.map {
            .note(
                "watches",
                "The kernel has no more file watches (\($0)), so programs check for changes once a "
                    + "second; raise fs.inotify.max_user_instances and max_user_watches.")
        }
    }
}
