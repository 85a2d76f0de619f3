// SPDX-License-Identifier: Apache-2.0

/// A QR code (ISO/IEC 18004) of a short ASCII text: byte mode, error correction level M, versions 1 to 10.
/// A greater version would not fit on a terminal.
struct QRCode: Hashable {
    /// The modules of a side, without the quiet zone.
    private(set) var size: Int
    /// Row by row; true for dark.
    private var modules: [Bool]
    /// The modules that have no data: finders, timing, alignment, format and version.
    private var isReserved: [Bool]
    private var version: Int

    /// Fails for a text of more than 213 bytes, and for other characters than ASCII, whose encoding
    /// scanners guess.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        let fitting = (1...10).first { bytes.count <= Self.bytesMax(version: $0) }
        guard let version = fitting, bytes.allSatisfy({ $0 < 0x80 }) else { return nil }
        self.version = version
        size = 17 + 4 * version
        modules = [Bool](repeating: false, count: size * size)
        isReserved = modules
        drawPatterns()
        draw(Self.codewords(of: bytes, version: version))
        let masked = (0..<8).map { mask in
            var code = self
            code.apply(mask)
            return code
        }
        self = masked.min { $0.penalty < $1.penalty } ?? self
    }

    /// Whether the module is dark. Outside, all are light.
    subscript(_ x: Int, _ y: Int) -> Bool {
        (0..<size).contains(x) && (0..<size).contains(y) && modules[y * size + x]
    }

    /// The code in lines of half blocks, each two modules high, with the quiet zone of four modules
    /// that scanners need. Blocks are the *light* modules, for terminals with a dark background.
    var lines: [String] {
        stride(from: -4, to: size + 4, by: 2).map { y in
            String(
                (-4..<(size + 4)).map { x -> Character in
                    switch (self[x, y], self[x, y + 1]) {
                    case (false, false): "█"
                    case (false, true): "▀"
                    case (true, false): "▄"
                    case (true, true): " "
                    }
                })
        }
    }

    // MARK: - The codewords

    /// For each version: the codewords for error correction of a block, and the number of blocks.
    private static let correction = [
        (10, 1), (16, 1), (26, 1), (18, 2), (24, 2), (16, 4), (18, 4), (22, 4), (22, 5), (26, 5),
    ]

    private static func correction(_ version: Int) -> (each: Int, blocks: Int) {
        correction[version - 1]
    }

    /// The codewords of data and error correction.
    private static func codewordCount(_ version: Int) -> Int {
        var modules = (16 * version + 128) * version + 64
        if version > 1 {
            let alignments = version / 7 + 2
            modules -= (25 * alignments - 10) * alignments - 55
        }
        return (version < 7 ? modules : modules - 36) / 8
    }

    private static func dataCount(_ version: Int) -> Int {
        let (each, blocks) = correction(version)
        return codewordCount(version) - each * blocks
    }

    private static func countBits(_ version: Int) -> Int { version < 10 ? 8 : 16 }

    private static func bytesMax(version: Int) -> Int {
        (8 * dataCount(version) - 4 - countBits(version)) / 8
    }

    private static func codewords(of bytes: [UInt8], version: Int) -> [UInt8] {
        var bits: [Bool] = []
        func append(_ number: Int, _ count: Int) {
            for bit in (0..<count).reversed() { bits.append(number >> bit & 1 == 1) }
        }
        append(0b0100, 4)
        append(bytes.count, countBits(version))
        for byte in bytes { append(Int(byte), 8) }
        let capacity = 8 * dataCount(version)
        append(0, min(4, capacity - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var padding = 0xEC
        while bits.count < capacity {
            append(padding, 8)
            padding ^= 0xEC ^ 0x11
        }
        let data = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(0 as UInt8) { $0 << 1 | ($1 ? 1 : 0) }
        }
        return interleaved(data, version: version)
    }

    /// The first byte of each block, then the second of each, and so on; then the same of the error
    /// correction. The last blocks are a byte longer than the first if they are not all equal.
    private static func interleaved(_ data: [UInt8], version: Int) -> [UInt8] {
        let (each, count) = correction(version)
        let (length, longer) = (data.count / count, data.count % count)
        var blocks: [ArraySlice<UInt8>] = []
        var rest = data[...]
        for number in 0..<count {
            blocks.append(rest.prefix(length + (number < count - longer ? 0 : 1)))
            rest = rest.dropFirst(blocks[number].count)
        }
        let divisor = ReedSolomon.divisor(degree: each)
        let corrections = blocks.map { ReedSolomon.remainder(of: $0, divisor) }
        return (0...length).flatMap { index in
            blocks.compactMap { $0.dropFirst(index).first }
        } + (0..<each).flatMap { index in corrections.map { $0[index] } }
    }

    // MARK: - The modules

    private mutating func reserve(_ x: Int, _ y: Int, _ isDark: Bool) {
        guard (0..<size).contains(x), (0..<size).contains(y) else { return }
        modules[y * size + x] = isDark
        isReserved[y * size + x] = true
    }

    private mutating func drawPatterns() {
        for place in 0..<size {
            reserve(6, place, place.isMultiple(of: 2))
            reserve(place, 6, place.isMultiple(of: 2))
        }
        for (x, y) in [(3, 3), (size - 4, 3), (3, size - 4)] {
            drawRings(x, y, radius: 4) { $0 != 2 && $0 != 4 }
        }
        let places = alignments
        for x in places {
            for y in places where !isCorner(x, y) { drawRings(x, y, radius: 2) { $0 != 1 } }
        }
        drawFormat(mask: 0)
        drawVersion()
    }

    /// Whether a finder is there.
    private func isCorner(_ x: Int, _ y: Int) -> Bool {
        [[6, 6], [6, size - 7], [size - 7, 6]].contains([x, y])
    }

    private mutating func drawRings(
        _ x: Int, _ y: Int, radius: Int, _ isDark: (_ distance: Int) -> Bool
    ) {
        for dy in -radius...radius {
            for dx in -radius...radius { reserve(x + dx, y + dy, isDark(max(abs(dx), abs(dy)))) }
        }
    }

    private var alignments: [Int] {
        guard version > 1 else { return [] }
        let count = version / 7 + 2
        let step = (version * 8 + count * 3 + 5) / (count * 4 - 4) * 2
        return [6] + (0..<count - 1).map { size - 7 - $0 * step }
    }

    /// Level M has the number 0.
    private mutating func drawFormat(mask: Int) {
        var remainder = mask
        for _ in 0..<10 { remainder = remainder << 1 ^ (remainder >> 9) * 0x537 }
        let bits = (mask << 10 | remainder) ^ 0x5412
        for place in 0..<15 {
            let isDark = bits >> place & 1 == 1
            switch place {
            case 0...5: reserve(8, place, isDark)
            case 6, 7: reserve(8, place + 1, isDark)
            case 8: reserve(7, 8, isDark)
            default: reserve(14 - place, 8, isDark)
            }
            if place < 8 {
                reserve(size - 1 - place, 8, isDark)
            } else {
                reserve(8, size - 15 + place, isDark)
            }
        }
        reserve(8, size - 8, true)
    }

    private mutating func drawVersion() {
        guard version >= 7 else { return }
        var remainder = version
        for _ in 0..<12 { remainder = remainder << 1 ^ (remainder >> 11) * 0x1F25 }
        let bits = version << 12 | remainder
        for place in 0..<18 {
            let (near, far) = (place / 3, size - 11 + place % 3)
            reserve(near, far, bits >> place & 1 == 1)
            reserve(far, near, bits >> place & 1 == 1)
        }
    }

    /// In columns of two modules, from the right, alternately up and down.
    private mutating func draw(_ codewords: [UInt8]) {
        var bit = 0
        for right in [Int](stride(from: size - 1, to: 6, by: -2)) + [5, 3, 1] {
            let isUpward = (right + 1) & 2 == 0
            for row in 0..<size {
                for x in [right, right - 1] {
                    let place = (isUpward ? size - 1 - row : row) * size + x
                    guard !isReserved[place], bit < 8 * codewords.count else { continue }
                    modules[place] = codewords[bit / 8] >> (7 - bit % 8) & 1 == 1
                    bit += 1
                }
            }
        }
    }

    private mutating func apply(_ mask: Int) {
        for y in 0..<size {
            for x in 0..<size where !isReserved[y * size + x] && Self.inverts(mask, x, y) {
                modules[y * size + x].toggle()
            }
        }
        drawFormat(mask: mask)
    }

    private static func inverts(_ mask: Int, _ x: Int, _ y: Int) -> Bool {
        switch mask {
        case 0: (x + y) % 2 == 0
        case 1: y % 2 == 0
        case 2: x % 3 == 0
        case 3: (x + y) % 3 == 0
        case 4: (x / 3 + y / 2) % 2 == 0
        case 5: x * y % 2 + x * y % 3 == 0
        case 6: (x * y % 2 + x * y % 3) % 2 == 0
        default: ((x + y) % 2 + x * y % 3) % 2 == 0
        }
    }

    /// A measure of how hard the code is to scan: long runs, squares of one colour, patterns like a
    /// finder, and an unequal number of dark and light modules.
    private var penalty: Int {
        var penalty = 0
        for line in 0..<size {
            penalty += Self.penalty(of: (0..<size).map { self[$0, line] })
            penalty += Self.penalty(of: (0..<size).map { self[line, $0] })
        }
        for y in 0..<size - 1 {
            for x in 0..<size - 1 {
                let square = [self[x, y], self[x + 1, y], self[x, y + 1], self[x + 1, y + 1]]
                if Set(square).count == 1 { penalty += 3 }
            }
        }
        let dark = modules.count { $0 }
        return penalty + abs(dark * 20 - modules.count * 10) / modules.count * 10
    }

    private static let finderLike: [[Bool]] = {
        let finder = [true, false, true, true, true, false, true]
        let light = [Bool](repeating: false, count: 4)
        return [finder + light, light + finder]
    }()

    private static func penalty(of line: [Bool]) -> Int {
        var (penalty, run) = (0, 1)
        for index in 1...line.count {
            if index < line.count, line[index] == line[index - 1] {
                run += 1
            } else {
                if run >= 5 { penalty += run - 2 }
                run = 1
            }
        }
        for start in 0...line.count - 11 where finderLike.contains(Array(line[start..<start + 11]))
        {
            penalty += 40
        }
        return penalty
    }
}

/// Error correction over GF(2⁸) modulo 0x11D.
private enum ReedSolomon {
    static func divisor(degree: Int) -> [UInt8] {
        var divisor = [UInt8](repeating: 0, count: degree - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<degree {
            for index in 0..<degree {
                divisor[index] = product(divisor[index], root)
                if index + 1 < degree { divisor[index] ^= divisor[index + 1] }
            }
            root = product(root, 2)
        }
        return divisor
    }

    static func remainder(of data: some Sequence<UInt8>, _ divisor: [UInt8]) -> [UInt8] {
        var remainder = [UInt8](repeating: 0, count: divisor.count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for index in divisor.indices { remainder[index] ^= product(divisor[index], factor) }
        }
        return remainder
    }

    private static func product(_ a: UInt8, _ b: UInt8) -> UInt8 {
        var product = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) * 0x11D
            product ^= Int(b >> bit & 1) * Int(a)
        }
        return UInt8(product)
    }
}
