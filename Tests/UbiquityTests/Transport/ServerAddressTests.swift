// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Testing
import Ubiquity
import UbiquityCore

struct ServerAddressTests {
    @Test(arguments: [
        "https://ubiquity.example", "https://192.0.2.1", "http://localhost:1", "http://127.0.0.1",
        "http://[::1]:7717/base", "HTTP://LOCALHOST",
    ])
    func `a credential may only go where nobody can read it in transit`(text: String) throws {
        #expect(try ServerAddress(text, ConnectionSecurity()).isPrivate)
    }

    @Test(arguments: [
        "http://ubiquity.example", "http://127.0.0.1.evil.example", "http://localhost.",
        "http://192.168.0.1", "http://2130706433", "http://127.1", "http://[::2]",
        "http://localhost.evil.example:7717", "http://0.0.0.0",
    ])
    func `it goes elsewhere only if that was allowed`(text: String) throws {
        #expect(throws: LinkFailure.self) { try ServerAddress(text, ConnectionSecurity()) }
        let allowed = try ServerAddress(text, ConnectionSecurity(allowsPlainHTTP: true))
        #expect(!allowed.isPrivate)
        // As an account has it that was signed in before there was this rule.
        #expect(try !ServerAddress(text).isPrivate)
    }

    @Test(arguments: [
        "http://127.0.0.1@evil.example", "http://evil.example#@127.0.0.1", "http://", "127.0.0.1",
        "http://evil.example?127.0.0.1", "file://localhost", "http:localhost",
    ])
    func `a name that only looks like this machine's address is not one`(text: String) {
        for security in [ConnectionSecurity(), ConnectionSecurity(allowsPlainHTTP: true)] {
            #expect(throws: LinkFailure.self) { try ServerAddress(text, security) }
        }
    }

    @Test(arguments: [
        "", "nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n",
        "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----",
    ])
    func `invalid certificates are refused before anything is sent`(text: String) throws {
        let error = #expect(throws: LinkFailure.self) {
            try ServerAddress("https://localhost", ConnectionSecurity(certificates: text))
        }
        #expect(error?.kind == .refused)
        let authority = ConnectionSecurity(certificates: TestIdentity.authority)
        #expect(try ServerAddress("https://localhost", authority).isPrivate)
    }
}
