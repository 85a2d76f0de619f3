// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// How a device is, as far as a look can tell. What follows from it is ``findings``.
struct DeviceFacts {
    enum Home: Equatable {
        case none(String)
        /// The lower nine bits of its mode.
        case folder(path: String, mode: Int, isOwn: Bool)
        case missing(path: String)
    }

    enum SignIn: Equatable {
        case none
        case account(name: String, server: String, device: String)
        case unreadable(String)
    }

    /// One step towards the server; those after one that failed are not gone.
    struct Contact: Equatable {
        var host: String
        var port: Int
        var isEncrypted: Bool
        /// Nil: the step was not come to. An error is a sentence's part, such as "nobody listens".
        var name: Outcome?
        var connection: Outcome?
        var server: Outcome?
        var credential: Credential?
        /// The device's clock less the server's, and how wrong that may be.
        var clock: (differenceMilliseconds: Int64, uncertaintyMilliseconds: Int64)?

        static func == (a: Contact, b: Contact) -> Bool {
            a.host == b.host && a.port == b.port && a.server == b.server
        }
    }

    enum Outcome: Equatable {
        case success
        case failure(String)
    }

    enum Credential: Equatable {
        case valid
        case refused
        case unknown(String)
    }

    enum Identifier: Equatable {
        case named(String, source: String)
        case none
        case invalid(String)
    }

    struct Store {
        struct Content {
            var usage: Usage
            var limits: StoreLimits
            var pendingCount: Int
            var refusedCount: Int
            var hasCompletedFirstSync: Bool
            var link: LinkStatus
            var cursor: Cursor?
        }

        enum Lease: Equatable {
            case free
            /// Such as "notes (4711)"; nil: it is not known who.
            case held(by: String?, isStopped: Bool = false)
            case unknown
        }

        var identifier: String
        /// Whether the command was asked about it by name.
        var isAskedFor = true
        /// Nil: no program has opened it yet. An error is a sentence.
        var content: Result<Content, LocalFailure>?
        var lease = Lease.free
        /// Why the server does not let this device into the store; nil: it does, or was not asked.
        var refusal: String?
    }

    struct LocalFailure: Error, Equatable { var sentence: String }

    var home: Home
    var signIn = SignIn.none
    var contact: Contact?
    var identifier = Identifier.none
    var stores: [Store] = []
    /// On the disk of the home; nil: not known.
    var freeBytes: Int?
    /// Why the kernel has no more room for watches of folders; nil: it has.
    var watchFailure: String?
    /// Milliseconds since 1970 by this device's clock.
    var now: Int64
}
