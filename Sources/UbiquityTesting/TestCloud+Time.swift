// SPDX-License-Identifier: Apache-2.0

extension TestCloud {
    /// Lets time pass until everything has settled: all possible saves and sends are done, and
    /// every store has been notified.
    ///
    /// This takes as much virtual time as needed: milliseconds if all is well, and up to five
    /// minutes if a device has to notice that the server is back. It does not wait for devices that
    /// are offline, have a full disk, are signed out or locked, nor for anything while the server is
    /// down.
    ///
    /// Ends the program with a message if something has not settled after an hour of virtual time,
    /// for example on a network that loses nearly everything.
    ///
    /// In an asynchronous function, Swift selects the asynchronous variant.
    public func settle(file: StaticString = #fileID, line: UInt = #line) {
        guard let trouble = world.settle() else { return }
        fatalError(
            "The cloud did not settle within an hour of its time: \(trouble).", file: file,
            line: line
        )
    }

    /// Lets this much time pass, with everything that happens meanwhile.
    ///
    /// Costs some microseconds for each event. Days without events cost nothing; a device that
    /// looks for a server in vain does so once a minute.
    ///
    /// In an asynchronous function, Swift selects the asynchronous variant.
    public func advance(
        by duration: Duration, file: StaticString = #fileID, line: UInt = #line
    ) {
        precondition(duration >= .zero, "Time does not go back.", file: file, line: line)
        world.pass(duration.milliseconds)
    }

    /// Lets everything settle like `settle()`, but not on the caller's actor: an observer
    /// registered with `queue: .main` is called while a test on the main actor waits.
    @concurrent
    public func settle(file: StaticString = #fileID, line: UInt = #line) async {
        settleNow(file, line)
    }

    /// Lets this much time pass, but not on the caller's actor: an observer registered with `queue:
    /// .main` is called while a test on the main actor waits.
    @concurrent
    public func advance(
        by duration: Duration, file: StaticString = #fileID, line: UInt = #line
    ) async {
        advanceNow(duration, file, line)
    }

    /// Lets everything settle repeatedly until a condition holds: for an app with tasks of its own,
    /// which Swift runs at any time.
    ///
    /// - Parameters:
    ///   - condition: Called on the caller's actor.
    ///   - file: The file named in error messages.
    ///   - line: The line named in error messages.
    /// - Returns: False if the condition did not hold within some ten seconds of real time.
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

    /// Half of the attempts follow one another directly, the others at intervals of 5 ms.
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
