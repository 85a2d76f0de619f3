// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import SwiftProtobuf
internal import UbiquityWire

extension Problem {
    /// Problem details according to RFC 9457, in JSON whatever the request accepts.
    var response: Response {
        Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body))
    }

    var headers: HTTPFields {
        var headers: HTTPFields = [.contentType: "application/problem+json"]
        if let retryAfterSeconds { headers[.retryAfter] = "\(retryAfterSeconds)" }
        if let allow { headers[.allow] = allow }
        if status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
        return headers
    }

    var body: ByteBuffer { ByteBuffer(bytes: WireFormat.json.encode(message)) }

    private var message: WireProblem {
        .with {
            $0.type = "urn:ubiquity:problem:\(code)"
            $0.title = status.reasonPhrase
            $0.status = UInt32(status.code)
            $0.detail = detail
            $0.code = code
            $0.serverMilliseconds = UInt64(clamping: serverMilliseconds ?? 0)
        }
    }
}
