// SPDX-License-Identifier: Apache-2.0

import Foundation

/// One line of the table.
struct Measurement {
    var name: String
    var result: String
    var target: String?
    var isMet: Bool?

    private var verdict: String {
        switch isMet {
        case true?: "met"
        case false?: "**missed**"
        case nil: ""
        }
    }

    fileprivate var line: String { "| \(name) | \(result) | \(target ?? "") | \(verdict) |" }
}

/// What is printed: the machine, the table, the command that repeats it.
struct Report {
    /// As it was before the run.
    var machine: String
    var measurements: [Measurement] = []

    func text(command: String) -> String {
        """
        \(machine)
        Repeat with: `\(command)`

        | What | Measured | Target | |
        | --- | --- | --- | --- |
        \(measurements.map(\.line).joined(separator: "\n"))
        """
    }
}

enum Machine {
    static var description: String {
        let cores = ProcessInfo.processInfo.activeProcessorCount
        return """
            Machine: \(processor), \(cores) cores; \(system); \(compiler).
            Date: \(Date.now.formatted(.iso8601.year().month().day())). \
            Load average before the run: \(load).
            """
    }

    /// A run beside other work says little.
    private static var load: String {
        var average = 0.0
        return getloadavg(&average, 1) == 1 ? String(format: "%.2f", average) : "unknown"
    }

    private static var processor: String {
        let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("model name") }
        let name = line?.split(separator: ":").last ?? "processor unknown"
        return name.trimmingCharacters(in: .whitespaces)
    }

    private static var system: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "system unknown" }
        return withUnsafeBytes(of: name.sysname) { String(cString: $0) } + " "
            + withUnsafeBytes(of: name.release) { String(cString: $0) }
    }

    private static var compiler: String {
        let program = Process()
        let output = Pipe()
        program.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        program.arguments = ["swift", "--version"]
        program.standardOutput = output
        program.standardError = FileHandle.nullDevice
        guard (try? program.run()) != nil,
            let text = try? output.fileHandleForReading.readToEnd()
        else { return "Swift unknown" }
        program.waitUntilExit()
        let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first
        return line.map(String.init) ?? "Swift unknown"
    }
}

extension String {
    fileprivate init(cString bytes: UnsafeRawBufferPointer) {
        self.init(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}
