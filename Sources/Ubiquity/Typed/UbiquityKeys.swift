// SPDX-License-Identifier: Apache-2.0

/// Where an app declares its keys, so that `store[.volume]` finds them.
///
/// ```swift
/// extension UbiquityKeys {
///     static let volume = UbiquityKey("volume", default: 0.8)
///     static let nickname = UbiquityKey<String?>("nickname")
/// }
/// ```
///
/// It has no state and no instances but keys: ``UbiquityKey`` inherits from it because an implicit
/// member such as `.volume` is looked up in the superclasses too, while a generic type can have no
/// static constants of its own. `@unchecked Sendable` because it is not final: nothing outside of
/// this module can inherit from it, and what does has constants only.
public class UbiquityKeys: @unchecked Sendable {
    init() {}
}
