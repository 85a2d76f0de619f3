// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore
import UbiquityWire

/// The file of a sealed account, made on a device with the key: the server has nothing but boxes.
struct AccountOpening {
    let account: SignedInAccount
    let keyring: Keyring

    /// - Parameter take: Called with each piece, in order.
    /// - Throws: ``LinkFailure``; ``Failure`` if there are values that the keys do not open; what
    ///   `take` throws.
    func export(withHistory: Bool, _ take: ([UInt8]) throws -> Void) async throws {
        var writer = AccountFileWriter()
        let summary = try await ServerRequest(.get, ["account"], of: account)
            .answer(WireAccount.self, isList: true) { $0 }
        try take(writer.begin(summary, madeMilliseconds: Date().milliseconds))
        for store in try await AccountClient.stores(account) {
            let identifier = try StoreIdentifier(store.identifier)
            let records = try await AccountClient.store(identifier, account, keyring).records
            if let unopened = records.first(where: { $0.content.isSealed }) {
                throw Failure(
                    .noPermission,
                    "no key of this device opens the value of \"\(unopened.key.string)\" in the store "
                        + identifier.string)
            }
            try take(writer.beginStore(identifier))
            for (key, value) in records.visibleValues.sorted(by: { $0.key < $1.key }) {
                try take(writer.record(key, value))
            }
            if withHistory {
                try take(writer.beginHistory())
                try await versions(of: identifier) { try take(writer.version($0)) }
            }
            try take(writer.endStore())
        }
        try take(writer.end())
    }

    private func versions(
        of store: StoreIdentifier, _ take: (RecordVersion) throws -> Void
    ) async throws {
        var place: String?
        repeat {
            let page = try await AccountClient.history(of: store, from: place, account, keyring)
            for version in page.versions { try take(version) }
            place = page.next
        } while place != nil
    }
}
