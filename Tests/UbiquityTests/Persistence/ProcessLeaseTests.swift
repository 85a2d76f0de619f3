// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity

struct ProcessLeaseTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.file("store.sqlite.lease")
    }

    @Test func `only one of two has the lease, and keeps it`() throws {
        let (one, other) = (try ProcessLease(path: path), try ProcessLease(path: path))
        #expect(one.tryAcquire())
        #expect(!other.tryAcquire())
        #expect(one.tryAcquire())
    }

    @Test func `a waiting process has the lease as soon as the holder closes`() async throws {
        let (one, other) = (try ProcessLease(path: path), try ProcessLease(path: path))
        #expect(one.tryAcquire())
        let signal = Signal()
        other.whenAcquired { signal.fire() }
        #expect(!signal.hasFired)
        one.close()
        try await signal.wait()
        #expect(other.tryAcquire())
    }

    @Test func `a lease that is already held is reported at once`() async throws {
        let lease = try ProcessLease(path: path)
        #expect(lease.tryAcquire())
        let signal = Signal()
        lease.whenAcquired { signal.fire() }
        try await signal.wait()
    }

    @Test func `a process that was closed while waiting passes the lease on unused`() async throws {
        let leases = try (0..<3).map { _ in try ProcessLease(path: path) }
        #expect(leases[0].tryAcquire())
        let (closed, last) = (Signal(), Signal())
        leases[1].whenAcquired { closed.fire() }
        leases[1].close()
        leases[2].whenAcquired { last.fire() }
        leases[0].close()
        try await last.wait()
        #expect(!closed.hasFired)
        #expect(!leases[1].tryAcquire())
    }

    #if os(Linux)
    /// The kernel's list is then longer than a page, and is read in pieces.
    @Test func `the holder is known among hundreds of locks`() throws {
        let leases = try (0..<300).map { try ProcessLease(path: folder.file("\($0).lease")) }
        for lease in leases { #expect(lease.tryAcquire()) }
        let own = ProcessInfo.processInfo.processIdentifier
        for number in 0..<300 {
            #expect(LockHolder(of: folder.file("\(number).lease"))?.process == own)
        }
        withExtendedLifetime(leases) {}
    }
    #endif

    @Test func `a lease that nobody refers to any more is free`() throws {
        do {
            let lease = try ProcessLease(path: path)
            #expect(lease.tryAcquire())
        }
        #expect(try ProcessLease(path: path).tryAcquire())
    }

    #if os(Linux)
    @Test func `a holder that is killed is noticed at once`() async throws {
        let holder = try ShellLockHolder(path)
        let lease = try ProcessLease(path: path)
        #expect(!lease.tryAcquire())
        let signal = Signal()
        lease.whenAcquired { signal.fire() }
        #expect(!signal.hasFired)
        holder.kill()
        try await signal.wait()
    }
    #endif

    #if os(Linux)
    @Test func `the holder of a lock is the process that has this file, and not its number`() throws
    {
        let held = folder.file("held")
        let lease = try ProcessLease(path: held)
        #expect(LockHolder(of: held) == nil)
        #expect(lease.tryAcquire())
        #expect(LockHolder(of: held)?.process == ProcessInfo.processInfo.processIdentifier)
        // The same number in the list of locks, and the process that is listed has not opened it.
        let other = folder.file("other")
        try FileManager.default.linkItem(atPath: held, toPath: other)
        #expect(LockHolder(of: other) == nil)
        lease.close()
        #expect(LockHolder(of: held) == nil)
    }
    #endif

    @Test func `a lease in a folder that does not exist is refused`() {
        #expect(throws: SystemError.self) { try ProcessLease(path: folder.file("no/lease")) }
    }
}
