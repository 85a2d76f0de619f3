// SPDX-License-Identifier: Apache-2.0

extension Scenario {
    /// The checkers of what devices do.
    package func deviceCheckers(_ clock: TrueTime) -> [any Checker] {
        // No other promise holds against a server that keeps none.
        if isHostile { return [SealedChecker(), ConvergenceChecker()] }
        return [
            NoticeChecker { clock.now }, BatchChecker(groups: groupedKeys), CommitChecker(),
            CursorChecker(), RoundTripChecker(),
            PushRateChecker(allowance: allowance) { clock.now }, ConvergenceChecker(),
            FirstSyncChecker(timeTolerance: timeTolerance),
            MergeChecker(
                policies: mergedKeys, timeTolerance: timeTolerance, isSealed: isSealed),
            SavedFirstChecker(), SealedChecker(),
            SurvivalChecker(timeTolerance: timeTolerance, keepsStamps: keepsStamps),
        ]
    }
}
