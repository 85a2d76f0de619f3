// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct TransferPatienceTests {
    private static let waits: [(Int64, Int64)] = [
        (0, 50_000), (1, 50_000), (20, 50_000), (21, 52_500), (60, 150_000), (240, 600_000),
        (241, 600_000), (.max, 600_000), (-1, 50_000),
    ]

    @Test(arguments: waits)
    func `a stream is waited for as its server says, never less than before and not forever`(
        keepAliveSeconds: Int64, milliseconds: Int64
    ) {
        #expect(
            IdleTimeout.streamMilliseconds(keepAliveSeconds: keepAliveSeconds) == milliseconds)
    }

    @Test func `a longer patience counts from the last byte`() {
        var patience = IdleTimeout(now: 1_000)
        #expect(patience.end == 31_000)
        patience.moved(at: 5_000)
        patience.silenceMilliseconds = 150_000
        #expect(patience.end == 155_000)
    }
}
