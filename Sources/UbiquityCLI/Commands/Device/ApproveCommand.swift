// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct ApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Approve the sign-in of a device that shows a code.",
        discussion: """
            On the new device, `ubiquity sign-in --server URL` shows the code and waits. This \
            command asks for it, shows the device's name, its address and the rights that it gets, and asks. \
            Approve only a code that you see on a device in front of you: whoever sends you one \
            would get into your account.

            The device gets the rights that it asks for, unless --store or --for say otherwise, and \
            at most those of this device. Server operators give --account and the options of \
            `ubiquity account`.

            In a sealed account (see `ubiquity encryption`), a device gets the account's key only \
            with the whole code, which begins with `ubiquity:`. So does a locked device by the code \
            that `ubiquity unlock` shows. Such a code is a secret: paste it when this command asks, or \
            give it as a line of standard input, because others can see a command line.

            JSON: {"deviceName", "address", "stores", "seconds", "approved", "hasKey"}; "stores" and \
            "seconds" are null where the rights are not limited, "deviceName" and "address" of a \
            device that is unlocked; "hasKey" says whether it was given the key of a sealed account.
            """)

    @Argument(
        help: "The code that the device shows, such as 7KQ2-M9XD. Default: asks for it.",
        transform: notEmpty)
    var code: String?

    @OptionGroup(title: "The new device") var grant: GrantOptions
    @Flag(help: "Yes, approve it.") var yes = false
    @Flag(help: "Deny the sign-in; the device is told.") var deny = false
    @OptionGroup var options: DeviceOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        if deny { try refuse(grant.given + given(("--yes", yes)), "with --deny.") }
    }

    func run() async throws {
        let keyCode = try KeyCode.given(code, prompt: "The code that the device shows:")
        keyCode.warn(ifGiven: code)
        if let secret = keyCode.secret, let asked = UnlockRequest(front: keyCode.front) {
            return try await unlock(asked, secret)
        }
        try await options.withAccount(about: OperatorSubject.signInRequest) { account in
            let userCode = try account.userCode(in: keyCode)
            let request = try await account.signInRequest(userCode)
            let granted = Grant(
                stores: grant.store.isEmpty ? request.stores : grant.store,
                seconds: grant.credentialSeconds ?? request.credentialSeconds)
            if deny {
                try await account.deny(userCode)
                return report(request, granted, isApproved: false)
            }
            try await show(request, userCode, granted, account)
            try Question.confirm(
                "Let it sign in?", isGiven: yes,
                otherwise: "nothing was approved; --deny tells the device so")
            let hasKey = try await handOver(keyCode.secret, granted, account)
            try await account.approve(userCode, granted)
            report(request, granted, isApproved: true, hasKey: hasKey)
        }
    }

    // MARK: - Keys

    /// Leaves for the new device what this one knows, if its code has a secret.
    /// - Returns: Whether it gets the account's key.
    private func handOver(
        _ secret: HandoverSecret?, _ granted: Grant, _ account: ManagedAccount
    ) async throws -> Bool {
        guard account.own != nil else {
            Output.note(Self.asksThere)
            return false
        }
        let sealing = try await options.home.open().sealing()
        let handover = try sealing.handover(toStores: granted.stores)
        if let secret {
            try await AccountClient.leave(handover, with: secret, sealing.account)
        }
        let hasKey = handover.hasKeys && !sealing.isLocked
        if handover == .notSealed {
            if secret == nil { Output.note(Self.asksThere) }
        } else if !hasKey || secret == nil {
            Output.note(
                "The account is sealed, and the new device is locked until you run `ubiquity unlock` on it: "
                    + (hasKey
                        ? "only the whole code, which begins with `ubiquity:`, brings the key."
                        : "this device does not have the key either."))
        }
        return hasKey && secret != nil
    }

    private static let asksThere: TerminalText =
        "The new device asks whether the account is sealed: only one of the account's devices tells it, by "
        + "the whole code, which begins with `ubiquity:`."

    /// Gives a device that is locked the keys that it asks for.
    private func unlock(_ asked: UnlockRequest, _ secret: HandoverSecret) async throws {
        try refuse(
            grant.given
                + given(("--deny", deny), ("--account", options.account != nil)),
            "with a code of `ubiquity unlock`.")
        let sealing = AccountSealer(home: try options.home.open())
        let progress = try await sealing.progress()
        try sealing.checkKey(progress)
        let handover = try progress.session.handover(for: asked)
        let stores = asked.stores.map(\.string)
        Output.note(
            """
            A device of \(progress.account.accountName) asks for the key of \
            \(stores.isEmpty ? "all stores" : stores.joined(separator: ", ")). \
            Give it only to a device in front of you that shows this code.
            """)
        try Question.confirm("Give it the key?", isGiven: yes, otherwise: "no key was given")
        try await AccountClient.leave(handover, with: secret, progress.account)
        json.print(
            [
                "deviceName": .null, "address": .null,
                "stores": stores.isEmpty ? .null : .array(stores.map(JSON.string)),
                "seconds": .null, "approved": .boolean(true), "hasKey": .boolean(true),
            ], or: "The device has the key in a moment.")
    }

    private func show(
        _ request: ServerSignInRequest, _ userCode: String, _ granted: Grant,
        _ account: ManagedAccount
    ) async throws {
        var lines: [TerminalText] = [
            "A device asks to sign in to \(account.name):", "",
            "    Name     \(request.deviceName)", "    Address  \(request.address)",
            "    Asks for \(Rights.text(stores: request.stores, seconds: request.credentialSeconds))",
            "    Gets     \(Rights.text(stores: granted.stores, seconds: granted.seconds))",
        ]
        if let own = account.own, let limits = try await AccountClient.ownDevice(own).limits {
            lines.append("             but no more than this device: \(limits)")
        }
        lines += [
            "", "Approve it only if you see the code \(userCode) on a device in front of you.",
        ]
        Output.note(TerminalText(lines: lines))
    }

    private func report(
        _ request: ServerSignInRequest, _ granted: Grant, isApproved: Bool,
        hasKey: Bool = false
    ) {
        json.print(
            [
                "deviceName": .string(request.deviceName), "address": .string(request.address),
                "stores": granted.stores.isEmpty ? .null : .array(granted.stores.map(JSON.string)),
                "seconds": granted.seconds.map { .integer(Int($0)) } ?? .null,
                "approved": .boolean(isApproved), "hasKey": .boolean(hasKey),
            ],
            or: isApproved
                ? "Approved: \(request.deviceName) may sign in now."
                    + (hasKey ? " It gets the account's key." : "")
                : "Denied the sign-in of \(request.deviceName).")
    }
}
