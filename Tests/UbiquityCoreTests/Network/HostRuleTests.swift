// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct HostRuleTests {
    @Test func `a server with names accepts those and the machine's own`() {
        for isReachedByOthers in [false, true] {
            let rule = HostRule(names: ["U.example."], isReachedByOthers: isReachedByOthers)
            for host in [
                "u.example", "U.EXAMPLE:7717", "u.example.", "u.example.:80", "localhost:1",
                "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:80",
            ] {
                #expect(rule.admits(host), "\(host)")
            }
            for host in [
                "", ":80", "evil.example", "u.example.evil.example", "evil.example.u.example", "u",
                "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "[::2]", "[::1",
                "2130706433", "u.example..",
            ] {
                #expect(!rule.admits(host), "\(host)")
            }
        }
    }

    @Test func `a server without names accepts any name, unless only this machine can reach it`() {
        #expect(HostRule(names: [], isReachedByOthers: true).admits("u.example"))
        #expect(!HostRule(names: [], isReachedByOthers: false).admits("u.example"))
        #expect(HostRule(names: [], isReachedByOthers: false).admits("localhost"))
    }
}
