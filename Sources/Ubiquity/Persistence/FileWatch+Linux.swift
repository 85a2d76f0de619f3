// SPDX-License-Identifier: Apache-2.0

#if os(Linux) || os(Android)

internal import Dispatch

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// A watch of a folder by inotify. The source owns the descriptor and closes it. A user may have some
/// 128 of them at a time, in all programs; who gets none looks once a second.
///
/// Unchecked: libdispatch guards its sources itself, which its Swift types do not say yet.
struct FileWatch: @unchecked Sendable {
    private let source: any DispatchSourceProtocol

    /// - Parameter open: Gives an inotify descriptor, or less than zero and `errno`.
    init(
        folder: String, file: String, queue: DispatchQueue,
        open: () -> CInt = { inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC)) },
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        do throws(SystemError) {
            source = try Self.inotify(open(), folder, file, queue, handler)
        } catch {
            guard [EMFILE, ENFILE, ENOSPC].contains(error.code) else { throw error }
            source = PollingTimer.start(on: queue, handler)
        }
    }

    private static func inotify(
        _ watches: CInt, _ folder: String, _ file: String, _ queue: DispatchQueue,
        _ handler: @escaping @Sendable () -> Void
    ) throws(SystemError) -> any DispatchSourceProtocol {
        guard watches >= 0 else { throw SystemError(errno) }
        let events = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO
        guard inotify_add_watch(watches, folder, UInt32(events)) >= 0 else {
            let code = errno
            close(watches)
            throw SystemError(code)
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: watches, queue: queue)
        source.setEventHandler {
            if readEvents(from: watches, of: Array(file.utf8)) { handler() }
        }
        source.setCancelHandler { close(watches) }
        source.resume()
        return source
    }

    func cancel() { source.cancel() }

    /// Takes all that the kernel has.
    /// - Returns: Whether anything of it is about the file, or was lost for want of room.
    private static func readEvents(from watches: CInt, of file: [UInt8]) -> Bool {
        var concerns = false
        withUnsafeTemporaryAllocation(byteCount: bufferBytes, alignment: 8) { buffer in
            while true {
                let count = read(watches, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                if Self.events(UnsafeRawBufferPointer(rebasing: buffer[..<count]), concern: file) {
                    concerns = true
                }
            }
        }
        return concerns
    }

    private static func events(_ events: UnsafeRawBufferPointer, concern file: [UInt8]) -> Bool {
        var rest = events[...]
        while rest.count >= headerBytes {
            let event = UnsafeRawBufferPointer(rebasing: rest)
            let mask = event.load(fromByteOffset: 4, as: UInt32.self)
            let length = Int(event.load(fromByteOffset: 12, as: UInt32.self))
            // Filled up with zeros.
            let name = event.dropFirst(headerBytes).prefix(length).prefix { $0 != 0 }
            if mask & UInt32(IN_Q_OVERFLOW) != 0 || name.elementsEqual(file) { return true }
            rest = rest.dropFirst(headerBytes + length)
        }
        return false
    }

    /// Of `inotify_event`: descriptor, mask, cookie and the name's length; the name follows.
    private static let headerBytes = 16
    /// Room for at least fifteen events with the longest names.
    private static let bufferBytes = 4_096
}

#endif
