// SPDX-License-Identifier: Apache-2.0

extension ServerRequest {
    /// Downloads an archive piece by piece.
    /// - Parameter take: Called with each piece, in order. An error that it throws ends the
    ///   download.
    /// - Throws: ``LinkFailure``, or the error of `take`; the pieces so far are not a valid archive
    ///   then.
    func archive(take: @escaping @Sendable ([UInt8]) throws -> Void) async throws {
        var request = self
        request.accept = "application/x-tar"
        let receiver = ArchiveReceiver(address, mediaType: request.accept, take: take)
        do {
            try await request.stream(to: receiver, receiver.silence)
        } catch { throw receiver.failure ?? error }
    }
}
