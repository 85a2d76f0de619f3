// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The client under test: a process that answers each line on its standard input with one on its
/// standard output. What it prints to its standard error is shown.
final class ClientProgram {
    /// The longest line that is read. A store has at most some thousand bytes here.
    static let lineBytesMax = 16 << 20
    /// The longest time for an answer, in milliseconds of real time. It only guards against
    /// hanging.
    private static let answerMilliseconds: Int32 = 120_000

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var unread: [UInt8] = []

    /// - Parameter command: The program, which is looked for as a shell does, and its arguments.
    init(_ command: [String]) throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardInput = input
        process.standardOutput = output
        // Its end is noticed by the answer that does not come.
        signal(SIGPIPE, SIG_IGN)
        try process.run()
        // Otherwise its end would not be seen.
        try output.fileHandleForWriting.close()
        try input.fileHandleForReading.close()
    }

    /// Sends a line and reads the answer.
    /// - Throws: ``ClientTrouble`` if there is none, or it is too long.
    func ask(_ line: String) throws(ClientTrouble) -> [UInt8] {
        try write(Array((line + "\n").utf8))
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let answer = Array(unread[..<end])
                unread.removeFirst(end + 1)
                guard unread.isEmpty else { throw ClientTrouble("it said two lines at once") }
                return answer
            }
            guard unread.count <= Self.lineBytesMax else {
                throw ClientTrouble("it said a line of over \(Self.lineBytesMax) bytes")
            }
            try read()
        }
    }

    private func write(_ bytes: [UInt8]) throws(ClientTrouble) {
        let file = input.fileHandleForWriting.fileDescriptor
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw ClientTrouble("it does not read any more") }
            rest = rest.dropFirst(count)
        }
    }

    private func read() throws(ClientTrouble) {
        let file = output.fileHandleForReading.fileDescriptor
        var waiting = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, Self.answerMilliseconds) > 0 else {
            throw ClientTrouble("it said nothing for \(Self.answerMilliseconds / 1_000) seconds")
        }
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        let count = piece.withUnsafeMutableBytes {
            Foundation.read(file, $0.baseAddress, $0.count)
        }
        guard count > 0 else { throw ClientTrouble("it ended") }
        unread += piece.prefix(count)
    }

    /// Ends its input, at which it ends by itself, or is ended.
    func end() {
        try? input.fileHandleForWriting.close()
        let deadline = ContinuousClock.now + .milliseconds(Int(Self.answerMilliseconds))
        while process.isRunning, .now < deadline { usleep(10_000) }
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }
}

/// Something that no client may do, whatever happens to it.
struct ClientTrouble: Error, CustomStringConvertible {
    /// The violation, as a clause about the client, such as "it ended".
    let description: String

    init(_ description: String) { self.description = description }
}
