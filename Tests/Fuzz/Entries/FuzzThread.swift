// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Runs the checks of one entry on a thread with the stack that the shipped code has.
///
/// Shared state: `bytes` and `failure`. Unchecked: the semaphores pass them to and fro, one side at
/// a time.
package final class FuzzThread: @unchecked Sendable {
    private let entry: FuzzEntry
    private let begin = DispatchSemaphore(value: 0)
    private let end = DispatchSemaphore(value: 0)
    private var bytes: [UInt8]?
    private var failure: (any Error)?

    package init(_ entry: FuzzEntry) {
        self.entry = entry
        let thread = Thread { [self] in work() }
        thread.name = entry.name
        thread.stackSize = entry.stackBytes
        thread.start()
    }

    /// To be called by one thread at a time.
    /// - Throws: What the entry's check throws.
    package func check(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        begin.signal()
        end.wait()
        if let failure { throw failure }
    }

    /// Lets the thread end.
    package func close() {
        bytes = nil
        begin.signal()
    }

    private func work() {
        let signalStack = SignalStack()
        defer { signalStack.giveBack() }
        while true {
            begin.wait()
            guard let bytes else { return }
            do {
                try entry.check(bytes)
                failure = nil
            } catch { failure = error }
            end.signal()
        }
    }
}

/// Where a handler of this thread runs when the thread's own stack is used up: else the system ends
/// the process before anybody can note which bytes did it.
private struct SignalStack {
    #if canImport(Glibc)
    private static let bytesCount = 1 << 17
    private let memory = UnsafeMutableRawPointer.allocate(byteCount: bytesCount, alignment: 16)

    init() {
        var stack = stack_t()
        stack.ss_sp = memory
        stack.ss_size = Self.bytesCount
        sigaltstack(&stack, nil)
    }

    func giveBack() {
        var none = stack_t()
        none.ss_flags = CInt(SS_DISABLE)
        sigaltstack(&none, nil)
        memory.deallocate()
    }
    #else
    func giveBack() {}
    #endif
}
