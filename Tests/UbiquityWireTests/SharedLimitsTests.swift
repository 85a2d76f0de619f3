// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore

/// The limits that the JavaScript client has from here, see scripts/embed-page.
struct SharedLimitsTests {
    private static func limits() throws -> String {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Clients/JavaScript/src/limits.js")
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// The fields of an object, or the one number of a constant.
    private func numbers(_ name: String) throws -> [String: Int] {
        let begin = try Regex("export const \\Q\(name)\\E = ([^;]+);")
        let text = try #require(try Self.limits().firstMatch(of: begin)?.output[1].substring)
        guard text.hasPrefix("{") else { return [name: try number(text)] }
        let fields = text.matches(of: /(\w+): ([^,]+),/)
        return Dictionary(
            uniqueKeysWithValues: try fields.map { (String($0.output.1), try number($0.output.2)) })
    }

    private func number(_ text: Substring) throws -> Int {
        let words = text.split(separator: " ").map { $0.replacing("_", with: "") }
        let first = try #require(Int(words[0]))
        guard words.count == 3, let second = Int(words[2]) else { return first }
        return words[1] == "*" ? first * second : first << second
    }

    private func fields(_ limits: StoreLimits) -> [String: Int] {
        [
            "storeBytesMax": limits.storeBytesMax, "keysMax": limits.keysMax,
            "valueBytesMax": limits.valueBytesMax, "pushBytesMax": limits.pushBytesMax,
        ]
    }

    @Test func `the other client has the same limits of a store`() throws {
        let usual = fields(StoreLimits()).merging(["keyBytesMax": 64, "keyUtf16Max": 0]) { $1 }
        #expect(StoreLimits().key == .utf8Bytes(64))
        #expect(try numbers("defaultLimits") == usual)
        let highest = fields(.ceiling).merging(
            ["keyBytesMax": Key.bytesMax, "keyUtf16Max": Key.bytesMax]) { $1 }
        #expect(try numbers("ceiling") == highest)
        #expect(try numbers("partsMax") == ["partsMax": StoreLimits.partsMax])
        #expect(try numbers("tombstonesMax") == ["tombstonesMax": IntakeLimits.tombstonesMax])
        #expect(try numbers("depthMax") == ["depthMax": PropertyListValue.depthMax])
    }

    @Test func `the other client has the same allowance`() throws {
        let allowance = ["burst": Allowance().burst, "perSecond": Int(Allowance().perSecond)]
        #expect(try numbers("defaultAllowance") == allowance)
        #expect(try numbers("bytesPerToken") == ["bytesPerToken": Allowance.bytesPerToken])
    }
}
