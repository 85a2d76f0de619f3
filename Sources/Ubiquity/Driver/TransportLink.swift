// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Runs each call of a transport in a task of its own.
struct TransportLink: StoreLink {
    let transport: any Transport

    func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void {
        let task = Task {
            var failure: LinkFailure?
            do throws(LinkFailure) {
                try await transport.listen(since: cursor, within: intake, receive: receive)
            } catch { failure = error }
            ended(failure)
        }
        return { task.cancel() }
    }

    func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        Task {
            do throws(LinkFailure) {
                answered(.success(try await transport.push(push, within: intake)))
            } catch { answered(.failure(error)) }
        }
    }

    func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        Task {
            do throws(LinkFailure) {
                let changes = try await transport.pull(
                    since: cursor, withConfig: withConfig, within: intake)
                answered(.success(changes))
            } catch { answered(.failure(error)) }
        }
    }
}
