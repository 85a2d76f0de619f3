// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The state of a device, as far as it can be examined. ``findings`` are the conclusions.
struct DeviceFacts {
    enum Home: Equatable {
        case none(String)
        /// The lower nine bits of its mode.
        case folder(path: String, mode: Int, isOwn: Bool)
        case missing(path: String, canBeMade: Bool)
    }

    enum SignIn: Equatable {
        case none
        case account(name: String, server: String, device: String)
        case unreadable(String)
    }

    /// The steps towards the server. After a failed step, the others are not tried.
    struct Contact {
        var host: String
        var port: Int
        var isEncrypted: Bool
        /// Without its user and password; nil for none. It looks the name up, and connects.
        var proxy: String?
        /// Nil if the step was not reached. An error is part of a sentence, such as "nobody
        /// listens".
        var name: Outcome?
        var connection: Outcome?
        var server: Outcome?
        var credential: Credential?
        /// The device's clock minus the server's, and the uncertainty of that.
        var clock: (differenceMilliseconds: Int64, uncertaintyMilliseconds: Int64)?
    }

    /// Whether the account is sealed.
    enum Sealing: Equatable {
        case none
        case withKey
        case locked
        /// The server says that the account has an older key than this device, or none.
        case restored
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
            var unsendable: UnsendableTransaction?
            /// One for each write.
            var refusedKeys: [Key]
            var setAside = SetAside()
            var link: LinkStatus
            var cursor: Cursor?
        }

        enum Lease: Equatable {
            case free
            /// For example "notes (4711)"; nil if the holder is unknown.
            case held(by: String?, isStopped: Bool = false)
            case unknown
        }

        var identifier: String
        /// Nil if no program has opened it yet. An error is a sentence.
        var content: Result<Content, LocalFailure>?
        var lease = Lease.free
        /// The reason the server does not let this device use the store; nil if it does, or was not
        /// asked.
        var refusal: String?
    }

    struct LocalFailure: Error, Equatable { var sentence: String }

    var home: Home
    var fileSystem = FileSystemKind.local
    var signIn = SignIn.none
    var contact: Contact?
    /// Nil if the server did not say.
    var sealing: Sealing?
    var identifier = Identifier.none
    var stores: [Store] = []
    /// The free space on the disk of the home folder; nil if unknown.
    var freeBytes: Int?
    /// The reason the kernel has no capacity for more folder watches; nil if it has.
    var watchFailure: String?
}
