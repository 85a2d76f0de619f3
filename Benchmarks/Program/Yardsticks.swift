// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness

/// What this machine needs for the parts of which every exchange consists.
enum Yardsticks {
    private static let count = 500

    static func measure(_ stage: Stage, port: Int) throws -> [Measurement] {
        [
            line("Yardstick: flush of 4 KiB to the same disk", try flush(stage)),
            line("Yardstick: `GET /v1/config`, bare socket", try roundTrip(port)),
        ]
    }

    private static func line(_ name: String, _ samples: Samples) -> Measurement {
        Measurement(name: name, result: samples.percentiles)
    }

    private static func flush(_ stage: Stage) throws -> Samples {
        let file = open(stage.path("yardstick"), O_RDWR | O_CREAT, 0o600)
        guard file >= 0 else { throw Trouble.system("open") }
        defer { close(file) }
        let page = [UInt8](repeating: 1, count: 4_096)
        return try Samples(repeating: count) {
            guard write(file, page, page.count) == page.count, flush(file) == 0 else {
                throw Trouble.system("write")
            }
        }
    }

    private static func flush(_ file: Int32) -> Int32 {
        #if canImport(Darwin)
        fsync(file)
        #else
        fdatasync(file)
        #endif
    }

    private static func roundTrip(_ port: Int) throws -> Samples {
        let connection = try HTTPConnection(port: port)
        let request = HTTPConnection.request("GET", "/v1/config")
        for _ in 0..<50 { _ = try connection.exchange(request) }
        return try Samples(repeating: count) { _ = try connection.exchange(request) }
    }
}
