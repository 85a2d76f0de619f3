// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// One door through which foreign bytes come in: takes any bytes as the shipped code does, and
/// checks what must hold of what was accepted.
package struct FuzzEntry: Sendable {
    /// Names the folder of its corpus, too.
    package let name: String
    /// The stack of the threads on which the shipped code does this, in bytes.
    package let stackBytes: Int
    /// The maximum length of an input. Longer ones tell nothing new.
    package let bytesMax: Int
    /// The seeds of the corpus: real messages, by the name of their file.
    package let seeds: @Sendable () throws -> [String: [UInt8]]
    /// - Throws: ``Broken``, or what should not have been thrown.
    package let check: @Sendable ([UInt8]) throws -> Void

    init(
        _ name: String, stack: Stack, bytesMax: Int = 8_192,
        seeds: @escaping @Sendable () throws -> [String: [UInt8]],
        check: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.name = name
        stackBytes = stack.rawValue
        self.bytesMax = bytesMax
        self.seeds = seeds
        self.check = check
    }

    /// The threads that the shipped code has.
    enum Stack: Int {
        /// The server's, for values that may nest: `BlockingThreads`.
        case deep = 0x100_0000
        /// Any other on Linux: an app's, of Swift's pool or of an event loop.
        case system = 0x80_0000
    }

    /// All there are.
    package static let all: [FuzzEntry] = [
        .push(.json), .push(.protobuf), .answer(.json), .answer(.protobuf), .events, .texts,
        .headers, .propertyList, .storeFile, .storeRows, .account, .entitlements, .accountFile,
        .tokens, .configuration,
    ]

    package static func named(_ name: String) -> FuzzEntry? { all.first { $0.name == name } }
}

/// A violation of something that must hold.
package struct Broken: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// - Throws: ``Broken`` with the sentence, which says what is not so.
func must(_ holds: Bool, _ sentence: @autoclosure () -> String) throws {
    if !holds { throw Broken(sentence()) }
}
