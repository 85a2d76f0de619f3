// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing

/// Commands that are typed to.
extension Stage {
    /// One, and its end.
    struct Typed {
        var status: Int32
        var output: String
        var errors: String

        init(_ child: ChildProcess) async throws {
            status = try await child.exit()
            (output, errors) = (child.output, child.errors)
        }

        init(_ line: String, to child: ChildProcess, _ input: Pipe) async throws {
            try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
            try await self.init(child)
        }
    }

    /// Runs a command that shows a recovery key, and types it back.
    func confirming(_ arguments: String...) async throws -> (run: Typed, key: String) {
        let input = Pipe()
        let child = try start(arguments, input: input)
        let key = try await child.recoveryKey()
        return (try await Typed(key, to: child, input), key)
    }
}

extension ChildProcess {
    /// The recovery key that the command shows, and wants to have typed back.
    func recoveryKey() async throws -> String {
        try await until("the recovery key") { !isRunning || errors.contains("Type it here:") }
        let match = errors.firstMatch(of: /(?<key>(?:[0-9A-Z]{4}-){8}[0-9A-Z]{4})/)
        return String(try #require(match, "\(lastWords)").key)
    }
}
