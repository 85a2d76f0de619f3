// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import UbiquityCore

/// How two writes of one key that were made without knowing of each other become one value.
public enum ConflictPolicy: Sendable {
    case latest, maximum, minimum, unionOfArrays, unionOfDictionaries, counter
    /// The app's own: gets the earlier and the later of two values that were written without knowing
    /// of each other.
    case custom(@Sendable (_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any)
}

/// One of two values that were written without knowing of each other.
public struct ConflictingValue {
    /// The value, boxed as ``UbiquitousKeyValueStore/object(forKey:)`` boxes.
    public var value: Any
    /// When it was written.
    public var date: Date
}

extension UbiquitousKeyValueStore {
    /// Declares how conflicting writes of a key are resolved; to be called before its first use.
    public func setConflictPolicy(_ policy: ConflictPolicy, forKey aKey: String) {}

    /// What a write under a policy says: the app's value went from `base` to `value`. With `.counter`
    /// the difference is added, with unions what was added and removed is, with maximum it is
    /// proposed. What the store has afterwards may be another value.
    ///
    /// Nil: no value.
    /// - Throws: ``UbiquityError`` if it is refused.
    package func propose(
        _ value: PropertyListValue?, over base: PropertyListValue?, forKey aKey: String
    ) throws {
        do {
            try write([try Key(aKey): value.map(Content.value) ?? .deleted])
        } catch { throw UbiquityError(refused: aKey, error) }
    }
}
