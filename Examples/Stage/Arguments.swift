// SPDX-License-Identifier: Apache-2.0

internal import ProcessHarness

/// The command line of an example's program.
struct Arguments: Equatable {
    /// A single device, which was signed in there; nil: two devices and a server of the stage's own.
    var home: String?
    var isPrinting = false
    var isHelp = false
    var options: [String: String] = [:]

    /// - Parameters:
    ///   - arguments: Without the program's name.
    ///   - home: What the environment says.
    ///   - names: The example's own options.
    /// - Throws: ``Trouble`` with a sentence.
    init(_ arguments: [String], home: String?, names: [String]) throws {
        self.home = home.flatMap { $0.isEmpty ? nil : $0 }
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--print": isPrinting = true
            case "--help", "-h": isHelp = true
            case "--home": self.home = try Self.value(of: argument, &rest)
            case _ where names.contains(argument):
                options[argument] = try Self.value(of: argument, &rest)
            default: throw Trouble("there is no option \(argument)")
            }
        }
    }

    private static func value(
        of option: String, _ rest: inout ArraySlice<String>
    ) throws -> String {
        guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else {
            throw Trouble("\(option) needs a value")
        }
        return value
    }
}
