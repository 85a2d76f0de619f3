// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation

/// The terminal that the program runs in: keys as they are pressed, and a screen of its own, which
/// is gone when the program ends by `exit`, on the main thread.
@MainActor
public final class Terminal {
    /// The program's one, once it is open.
    private static var current: Terminal?

    private let before: termios
    private var shown: [UInt8] = []
    private var sources: [any DispatchSourceProtocol] = []
    private var isOpen = true

    /// Whether there is one at both ends.
    public static var isThere: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

    /// Takes the terminal over.
    ///
    /// - Parameters:
    ///   - resized: Called when it has another size.
    ///   - pressed: Called for each key.
    public init(
        resized: @escaping @MainActor () -> Void, pressed: @escaping @MainActor (Key) -> Void
    ) {
        var settings = termios()
        tcgetattr(STDIN_FILENO, &settings)
        before = settings
        cfmakeraw(&settings)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
        Self.write(Array(Self.enter.utf8))
        Self.current = self
        atexit { MainActor.assumeIsolated { Terminal.current?.close() } }
        read(pressed)
        follow { [weak self] in
            self?.shown = []
            resized()
        }
    }

    /// The numbers of its columns and rows.
    public var size: (columns: Int, rows: Int) {
        var size = winsize()
        let status = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size)
        guard status == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Shows a frame. Nothing is written for the one that is shown already.
    public func show(_ frame: Frame) {
        let bytes = frame.bytes
        guard isOpen, bytes != shown else { return }
        shown = bytes
        Self.write(bytes)
    }

    /// Gives the terminal back as it was.
    public func close() {
        guard isOpen else { return }
        isOpen = false
        for source in sources { source.cancel() }
        Self.write(Array(Self.leave.utf8))
        var before = before
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
    }

    /// The other screen, without a cursor.
    private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
    private static let leave = "\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

    private func read(_ pressed: @escaping @MainActor (Key) -> Void) {
        var reader = KeyReader()
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .main)
        source.setEventHandler {
            MainActor.assumeIsolated {
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = Foundation.read(STDIN_FILENO, &bytes, bytes.count)
                // The terminal was closed.
                guard count > 0 else { exit(0) }
                for key in reader.keys(in: bytes.prefix(count)) { pressed(key) }
            }
        }
        source.resume()
        sources.append(source)
    }

    private func follow(_ resized: @escaping @MainActor () -> Void) {
        let source = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .main)
        source.setEventHandler { MainActor.assumeIsolated { resized() } }
        source.resume()
        sources.append(source)
    }

    /// A terminal that has gone cannot be written to, which the reading notices.
    private static func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count)
            }
            guard count > 0 || errno == EINTR else { return }
            rest = rest.dropFirst(max(0, count))
        }
    }
}
