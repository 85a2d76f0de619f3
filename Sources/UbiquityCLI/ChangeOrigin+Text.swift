// SPDX-License-Identifier: Apache-2.0

import Ubiquity

extension UbiquityChange.Origin {
    /// The word in the JSON of `watch`.
    var word: String {
        switch self {
        case .own: "own"
        case .elsewhere: "server"
        case .initialSync: "initial-sync"
        case .quotaViolation: "quota"
        case .accountChange: "account"
        }
    }

    var phrase: String {
        switch self {
        case .own: "changed here"
        case .elsewhere: "changed elsewhere"
        case .initialSync: "first download"
        case .quotaViolation: "refused, the store is full"
        case .accountChange: "account changed"
        }
    }
}
