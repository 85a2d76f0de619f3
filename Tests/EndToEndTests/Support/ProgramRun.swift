// SPDX-License-Identifier: Apache-2.0

/// What a command of the program left behind.
struct ProgramRun: Sendable {
    var status: Int32
    var output: String
    var errors: String
}
