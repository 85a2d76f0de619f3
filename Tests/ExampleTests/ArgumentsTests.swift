// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ExampleStage

struct ArgumentsTests {
    @Test func `the home comes from the option, else from the environment, else there is none`()
        throws
    {
        #expect(try Arguments([], home: nil, names: []).home == nil)
        #expect(try Arguments([], home: "", names: []).home == nil)
        #expect(try Arguments([], home: "/e", names: []).home == "/e")
        #expect(try Arguments(["--home", "/o"], home: "/e", names: []).home == "/o")
    }

    @Test func `an example has options of its own`() throws {
        let arguments = try Arguments(
            ["--print", "--edition", "lite"], home: nil, names: ["--edition"])
        #expect(arguments.isPrinting)
        #expect(arguments.options == ["--edition": "lite"])
    }

    @Test(arguments: [["--edition", "lite"], ["--home"], ["--home", "--print"], ["x"]])
    func `something that does not exist is refused with a sentence`(arguments: [String]) {
        let error = #expect(throws: (any Error).self) {
            try Arguments(arguments, home: nil, names: [])
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains(arguments[0]))
    }
}
