// SPDX-License-Identifier: Apache-2.0

/// A namespace for an app's keys, so that `store[.volume]` finds them.
///
/// ```swift
/// extension UbiquityKeys {
///     static let volume = UbiquityKey("volume", default: 0.8)
///     static let nickname = UbiquityKey<String?>("nickname")
/// }
/// ```
///
/// It has no state, and no instances except keys. ``UbiquityKey`` inherits from it because an
/// implicit member such as `.volume` is also looked up in the superclasses, while a generic type
/// cannot have static constants of its own. `@unchecked Sendable` because it is not final: no other
/// module can inherit from it, and its subclasses only have constants.
public class UbiquityKeys: @unchecked Sendable {
    init() {}
}
