// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CCurl
internal import Foundation

/// The thread that carries out all requests of a process. It sleeps in curl until a socket is ready, a
/// time has come, or another thread wakes it.
///
/// A thread, because a source of libdispatch wakes two: its own that waits, and the queue's.
///
/// Shared state: `inbox`, guarded by `lock`, in which others leave requests. All other variables
/// are the thread's own. Not a `Mutex`, which stops a process that was forked: it takes the first
/// thread for the parent's.
final class CurlThread: @unchecked Sendable {
    private enum State { case new, started, missing }

    private struct Inbox {
        var begun: [CurlTransfer] = []
        var cancelled: [CurlTransfer] = []
        var state = State.new
        /// Nil before the thread has begun.
        var multi: OpaquePointer?
        /// Whether the thread sees what comes only when it is woken.
        var sleeps = false
    }

    /// How long connections are kept while there is no request at all.
    private static let idleMillisecondsMax: Int64 = 60_000
    private static let spareMax = 8
    private static let missing = HTTPFailure.other(
        "libcurl is not installed or too old: apt install libcurl4")

    private let process = getpid()
    private let environment: CurlEnvironment
    private let lock = NSLock()
    private var inbox = Inbox()
    private var running: [ObjectIdentifier: CurlTransfer] = [:]
    /// Handles to use again.
    private var spare: [OpaquePointer] = []
    private var count: UInt = 0
    /// Since when there has been no request; nil if there is one, or no connection is kept.
    private var idleSince: Int64?

    init(_ environment: CurlEnvironment) { self.environment = environment }

    /// False in a child that the process has forked: it must not use the parent's sockets, and lacks
    /// its threads.
    var isOfThisProcess: Bool { process == getpid() }

    // MARK: - From any thread

    func begin(_ transfer: CurlTransfer) { leave { $0.begun.append(transfer) } }

    func cancel(_ transfer: CurlTransfer) {
        guard isOfThisProcess, transfer.cancel() else { return }
        leave { $0.cancelled.append(transfer) }
    }

    private func leave(_ request: (inout Inbox) -> Void) {
        let refused = lock.withLock { () -> [CurlTransfer] in
            request(&inbox)
            if inbox.state == .new { inbox.state = start() ? .started : .new }
            guard inbox.state == .started else {
                defer { (inbox.begun, inbox.cancelled) = ([], []) }
                return inbox.begun
            }
            if inbox.sleeps, let multi = inbox.multi {
                inbox.sleeps = false
                curl_multi_wakeup(multi)
            }
            return []
        }
        guard !refused.isEmpty else { return }
        DispatchQueue.global().async { for transfer in refused { transfer.end(Self.missing) } }
    }

    /// Starts the thread, on which no signal is handled: one of the app's would interrupt it.
    private func start() -> Bool {
        var (blocked, known) = (sigset_t(), sigset_t())
        sigfillset(&blocked)
        for crash in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            sigdelset(&blocked, crash)
        }
        pthread_sigmask(SIG_BLOCK, &blocked, &known)
        defer { pthread_sigmask(SIG_SETMASK, &known, nil) }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread, nil,
            { context in
                Unmanaged<CurlThread>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    // MARK: - On the thread

    private func run() {
        ccurl_name_thread("ubiquity-http")
        guard ccurl_load(), var multi = curl_multi_init() else { return refuse() }
        lock.withLock { inbox.multi = multi }
        while true {
            // Before the next request: the machine may have slept since the last one.
            if isIdleForLong, let new = curl_multi_init() {
                // From now on, nobody wakes the old one.
                lock.withLock { inbox.multi = new }
                curl_multi_cleanup(multi)
                multi = new
            }
            takeRequests(multi)
            var count: Int32 = 0
            let isFine = curl_multi_perform(multi, &count) == 0
            endComplete(multi)
            endSilent(multi)
            sleep(multi, isFine)
        }
    }

    /// Ends what has begun. What begins later ends at once.
    private func refuse() {
        let begun = lock.withLock {
            inbox.state = .missing
            defer { (inbox.begun, inbox.cancelled) = ([], []) }
            return inbox.begun
        }
        for transfer in begun { transfer.end(Self.missing) }
    }

    private func takeRequests(_ multi: OpaquePointer) {
        let (begun, cancelled) = lock.withLock {
            defer { (inbox.begun, inbox.cancelled, inbox.sleeps) = ([], [], false) }
            return (inbox.begun, inbox.cancelled)
        }
        for transfer in begun { start(transfer, multi) }
        for transfer in cancelled { end(transfer, HTTPFailure.cancelled, multi) }
    }

    private func start(_ transfer: CurlTransfer, _ multi: OpaquePointer) {
        idleSince = nil
        guard let easy = spare.popLast() ?? curl_easy_init() else {
            return transfer.end(HTTPFailure.other("there is no memory left"))
        }
        count += 1
        do {
            try transfer.prepare(easy, count, environment)
            guard curl_multi_add_handle(multi, easy) == 0 else {
                throw HTTPFailure.other("libcurl does not take the request")
            }
            running[ObjectIdentifier(transfer)] = transfer
        } catch {
            release(easy, of: transfer)
            if running.isEmpty { idleSince = CurlTransfer.now }
            transfer.end(error)
        }
    }

    /// Ends the requests with which curl has finished.
    private func endComplete(_ multi: OpaquePointer) {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let context = ccurl_get_private(easy)
            else { continue }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            end(transfer, transfer.reason(Int(message.pointee.data.result)), multi)
        }
    }

    private func endSilent(_ multi: OpaquePointer) {
        let now = CurlTransfer.now
        for transfer in running.values where transfer.silentAt <= now {
            end(transfer, HTTPFailure.silent, multi)
        }
    }

    /// Does nothing if it has ended, or not begun.
    private func end(_ transfer: CurlTransfer, _ error: (any Error)?, _ multi: OpaquePointer) {
        guard running.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        if running.isEmpty { idleSince = CurlTransfer.now }
        transfer.isOver = true
        if let easy = transfer.easy {
            curl_multi_remove_handle(multi, easy)
            release(easy, of: transfer)
        }
        transfer.end(error)
    }

    private func release(_ easy: OpaquePointer, of transfer: CurlTransfer) {
        // Forgets all pointers to the request.
        curl_easy_reset(easy)
        transfer.forgetHandle()
        if spare.count < Self.spareMax { spare.append(easy) } else { curl_easy_cleanup(easy) }
    }

    /// Whether to close the connections that are kept. Nobody else would notice when a server closes
    /// them.
    private var isIdleForLong: Bool {
        guard running.isEmpty, let since = idleSince else { return false }
        guard CurlTransfer.now - since >= Self.idleMillisecondsMax else { return false }
        idleSince = nil
        return true
    }

    private func sleep(_ multi: OpaquePointer, _ isFine: Bool) {
        let idleEnd = idleSince.map { $0 + Self.idleMillisecondsMax }
        let wakes = running.values.lazy.map(\.silentAt).min() ?? idleEnd ?? .max
        let milliseconds = min(max(wakes - CurlTransfer.now, 0), Int64(Int32.max))
        let sleeps = lock.withLock {
            inbox.sleeps = inbox.begun.isEmpty && inbox.cancelled.isEmpty
            return inbox.sleeps
        }
        guard sleeps else { return }
        let code = curl_multi_poll(multi, nil, 0, Int32(milliseconds), nil)
        // Nothing is known to cause this, but it must not become a busy loop.
        if code != 0 || !isFine { usleep(10_000) }
    }
}
#endif
