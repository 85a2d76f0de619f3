// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// The certificate of the house's authority, for browsers to trust.
struct HouseRoutes: Sendable {
    let house: HouseIdentity
    let readers: BlockingThreads
    let settings: ServerSettings

    var all: [Route] { [Route(.GET, "/ca.crt", .anybodys, authority)] }

    /// The file, of a type that phones offer to install.
    @Sendable private func authority(_ exchange: Exchange) async throws -> Answer {
        let certificate = try await certificate()
        return Answer(
            headers: [
                "Content-Type": "application/x-x509-ca-cert",
                "Content-Disposition": "attachment; filename=\"ubiquity-ca.crt\"",
            ], body: ByteBuffer(bytes: certificate))
    }

    func message() async throws -> WireConfig.House {
        var message = WireConfig.House()
        message.address = settings.reachedAddress ?? ""
        message.authority = String(decoding: try await certificate(), as: UTF8.self)
        return message
    }

    private func certificate() async throws -> [UInt8] {
        try await readers.run { [house] in try house.authority() }
    }
}
