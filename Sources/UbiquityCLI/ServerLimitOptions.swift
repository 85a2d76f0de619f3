// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityServer

/// The limits that an operator may want to change. Nil for the server's default.
struct ServerLimitOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Bytes of all values of a store. (default: 1048576)", valueName: "number"))
    var storeBytesMax: Int?

    @Option(help: ArgumentHelp("Keys of a store. (default: 1024)", valueName: "number"))
    var keysMax: Int?

    @Option(help: ArgumentHelp("Bytes of one value. (default: 1048576)", valueName: "number"))
    var valueBytesMax: Int?

    @Option(help: ArgumentHelp("Bytes of UTF-8 of a key. (default: 64)", valueName: "number"))
    var keyBytesMax: Int?

    @Option(help: ArgumentHelp("UTF-16 units of a key, instead of bytes.", valueName: "number"))
    var keyUtf16Max: Int?

    @Option(help: ArgumentHelp("Bytes of one request. (default: 8388608)", valueName: "number"))
    var pushBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Pushes that a device may make at once. (default: 600)", valueName: "number"))
    var pushBurst: Int?

    @Option(
        help: ArgumentHelp(
            "Pushes a second that a device may make in the long run. (default: 20)",
            valueName: "number"))
    var pushesPerSecond: Double?

    @Option(
        help: ArgumentHelp(
            "Days for which deletions are remembered. (default: 30)", valueName: "number"))
    var deletionsRememberedDays: Int?

    @Option(
        help: ArgumentHelp(
            "Minutes for which a sign-in code is valid. (default: 10)", valueName: "number"))
    var codeMinutes: Int?

    @Option(help: ArgumentHelp("Accounts. (default: 100000)", valueName: "number"))
    var accountsMax: Int?

    @Option(help: ArgumentHelp("Devices of an account. (default: 256)", valueName: "number"))
    var devicesMax: Int?

    @Option(help: ArgumentHelp("Stores of an account. (default: 256)", valueName: "number"))
    var storesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Registered apps. (default: 10000)", valueName: "number"))
    var appsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Entries of the audit trail. (default: 100000)", valueName: "number"))
    var auditEntriesMax: Int?

    func validate() throws {
        if keyBytesMax != nil, keyUtf16Max != nil {
            throw ValidationError("Give --key-bytes-max or --key-utf16-max, not both.")
        }
        let numbers = [
            storeBytesMax, keysMax, valueBytesMax, keyBytesMax, keyUtf16Max, pushBytesMax,
            pushBurst,
            deletionsRememberedDays, codeMinutes, accountsMax, devicesMax, storesMax, appsMax,
            auditEntriesMax,
        ]
        guard numbers.allSatisfy({ $0.map { (1...Self.numberMax).contains($0) } ?? true }) else {
            throw ValidationError("A limit needs a number from 1 to \(Self.numberMax).")
        }
        guard pushesPerSecond.map({ $0 > 0 && $0.isFinite }) ?? true else {
            throw ValidationError("--pushes-per-second needs a number above 0.")
        }
    }

    /// Products of greater limits could overflow.
    private static let numberMax = 1 << 40

    func apply(to settings: inout ServerSettings) {
        func set<Value>(_ limit: inout Value, _ value: Value?) { if let value { limit = value } }
        set(&settings.limits.storeBytesMax, storeBytesMax)
        set(&settings.limits.keysMax, keysMax)
        set(&settings.limits.valueBytesMax, valueBytesMax)
        set(&settings.limits.key, keyBytesMax.map(KeyLimit.utf8Bytes))
        set(&settings.limits.key, keyUtf16Max.map(KeyLimit.utf16Units))
        set(&settings.limits.pushBytesMax, pushBytesMax)
        set(&settings.allowance.burst, pushBurst)
        set(&settings.allowance.perSecond, pushesPerSecond)
        set(
            &settings.deletionsRememberedSeconds,
            deletionsRememberedDays.map { Int64($0) * 86_400 })
        set(&settings.signInCodeSeconds, codeMinutes.map { Int64($0) * 60 })
        set(&settings.accountsMax, accountsMax)
        set(&settings.devicesPerAccountMax, devicesMax)
        set(&settings.storesPerAccountMax, storesMax)
        set(&settings.appsMax, appsMax)
        set(&settings.auditEntriesMax, auditEntriesMax)
    }
}
