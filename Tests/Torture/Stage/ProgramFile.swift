// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A program that the torture starts.
enum ProgramFile: String {
    case ubiquity
    case worker = "UbiquityTestWorker"

    /// Where the build put it: beside this one.
    /// - Throws: ``Trouble``.
    func path() throws -> String {
        let own = Bundle.main.executablePath ?? CommandLine.arguments[0]
        let path = URL(fileURLWithPath: own).deletingLastPathComponent().path + "/" + rawValue
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Trouble("the program \(path) is not built")
        }
        return path
    }
}
