// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

extension Date {
    /// Since 1970.
    var milliseconds: Int64 { Int64(timeIntervalSince1970 * 1_000) }
}

/// Formats numbers and times for people.
enum Phrase {
    static let locked = "T\(LinkStatus.locked.dropFirst()): `ubiquity unlock` gets it."

    /// What is left to say where something else would be "synced"; nil if there is nothing.
    static func setAside(_ setAside: SetAside) -> String? {
        if setAside.isEmpty { return nil }
        return
            "Not everything is synced: \(setAside.sentence). This device keeps what it has; setting "
            + "such a key again replaces what the server has."
    }

    /// An error as a sentence.
    static func sentence(_ error: some Error) -> String {
        let text = "\(error)"
        return text.prefix(1).uppercased() + text.dropFirst() + "."
    }

    /// The device that sealed the account with its present key, and when; nil if it is not sealed, and
    /// for a confined device.
    static func author(of sealing: ServerSealing) -> String? {
        sealing.author.map { "by \($0.name) (\($0.device)) at \(time($0.milliseconds))" }
    }

    /// What a device without the account's key has asked for; nil if none has.
    static func announcedReset(of sealing: ServerSealing) -> String? {
        sealing.ends.map { ends in
            "A device without the account's key has asked to have all values deleted: that happens at "
                + "\(time(ends)), unless a device with the key reaches the server before."
        }
    }

    /// The command that signs a device in, for a shell. A server chooses the code and perhaps its
    /// address, and people hand the line to `eval`.
    static func signIn(server: String, code: String) -> String {
        "ubiquity sign-in --server \(word(server)) --code \(word(code))"
    }

    /// A word of a command for a shell, quoted unless no shell changes it.
    static func word(_ text: String) -> String {
        let isPlain = text.allSatisfy { character in
            character.isASCII && (character.isLetter || character.isNumber)
                || "-._:/@%+=".contains(character)
        }
        return isPlain && !text.isEmpty
            ? text : "'\(text.replacingOccurrences(of: "'", with: "'\\''"))'"
    }

    /// What to do if other devices cannot use a server's address; nil if they can.
    static func reach(_ server: String) -> TerminalText? {
        switch PlainHTTPRule.obstacle(at: server) {
        case nil: nil
        case .onlyThisMachine:
            """
            Only this machine can use that address. For a phone or another computer, start
            the server with `ubiquity serve --lan` (a service: `lan = true` in server.conf),
            or give it a name with HTTPS: see --host-name and --trusted-proxy in
            `ubiquity serve --help`.
            """
        case .plainHTTP:
            """
            Devices refuse that address, because it is plain HTTP. Start the server with
            `ubiquity serve --lan`, or put it behind HTTPS: see `ubiquity serve --help`.
            """
        }
    }

    static func keys(_ count: Int) -> String { counted(count, "key") }

    private static let keysShown = 5

    /// The names of some of the keys, for example `"a", "b" and 3 more`.
    static func names(_ keys: [Key]) -> String {
        let names = KeyNames(keys)
        let shown = keys.prefix(keysShown).map(names.quoted)
        let more = keys.count > shown.count ? " and \(keys.count - shown.count) more" : ""
        return shown.joined(separator: ", ") + more
    }

    static func counted(_ count: Int, _ noun: String) -> String {
        "\(grouped(count)) \(noun)\(count == 1 ? "" : "s")"
    }

    /// The number with commas between thousands in every locale, because the sentences are English.
    static func grouped(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var result = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
            result.append(digit)
        }
        return result
    }

    static func bytes(_ count: Int) -> String { counted(count, "byte") }

    /// For example "900 bytes", "12 kB" or "3.1 GB".
    static func size(_ bytes: Int) -> String {
        var (size, units) = (Double(bytes), ["kB", "MB", "GB", "TB"][...])
        guard size >= 1_000 else { return self.bytes(bytes) }
        var unit = ""
        while size >= 999.5, let next = units.popFirst() { (size, unit) = (size / 1_000, next) }
        return String(format: size < 9.95 ? "%.1f" : "%.0f", size) + " " + unit
    }

    /// A length of time, roughly: "5 s", "3 min" or "2 h 5 min".
    static func span(_ seconds: Double) -> String {
        guard seconds < 1e9 else { return "years" }
        if seconds < 60 { return "\(max(1, Int(seconds.rounded()))) s" }
        let minutes = Int((seconds / 60).rounded())
        let rest = minutes.isMultiple(of: 60) ? "" : " \(minutes % 60) min"
        return minutes < 60 ? "\(minutes) min" : "\(minutes / 60) h" + rest
    }

    /// For example "3.4 ms" or "1.25 s".
    static func duration(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 0.1 { return String(format: "%.1f ms", seconds * 1_000) }
        if seconds < 1 { return String(format: "%.0f ms", seconds * 1_000) }
        return String(format: "%.2f s", seconds)
    }

    /// By how much a clock is off, for example "2 h 5 min ahead". What a message was under way counts
    /// as well, so the last second or two mean nothing.
    /// - Parameter milliseconds: Nil if it is not known.
    static func clock(_ milliseconds: Int64?) -> String {
        guard let milliseconds else { return "unknown" }
        let seconds = milliseconds.magnitude / 1_000
        if seconds < 2 { return "right" }
        let units: [(UInt64, String)] = [
            (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ]
        let parts = units.drop { $0.0 == 0 }.prefix(2).filter { $0.0 > 0 }
        return parts.map { "\($0.0) \($0.1)" }.joined(separator: " ")
            + (milliseconds > 0 ? " ahead" : " behind")
    }

    /// A time of the user's zone, for example "2026-11-21 11:00:00 +01:00". ``PastTime`` reads it.
    static func time(_ milliseconds: Int64) -> String { time(milliseconds, in: .current) }

    static func time(_ milliseconds: Int64, in zone: TimeZone) -> String {
        let date = Date(timeIntervalSince1970: Double(milliseconds / 1_000))
        let offset = zone.secondsFromGMT(for: date)
        let local = date.addingTimeInterval(Double(offset)).formatted(.iso8601)
        let minutes = abs(offset) / 60
        return local.replacing("T", with: " ").replacing("Z", with: "")
            + String(format: " %@%02d:%02d", offset < 0 ? "-" : "+", minutes / 60, minutes % 60)
    }

    /// For example "2026-11-21T10:00:00.123Z".
    static func isoTime(_ milliseconds: Int64) -> String {
        let date = Date(timeIntervalSince1970: Double(milliseconds / 1_000))
        let fraction = String(format: ".%03dZ", Int(milliseconds % 1_000))
        return date.formatted(.iso8601).replacing("Z", with: fraction)
    }
}
