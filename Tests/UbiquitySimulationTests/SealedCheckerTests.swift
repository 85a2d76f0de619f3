// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// What breaks the promises of sealed accounts, at its smallest.
struct SealedCheckerTests: SmallHistory {
    /// A device has sealed the whole store.
    private func sealed(
        _ before: [Record], _ after: [Record], _ change: (inout Commit) -> Void = { _ in }
    ) throws -> Observation {
        let other = record(9, at: 9)
        guard case .committed(var whole) = try self.commit(before, after, pushed: [other]) else {
            return opened()
        }
        (whole.push, whole.results, whole.writes) = (Push([]), [], after)
        (whole.isSealed, whole.isWhole) = (true, true)
        change(&whole)
        return .committed(whole)
    }

    @Test func `a push that the server can read`() throws {
        let push = Push([try Transaction([record(1, at: 1)])])
        let quiet = Observation.pushes(process: 1, push)
        #expect(complaint(SealedChecker(), [opened(), quiet]) == nil)
        let loud = Observation.pushes(process: 1, push, readable: [key])
        #expect(complaint(SealedChecker(), [opened(), loud]) != nil)
    }

    @Test func `a sealed store with what is clear, or what a server can pass off`() throws {
        let write = record(1, at: 1)
        #expect(complaint(SealedChecker(), [try sealed([write], [write])]) == nil)
        let clear = try sealed([write], [write]) { $0.readable = [key] }
        #expect(complaint(SealedChecker(), [clear]) != nil)
        let forged = try sealed([write], [write]) { $0.forgeries = ["in clear"] }
        #expect(complaint(SealedChecker(), [forged]) != nil)
        let settlement = Settlement(server: [:], processes: [], readable: [store: [key]])
        #expect(complaint(SealedChecker(), [.settled(settlement)]) != nil)
    }

    @Test func `a value that is lost, made up or stamped anew when a store is sealed`() throws {
        let write = record(1, at: 1)
        #expect(complaint(CommitChecker(), [try sealed([write], [write])]) == nil)
        #expect(complaint(CommitChecker(), [try sealed([write], [])]) != nil)
        #expect(complaint(CommitChecker(), [try sealed([], [write])]) != nil)
        #expect(complaint(CommitChecker(), [try sealed([write], [record(1, at: 2)])]) != nil)
        #expect(complaint(CommitChecker(), [try sealed([write], [record(2, at: 1)])]) != nil)
    }
}
