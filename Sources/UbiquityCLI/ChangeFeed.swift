// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// The changes of a store that come from outside, as they arrive.
enum ChangeFeed {
    struct Event {
        var reason: Notice.Reason
        var keys: [String]
    }

    /// Ends when it is told to by its continuation, or its reader stops.
    static func open(
        _ store: UbiquitousKeyValueStore
    ) -> (events: AsyncStream<Event>, end: @Sendable () -> Void) {
        let (events, continuation) = AsyncStream<Event>.makeStream()
        let token = Observation(
            NotificationCenter.default.addObserver(
                forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
                queue: nil
            ) { notification in
                if let event = Event(notification.userInfo ?? [:]) { continuation.yield(event) }
            })
        continuation.onTermination = { _ in token.end() }
        return (events, { continuation.finish() })
    }

    /// `@unchecked Sendable`: the token is only ever handed back to the centre, from any thread.
    private struct Observation: @unchecked Sendable {
        private let token: any NSObjectProtocol

        init(_ token: any NSObjectProtocol) { self.token = token }

        func end() { NotificationCenter.default.removeObserver(token) }
    }
}

extension ChangeFeed.Event {
    fileprivate init?(_ userInfo: [AnyHashable: Any]) {
        guard let number = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
            let reason = Notice.Reason(rawValue: number),
            let keys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
        else { return nil }
        self.init(reason: reason, keys: keys)
    }
}

extension Notice.Reason {
    /// As the JSON of `watch` has it.
    var word: String {
        switch self {
        case .serverChange: "server"
        case .initialSync: "initial-sync"
        case .quotaViolation: "quota"
        case .accountChange: "account"
        }
    }

    var phrase: String {
        switch self {
        case .serverChange: "changed elsewhere"
        case .initialSync: "first download"
        case .quotaViolation: "refused, the store is full"
        case .accountChange: "account changed"
        }
    }
}
