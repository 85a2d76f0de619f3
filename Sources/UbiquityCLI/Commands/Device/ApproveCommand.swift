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
            command shows the device's name, its address and the rights that it gets, and asks. \
            Approve only a code that you see on a device in front of you: whoever sends you one \
            would get into your account.

            The device gets the rights that it asks for, unless --store or --for say otherwise, and \
            at most those of this device. Server operators give --account and the options of \
            `ubiquity account`.

            JSON: {"deviceName", "address", "stores", "seconds", "approved"}; "stores" and \
            "seconds" are null where the rights are not limited.
            """)

    @Argument(
        help: "The code that the device shows, such as 7KQ2-M9XD, or the link in its QR code.",
        transform: notEmpty)
    var code: String

    @OptionGroup(title: "The new device") var grant: GrantOptions
    @Flag(help: "Yes, approve it.") var yes = false
    @Flag(help: "Deny the sign-in; the device is told.") var deny = false
    @OptionGroup var options: DeviceOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        if deny { try refuse(grant.given + given(("--yes", yes)), "with --deny.") }
    }

    func run() async throws {
        try await options.withAccount(about: OperatorSubject.signInRequest) { account in
            let userCode = try account.userCode(in: code)
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
            try await account.approve(userCode, granted)
            report(request, granted, isApproved: true)
        }
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
        _ request: ServerSignInRequest, _ granted: Grant, isApproved: Bool
    ) {
        json.print(
            [
                "deviceName": .string(request.deviceName), "address": .string(request.address),
                "stores": granted.stores.isEmpty ? .null : .array(granted.stores.map(JSON.string)),
                "seconds": granted.seconds.map { .integer(Int($0)) } ?? .null,
                "approved": .boolean(isApproved),
            ],
            or: isApproved
                ? "Approved: \(request.deviceName) may sign in now."
                : "Denied the sign-in of \(request.deviceName).")
    }
}
