// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization

/// Pushes of one key that a server answers, each after its flush, on connections that stay open.
enum PushThroughput {
    private static let connections = 32
    private static let seconds: Int64 = 5

    static func measure(_ stage: Stage) throws -> [Measurement] {
        let server = try Server(stage, name: "throughput")
        defer { server.end() }
        let credential = try server.newCredential()
        let durations = Mutex<[Int64]>([])
        let failures = Mutex<[String]>([])
        let done = DispatchGroup()
        let end = nanoseconds() + seconds * 1_000_000_000
        for number in 0..<connections {
            done.enter()
            let port = server.port
            Thread.detachNewThread {
                defer { done.leave() }
                do {
                    let own = try push(as: number, credential, port: port, until: end)
                    durations.withLock { $0 += own }
                } catch { failures.withLock { $0.append("\(error)") } }
            }
        }
        done.wait()
        if let failure = failures.withLock(\.first) { throw Trouble(failure) }
        return [line(durations.withLock(\.self))]
    }

    private static func push(
        as number: Int, _ credential: String, port: Int, until end: Int64
    ) throws -> [Int64] {
        let connection = try HTTPConnection(port: port)
        var durations: [Int64] = []
        while nanoseconds() < end {
            let start = nanoseconds()
            let answer = try connection.exchange(
                request(key: "key-\(number)", count: durations.count, credential))
            guard answer.firstRange(of: "applied".utf8) != nil else {
                throw Trouble("a push was not applied: \(String(decoding: answer, as: UTF8.self))")
            }
            durations.append(nanoseconds() - start)
        }
        return durations
    }

    /// The counter keeps apart the pushes of one millisecond.
    private static func request(key: String, count: Int, _ credential: String) -> [UInt8] {
        let milliseconds = Int64(Date().timeIntervalSince1970 * 1_000)
        let write = """
            {"key":"\(key)","value":{"string":"value \(count)"},\
            "milliseconds":"\(milliseconds)","counter":\(count % 65_536)}
            """
        return HTTPConnection.request(
            "POST", "/v1/stores/\(SampleStore.identifier)/changes", credential: credential,
            body: "{\"transactions\":[{\"writes\":[\(write)]}]}")
    }

    private static func line(_ durations: [Int64]) -> Measurement {
        let samples = Samples(durations)
        return Measurement(
            name: "Pushes of one key, \(connections) connections, \(seconds) s",
            result: "\(Int64(durations.count) / seconds) a second; \(samples.percentiles)")
    }
}
