// SPDX-License-Identifier: Apache-2.0

extension ServerRequest {
    /// Fetches an archive piece by piece.
    /// - Parameter take: Called with each piece, in their order. What it throws ends the answer.
    /// - Throws: ``LinkFailure``, or what `take` threw; what was taken so far is no archive then.
    func archive(take: @escaping @Sendable ([UInt8]) throws -> Void) async throws {
        var request = self
        request.accept = "application/x-tar"
        let receiver = ArchiveReceiver(address, mediaType: request.accept, take: take)
        do {
            try await request.stream(to: receiver, receiver.silence)
        } catch { throw receiver.failure ?? error }
    }
}
