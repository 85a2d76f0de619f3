// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The program `ubiquity-simulator`, as it was built beside the tests.
enum SimulatorProgram {
    static func run(_ arguments: [String]) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = folder.appendingPathComponent("ubiquity-simulator")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: bytes, as: UTF8.self), process.terminationStatus)
    }

    private static var folder: URL {
        #if os(macOS)
        Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }!.bundleURL
            .deletingLastPathComponent()
        #else
        Bundle.main.bundleURL
        #endif
    }
}
