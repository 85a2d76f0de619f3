// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import SwiftProtobuf
internal import UbiquityWire

extension Response {
    init(_ message: some Message, _ format: WireFormat) {
        self.init(bytes: format.encode(message), format)
    }

    init(bytes: [UInt8], _ format: WireFormat) {
        self.init(
            status: .ok, headers: [.contentType: format.rawValue],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
