// SPDX-License-Identifier: Apache-2.0

/// What a locked device asks for by the code that it shows: the front of its ``KeyCode``.
package struct UnlockRequest: Hashable, Sendable {
    /// Those that the device may use; empty for all.
    package var stores: [StoreIdentifier]

    package init(stores: [StoreIdentifier]) { self.stores = stores }

    private static let word = "unlock"

    /// - Returns: Nil for a code of another kind.
    package init?(front: String) {
        let (front, word) = (Array(front.utf8), Array(Self.word.utf8))
        guard front != word else {
            self.init(stores: [])
            return
        }
        guard front.starts(with: word + [UInt8(ascii: "#")]) else { return nil }
        var stores: [StoreIdentifier] = []
        for name in front.dropFirst(word.count + 1).split(separator: UInt8(ascii: ",")) {
            guard let store = try? StoreIdentifier(String(decoding: name, as: UTF8.self)) else {
                return nil
            }
            stores.append(store)
        }
        guard !stores.isEmpty else { return nil }
        self.init(stores: stores)
    }

    package var front: String {
        var front = Self.word
        for (index, store) in stores.enumerated() {
            front += (index == 0 ? "#" : ",") + store.string
        }
        return front
    }
}

/// What a person gives a device to unlock it: a code that it has shown itself, or that signs it in, or the
/// account's recovery key.
package enum UnlockSecret: Hashable, Sendable {
    case handover(HandoverSecret)
    case recovery(RecoveryKey)

    /// - Throws: ``KeyringRefusal/mistyped`` for a damaged code, and what is wrong with a recovery key.
    package init(given text: String) throws(KeyringRefusal) {
        guard let code = KeyCode(text) else { throw .mistyped }
        self =
            if let secret = code.secret { .handover(secret) } else {
                .recovery(try RecoveryKey(given: text))
            }
    }
}
