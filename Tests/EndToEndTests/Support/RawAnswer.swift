// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport

/// A server's response to a request that was written by hand.
struct RawAnswer {
    var status: Int
    /// The names in lower case.
    var headers: [String: String]
    var body: String

    /// - Parameter isEnough: Whether the body, as far as it has come, is all that is wanted; for
    ///   streams, which do not end.
    static func to(
        _ method: String, _ url: String, headers: [(name: String, value: String)] = [],
        body: String? = nil, isEnough: (String) -> Bool = { _ in false }
    ) async throws -> RawAnswer {
        let answer = try await TestAnswer.to(
            method, url, headers: headers, body: body.map { Array($0.utf8) })
        var bytes: [UInt8] = []
        for try await piece in answer.pieces {
            bytes += piece
            if isEnough(String(decoding: bytes, as: UTF8.self)) { break }
        }
        return RawAnswer(
            status: answer.status, headers: answer.headers,
            body: String(decoding: bytes, as: UTF8.self))
    }
}
