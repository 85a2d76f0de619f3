// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore

/// The rights that a new device is to have.
struct GrantOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A store that the new device may access; may be given several times. Default: all.",
            valueName: "identifier"), transform: notEmpty)
    var store: [String] = []

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "How long the new device stays signed in, such as 12h, 30d or 8w. Default: until it is "
                + "signed out.", valueName: "time"), transform: Self.seconds(in:))
    var credentialSeconds: Int64?

    var given: [String] {
        UbiquityCLI.given(("--store", !store.isEmpty), ("--for", credentialSeconds != nil))
    }

    func validate() throws {
        guard store.count <= CredentialTerms.storesMax else {
            throw ValidationError(
                "A device can be confined to at most \(CredentialTerms.storesMax) stores.")
        }
        for text in store {
            do { _ = try StoreIdentifier(text) } catch { throw ValidationError("\(error).") }
        }
    }

    private static let unitSeconds: [Character: Int64] = [
        "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400,
    ]

    /// Reads a number of minutes, hours, days or weeks.
    @Sendable static func seconds(in text: String) throws -> Int64 {
        guard let unit = text.last.flatMap({ unitSeconds[$0] }),
            text.dropLast().allSatisfy({ $0.isASCII && $0.isNumber }),
            let number = Int64(text.dropLast()), number > 0,
            number <= yearsMax * 366 * 86_400 / unit
        else {
            throw ValidationError(
                "it needs a number and a unit (m, h, d or w), such as 30d, up to \(yearsMax) years."
            )
        }
        return number * unit
    }

    private static let yearsMax: Int64 = 100
}

/// Rights in a sentence.
enum Rights {
    /// For example "only notes, for 30 days".
    static func text(stores: [String], seconds: Int64?) -> String {
        let what = stores.isEmpty ? "all stores" : "only " + stores.joined(separator: ", ")
        return "\(what), " + (seconds.map { "for \(span($0))" } ?? "until it is signed out")
    }

    private static func span(_ seconds: Int64) -> String {
        for (length, noun) in [(86_400, "day"), (3_600, "hour"), (60, "minute")]
            as [(Int64, String)]
        where seconds.isMultiple(of: length) {
            return Phrase.counted(Int(seconds / length), noun)
        }
        return Phrase.counted(Int(clamping: seconds), "second")
    }
}
