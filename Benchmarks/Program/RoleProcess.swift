// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness

/// This program in a role, a process of its own. It ends when its input does, so with this one.
struct RoleProcess {
    private let child: ChildProcess
    private let input = Pipe()
    var lines: LineReader

    init(_ stage: Stage, _ role: Role.Name, home: String) throws {
        let output = Pipe()
        lines = LineReader(output.fileHandleForReading)
        child = try stage.start(
            ["role", role.rawValue, "--home", home], program: .own, input: input, output: output)
    }

    /// Ends it in good order.
    func end() {
        try? input.fileHandleForWriting.close()
        _ = try? wait { [child] in try await child.exit() }
    }
}

/// Reads lines of another process, without waiting for ever.
struct LineReader {
    private let file: FileHandle
    private var buffer: [UInt8] = []
    private static let lineBytesMax = 1 << 20

    init(_ file: FileHandle) { self.file = file }

    mutating func next(seconds: Int) throws -> String {
        let deadline = nanoseconds() + Int64(seconds) * 1_000_000_000
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffer.removeSubrange(...end) }
                return String(decoding: buffer[..<end], as: UTF8.self)
            }
            guard buffer.count < Self.lineBytesMax else { throw Trouble("a line has no end") }
            try readMore(until: deadline)
        }
    }

    private mutating func readMore(until deadline: Int64) throws {
        let milliseconds = max(0, (deadline - nanoseconds()) / 1_000_000)
        var entry = pollfd(fd: file.fileDescriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, Int32(milliseconds)) > 0 else {
            throw Trouble("a process did not answer in time")
        }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(file.fileDescriptor, &bytes, bytes.count)
        guard count > 0 else { throw Trouble("a process ended without an answer") }
        buffer += bytes[..<count]
    }
}
