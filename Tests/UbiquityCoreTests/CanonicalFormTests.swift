// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A value's canonical form` {
    private func decode(_ bytes: [UInt8], elements: Int = 1_000) throws -> PropertyListValue {
        var elements = elements
        return try CanonicalForm.decode(bytes, within: &elements)
    }

    @Test func `is read as the value that it was made of`() throws {
        var random = RandomSource(seed: 44)
        for _ in 0..<3_000 {
            let value = PropertyListValue.random(using: &random)
            #expect(try decode(CanonicalForm.encode(value), elements: 100_000) == value)
        }
    }

    /// Whatever is accepted must be what it would be written as.
    @Test func `is the only one: of changed bytes, none is read but as it is written`() {
        var random = RandomSource(seed: 45)
        var accepted = 0
        for round in 0..<20_000 {
            var bytes = CanonicalForm.encode(.random(using: &random))
            switch round % 3 {
            case 0:
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(
                    in: 0...255, using: &random)
            case 1:
                bytes.insert(
                    .random(in: 0...255, using: &random),
                    at: Int.random(in: 0...bytes.count, using: &random))
            default: bytes.remove(at: Int.random(in: bytes.indices, using: &random))
            }
            guard let value = try? decode(bytes, elements: 100_000) else { continue }
            accepted += 1
            if CanonicalForm.encode(value) != bytes { Issue.record("\(bytes)") }
        }
        #expect(accepted > 100)
    }

    @Test(arguments: [
        "", "0a", "0a01", "0a0261", "0a026180", "0a01ff", "0a00" + "00", "0a8000", "1002", "108100",
        "18ffffffffffffffffff02", "1880808080808080808080" + "00", "2001", "20ffffffffffffffff7f",
        "290000000000f8ff", "29010000000000f87f", "29000000000000f8ff", "50" + "01", "5200",
        "4200" + "00",
        "42020a00", "42021200", "4a020a00", "4a040a021200", "4a060a0412020a00" + "00",
        "4a080a060a0012020a00", "4a0a0a0812020a000a0161",
        // The same key twice, and two in the wrong order.
        "4a120a070a016112020a000a070a016112020a00", "4a120a070a016212020a000a070a016112020a00",
    ])
    func `refuses what is none`(digits: String) {
        #expect(throws: CanonicalFormError.malformed) { try decode(bytes(digits)) }
    }

    @Test func `has at most 512 levels and as many elements as the reader allows`() throws {
        var value = PropertyListValue.integer(1)
        for _ in 1..<PropertyListValue.depthMax { value = .array([value]) }
        #expect(try decode(CanonicalForm.encode(value)) == value)
        #expect(throws: CanonicalFormError.tooDeep) {
            try decode(CanonicalForm.encode(.array([value])))
        }
        let list = PropertyListValue.array(Array(repeating: .boolean(true), count: 9))
        var elements = 10
        #expect(try CanonicalForm.decode(CanonicalForm.encode(list), within: &elements) == list)
        #expect(elements == 0)
        #expect(throws: CanonicalFormError.tooManyElements) {
            try decode(CanonicalForm.encode(list), elements: 9)
        }
    }
}

extension PropertyListValue {
    /// Any value, small more often than large.
    static func random(using random: inout RandomSource, depth: Int = 0) -> PropertyListValue {
        func text() -> ExactString {
            let scalars: [Unicode.Scalar] = ["a", "b", "\u{0}", "é", "\u{301}", "\u{FFFF}", "😀"]
            let count = Int.random(in: 0...7, using: &random)
            let repeats = count == 7 ? Int.random(in: 1...400, using: &random) : 1
            var text = String.UnicodeScalarView()
            for _ in 0..<count * repeats { text.append(scalars.randomElement(using: &random)!) }
            return ExactString(String(text))
        }
        func real() -> Double {
            let usual: [Double] = [0, -0.0, 1, .nan, .infinity, -.infinity, 0.1]
            return usual.randomElement(using: &random)!
                * (Bool.random(using: &random) ? 1 : Double(bitPattern: random.next()))
        }
        switch Int.random(in: 0..<(depth < 4 ? 12 : 7), using: &random) {
        case 0: return .string(text())
        case 1: return .boolean(.random(using: &random))
        case 2:
            return .integer(
                Int64(bitPattern: random.next()) >> Int64.random(in: 0...63, using: &random))
        case 3: return PropertyListValue(unsigned: random.next() | 1 << 63)
        case 4: return .real(canonical(real()))
        case 5: return .date(canonical(real()))
        case 6:
            let count = Int.random(in: 0...20, using: &random)
            return .data((0..<count * count).map { _ in UInt8.random(in: 0...255, using: &random) })
        case 7...9:
            let count = Int.random(in: 0...5, using: &random)
            return .array((0..<count).map { _ in .random(using: &random, depth: depth + 1) })
        default:
            var entries: [ExactString: PropertyListValue] = [:]
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                entries[text()] = .random(using: &random, depth: depth + 1)
            }
            return .dictionary(entries)
        }
    }
}
