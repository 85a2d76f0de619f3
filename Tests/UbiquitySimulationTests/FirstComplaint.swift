// SPDX-License-Identifier: Apache-2.0

@testable import UbiquitySimulation

/// The first complaint about these.
func complaint(_ checker: some Checker, _ observations: [Observation]) -> String? {
    let journal = Journal(checkers: [checker], clock: TrueTime())
    for observation in observations { journal.note(observation) }
    return journal.violation?.complaint
}
