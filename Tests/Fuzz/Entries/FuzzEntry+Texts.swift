// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension FuzzEntry {
    /// One text, taken for each thing that a text may be.
    static var texts: FuzzEntry {
        FuzzEntry("texts", stack: .system, bytesMax: 512) {
            Samples.texts().mapValues { Array($0.utf8) }
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            try checkCursor(text)
            try checkNames(text)
            try checkKey(text)
            try checkDate(text)
            try checkSignIn(text)
            try checkAddress(text)
            try checkNetwork(text)
            // As a part of a path has it.
            if let plain = text.removingPercentEncoding { try checkNames(plain) }
            _ = WireFormat(mediaType: text)
        }
    }

    private static func checkCursor(_ text: String) throws {
        guard let cursor = Cursor(text) else { return }
        try must(cursor.text == text, "a cursor is another text")
        guard let position = Position(cursor) else { return }
        try must(position.revision >= 0, "a revision is negative")
        try must(Position(position.cursor) == position, "a position changed as a cursor")
    }

    private static func checkNames(_ text: String) throws {
        if let device = DeviceID(text) {
            try must(device.description == text, "a device is another text")
        }
        if let identifier = try? StoreIdentifier(text) {
            try must(identifier.string == text, "a store is another text")
            try must(!text.contains("/") && !text.hasPrefix("."), "a store is no file's name")
        }
        if let name = AccountName(text) {
            try must(AccountName(name.string) == name, "an account's name changed")
        }
    }

    private static func checkKey(_ text: String) throws {
        guard let key = try? Key(text) else { return }
        try must(key.string.utf8.elementsEqual(text.utf8), "a key is another text")
        try must(key == (try Key(text)) && !(key < key), "a key is not itself")
        try? KeyLimit.utf8Bytes(64).check(key)
        try? KeyLimit.utf16Units(128).check(key)
    }

    private static func checkDate(_ text: String) throws {
        guard let seconds = DateText.seconds(of: text) else { return }
        let again = DateText.seconds(of: DateText.text(of: seconds))
        try must(again == seconds || seconds.isNaN, "a date changed")
    }

    private static func checkSignIn(_ text: String) throws {
        guard let code = TypedCode(typed: text, .signIn) else { return }
        try must(code.text.utf8.count == 14, "a code has another length")
        try must(TypedCode(typed: code.text, .signIn) == code, "a code changed")
        try must(TypedCode(typed: text.lowercased(), .signIn) == code, "a code's case matters")
    }

    private static func checkNetwork(_ text: String) throws {
        if let address = IPAddress(text), !text.contains("%") {
            try must(IPAddress("\(address)") == address, "an address of a machine changed")
            try must(AddressRange("\(address)")?.contains(address) == true, "it is not in itself")
            let proxies = TrustedProxies([])
            try must(
                proxies.origin(peer: address, forwarded: [text]) == address,
                "a stranger's word is believed")
        }
        if let range = AddressRange(text) {
            try must(AddressRange("\(range)")?.description == range.description, "a range changed")
        }
        _ = PlainHTTPRule.isLoopback(text)
    }

    private static func checkAddress(_ text: String) throws {
        guard let address = try? ServerAddress(text) else { return }
        try must(!address.text.hasSuffix("/"), "an address ends with a slash")
        try must(try ServerAddress(address.text) == address, "an address changed")
    }
}
