// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// An option or argument of a command, as the argument parser describes it.
struct CommandParameter: Decodable {
    struct Name: Decodable {
        var kind: String
        var name: String
    }
    var kind: String
    var shouldDisplay: Bool
    var isRepeating: Bool
    var names: [Name]?
    var defaultValue: String?
    var abstract: String?

    /// With its dashes.
    var long: String? { names?.first { $0.kind == "long" }.map { "--" + $0.name } }

    /// - Complexity: Some milliseconds.
    static func all(of command: any ParsableCommand.Type) -> [CommandParameter] {
        struct Tool: Decodable { var command: Command }
        struct Command: Decodable { var arguments: [CommandParameter]? }
        let tool = try? JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8))
        return tool?.command.arguments ?? []
    }
}
