// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CCurl
internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// A request that curl carries out, with what its callbacks need. They are called by curl on the
/// client's thread, which keeps the transfer until curl has forgotten it.
///
/// Shared state: `hasCancelled`, guarded by `lock`. All else belongs to the thread.
final class CurlTransfer: @unchecked Sendable {
    /// The uptime in milliseconds, which counts the time that the machine sleeps.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    private(set) var request: HTTPRequest
    /// Nil once it has been told of the end: it may keep what cancels the request.
    private var receiver: (any HTTPReceiver)?
    private let lock = NSLock()
    private var hasCancelled = false

    /// Curl's handle, while it has the request.
    private(set) var easy: OpaquePointer?
    /// Distinguishes the requests of a process.
    private var number: UInt = 0
    private var proxy: String?
    private var fields: UnsafeMutablePointer<curl_slist>?
    /// Curl's words for an error.
    private var words: UnsafeMutablePointer<CChar>?
    private var head = AnswerHeadReader()
    /// Why a callback ended the request.
    private var error: (any Error)?
    private var idle = IdleTimeout(now: CurlTransfer.now)
    private var bytesSent: Int64 = 0
    private var attempts = 0
    /// Whether the receiver is to be called no more, but for the end.
    var isOver = false

    init(_ request: HTTPRequest, _ receiver: any HTTPReceiver) {
        (self.request, self.receiver) = (request, receiver)
    }

    /// When nothing will have moved for too long. It is not asked of a request that has ended.
    var silentAt: Int64 { receiver?.silentAt(idle) ?? .max }

    /// From any thread.
    /// - Returns: False if it was cancelled before.
    func cancel() -> Bool {
        lock.withLock {
            defer { hasCancelled = true }
            return !hasCancelled
        }
    }

    private var isCancelled: Bool { lock.withLock { hasCancelled } }

    /// Tells the receiver, once.
    func end(_ error: (any Error)?) {
        guard let receiver else { return }
        self.receiver = nil
        receiver.ended(isCancelled ? HTTPFailure.cancelled : error)
    }

    // MARK: - The handle

    /// Tells curl everything about the request.
    /// - Parameter number: One that no other request has.
    /// - Throws: ``HTTPFailure`` if it cannot be made.
    func prepare(
        _ easy: OpaquePointer, _ number: UInt, _ environment: CurlEnvironment
    ) throws(HTTPFailure) {
        (self.easy, self.number) = (easy, number)
        proxy = request.socket == nil ? environment.proxy(for: request.url) : nil
        try CurlOptions(easy).set(request, environment, proxy)
        try setFields(easy)
        // What curl copies need not be kept.
        request.body = nil
        let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        self.words = words
        let context = Unmanaged.passUnretained(self).toOpaque()
        ccurl_set_pointer(easy, Int(CURLOPT_ERRORBUFFER), words)
        ccurl_set_pointer(easy, Int(CURLOPT_PRIVATE), context)
        ccurl_note_verdict(easy, number)
        ccurl_set_ready(
            easy, { context, _, _, _, _ in CurlTransfer.of(context).ready() ? 0 : 1 }, context)
        ccurl_set_progress(
            easy, { context, _, _, _, sent in CurlTransfer.of(context).sent(sent) ? 0 : 1 },
            context)
        let code = ccurl_set_takers(
            easy,
            { bytes, _, count, context in
                CurlTransfer.of(context).take(bytes, count) { try $0.readHead($1) }
            },
            { bytes, _, count, context in
                CurlTransfer.of(context).take(bytes, count) { try $0.receiver?.received($1) }
            }, context)
        guard code == 0 else { throw .other("libcurl is too old") }
    }

    private func setFields(_ easy: OpaquePointer) throws(HTTPFailure) {
        var lines = request.fields.map {
            $0.value.isEmpty ? $0.name + ";" : "\($0.name): \($0.value)"
        }
        // What curl adds by itself.
        let names = Set(request.fields.map { $0.name.lowercased() })
        for name in ["Accept", "Content-Type", "Expect"] where !names.contains(name.lowercased()) {
            lines.append(name + ":")
        }
        for line in lines {
            guard let longer = curl_slist_append(fields, line) else {
                throw .other("there is no memory left")
            }
            fields = longer
        }
        ccurl_set_pointer(easy, Int(CURLOPT_HTTPHEADER), fields)
    }

    /// To be called once curl has forgotten the request.
    func forgetHandle() {
        easy = nil
        curl_slist_free_all(fields)
        words?.deallocate()
        (fields, words) = (nil, nil)
    }

    // MARK: - Called by curl

    private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue()
    }

    /// The connection is there, and the request is about to be sent: for the second time if a kept
    /// connection turned out to be closed. That is once, and on a new one.
    private func ready() -> Bool {
        idle.moved(at: Self.now)
        bytesSent = 0
        attempts += 1
        if let easy { ccurl_set_long(easy, Int(CURLOPT_FRESH_CONNECT), 1) }
        guard attempts > 2 else { return true }
        error = HTTPFailure.closed
        return false
    }

    private func sent(_ bytes: Int64) -> Bool {
        if bytes != bytesSent {
            uploadedBytes.add(Int(max(0, bytes - bytesSent)), ordering: .relaxed)
            bytesSent = bytes
            idle.moved(at: Self.now)
        }
        return isOver || !isCancelled
    }

    /// - Returns: The number of bytes taken: none ends the request.
    private func take(
        _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int,
        _ read: (CurlTransfer, UnsafeRawBufferPointer) throws -> Void
    ) -> Int {
        guard !isOver, !isCancelled else { return count == 0 ? 1 : 0 }
        do {
            try read(self, UnsafeRawBufferPointer(start: bytes, count: count))
            idle.moved(at: Self.now)
            return count
        } catch {
            self.error = error
            return count == 0 ? 1 : 0
        }
    }

    private func readHead(_ line: UnsafeRawBufferPointer) throws {
        if let head = try head.read(line) { try receiver?.began(head) }
    }

    // MARK: - The end

    /// Why the request ended with one of curl's codes; nil if the answer is complete.
    func reason(_ code: Int) -> (any Error)? {
        if let error { return error }
        guard let easy, code != CURLE_OK || !head.isComplete else { return nil }
        let text = words.map { String(cString: $0) } ?? ""
        return CurlReason(
            easy: easy, number: number, request: request, usesProxy: proxy != nil,
            hasBegun: head.isComplete,
            code: code,
            words: text.isEmpty ? String(cString: curl_easy_strerror(Int32(code))) : text
        ).failure
    }
}
#endif
