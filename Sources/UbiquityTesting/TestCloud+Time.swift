// SPDX-License-Identifier: Apache-2.0

extension TestCloud {
    /// Lets everything happen that will: what can be saved is saved, what can be sent is sent, and every
    /// store has been told.
    ///
    /// As much time passes as that takes: milliseconds where all is well, and up to five minutes where a
    /// device has to notice that the server is back. A device that is offline, whose disk is full, or that
    /// nobody is signed in on is not waited for; neither is anything while the server is away.
    ///
    /// Ends the program with a sentence if something has not settled after an hour: on a network, for
    /// example, that loses nearly everything.
    ///
    /// In an asynchronous function, Swift takes the form of it that is awaited.
    public func settle(file: StaticString = #fileID, line: UInt = #line) {
        guard let trouble = world.settle() else { return }
        fatalError(
            "The cloud did not settle within an hour of its time: \(trouble).", file: file,
            line: line
        )
    }

    /// Lets so much time pass, with all that happens in it.
    ///
    /// Costs some microseconds for each thing that happens; days in which nothing does cost nothing, and a
    /// device that looks for a server in vain does so once a minute.
    ///
    /// In an asynchronous function, Swift takes the form of it that is awaited.
    public func advance(
        by duration: Duration, file: StaticString = #fileID, line: UInt = #line
    ) {
        precondition(duration >= .zero, "Time does not go back.", file: file, line: line)
        world.pass(duration.milliseconds)
    }

    /// Lets everything happen that will, as `settle()`, but not on the caller's actor: an
    /// observer that registered with `queue: .main` is called while a test of the main actor waits.
    @concurrent
    public func settle(file: StaticString = #fileID, line: UInt = #line) async {
        settleNow(file, line)
    }

    /// Lets so much time pass, but not on the caller's actor: an observer that registered with
    /// `queue: .main` is called while a test of the main actor waits.
    @concurrent
    public func advance(
        by duration: Duration, file: StaticString = #fileID, line: UInt = #line
    ) async {
        advanceNow(duration, file, line)
    }

    /// Lets all settle again and again until something is so: for an app that has tasks of its own, of
    /// which only Swift knows when they run.
    ///
    /// - Parameters:
    ///   - condition: Is asked on the caller's actor.
    ///   - file: Where a sentence says that it came from.
    ///   - line: The same.
    /// - Returns: False if it was not so after some ten seconds, real ones.
    public func settle(
        until condition: () -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) async -> Bool {
        for attempt in 0..<Self.attemptsMax {
            await settle(file: file, line: line)
            if condition() { return true }
            if attempt < Self.attemptsMax / 2 {
                await Task.yield()
            } else if (try? await Task.sleep(for: .milliseconds(5))) == nil {
                return condition()
            }
        }
        return condition()
    }

    /// Half of them one after the other, the others 5 ms apart.
    private static let attemptsMax = 4_000

    // An asynchronous function that called the two by their names would call itself.
    private func settleNow(_ file: StaticString, _ line: UInt) { settle(file: file, line: line) }

    private func advanceNow(_ duration: Duration, _ file: StaticString, _ line: UInt) {
        advance(by: duration, file: file, line: line)
    }
}

extension Duration {
    var milliseconds: Int64 {
        let (seconds, rest) = components
        return seconds * 1_000 + rest / 1_000_000_000_000_000
    }
}
