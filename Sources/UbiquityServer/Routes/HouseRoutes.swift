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
        let certificate = try await readers.run { [house] in try house.authority() }
        return Answer(
            headers: [
                "Content-Type": "application/x-x509-ca-cert",
                "Content-Disposition": "attachment; filename=\"ubiquity-ca.crt\"",
            ], body: ByteBuffer(bytes: certificate))
    }

    func message() async throws -> WireConfig.House {
        try await readers.run { [house, settings] in
            var message = WireConfig.House()
            message.address = settings.reachedAddress ?? ""
            message.authority = String(decoding: try house.authority(), as: UTF8.self)
            return message
        }
    }
}
