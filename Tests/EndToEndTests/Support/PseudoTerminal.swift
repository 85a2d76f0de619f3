// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness

#if os(Linux)
/// A terminal that a program thinks it writes to.
struct PseudoTerminal {
    let process: SpawnedProcess
    private let master: Int32

    /// The terminal keeps it until the command reads.
    func type(_ text: String) {
        let typed = Array(text.utf8)
        _ = write(master, typed, typed.count)
    }

    /// Runs a command to its end.
    /// - Parameters:
    ///   - answer: What a person types there at first; nil for nobody.
    ///   - react: Called with all that has come to the terminal so far, on any thread.
    /// - Returns: All that came to the terminal.
    static func run(
        _ arguments: [String], answer: String? = nil, environment: [String: String] = [:],
        columns: Int = 120, on stage: Stage,
        _ react: @escaping @Sendable (String, PseudoTerminal) -> Void = { _, _ in }
    ) async throws -> String {
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        guard master >= 0 else {
            throw Trouble("there is no terminal: \(String(cString: strerror(errno)))")
        }
        defer { close(master) }
        var (isLocked, number): (Int32, Int32) = (0, 0)
        guard ioctl(master, unlock, &isLocked) == 0, ioctl(master, tellNumber, &number) == 0 else {
            throw Trouble("the terminal is locked: \(String(cString: strerror(errno)))")
        }
        let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        guard slave >= 0 else { throw Trouble("the terminal cannot be opened") }
        var size = winsize(ws_row: 40, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(master, UInt(TIOCSWINSZ), &size)
        let process = try SpawnedProcess(
            [ProgramFile.ubiquity.path()] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "HOME": stage.folder, "NO_COLOR": "1"]
                .merging(environment) { $1 },
            files: (answer == nil ? nil : slave, slave, slave))
        close(slave)
        let terminal = PseudoTerminal(process: process, master: master)
        terminal.type(answer ?? "")
        let shown = await Task.detached { terminal.text(react) }.value
        while process.status == nil { try await Task.sleep(for: .milliseconds(2)) }
        return shown
    }

    /// `TIOCSPTLCK` and `TIOCGPTN` of Linux, whose functions for it the system's module hides.
    private static let unlock: UInt = 0x4004_5431
    private static let tellNumber: UInt = 0x8004_5430

    /// Until nobody has the terminal open any more.
    private func text(_ react: (String, PseudoTerminal) -> Void) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(master, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
            react(Self.text(of: bytes), self)
        }
        return Self.text(of: bytes)
    }

    /// The terminal makes line ends of its own.
    private static func text(of bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "\n")
    }
}
#endif
