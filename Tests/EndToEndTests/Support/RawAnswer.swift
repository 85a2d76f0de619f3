// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1

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
        var request = HTTPClientRequest(url: url)
        request.method = .init(rawValue: method)
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(string: body)) }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(300))
        var text = ""
        for try await chunk in response.body {
            text += String(buffer: chunk)
            if isEnough(text) { break }
        }
        return RawAnswer(
            status: Int(response.status.code),
            headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { $1 },
            body: text)
    }
}
