// SPDX-License-Identifier: Apache-2.0

/// Decides which names of an app's preferences can be mirrored.
package enum MirrorableNames {
    /// The prefix of a mirror's own bookkeeping.
    package static let bookkeeping = "UbiquityMirror:"

    /// Prefixes that systems and frameworks use in an app's preferences, for settings of one
    /// machine.
    private static let foreignPrefixes = [
        "AK", "Apple", "NS", "com.apple.", "AddingEmojiKeybordHandled", "INNextFreshmintRefresh",
        "INNextHearbeatDate", "METAL_", "MSVLoggingMasterSwitchEnabledKey",
        "MultipleProcessesEnabled",
        "PKKeychainVersionKey", "PKLogNotificationServiceResponsesKey", "WebDatabaseDirectory",
        "WebKit",
    ]

    /// The reason a name is never mirrored, as a sentence; nil if it can be.
    package static func refusal(of name: String) -> String? {
        if name.isEmpty { return "a key must not be empty" }
        if name.hasPrefix(bookkeeping) { return "the key belongs to the mirror itself" }
        let isForeign = foreignPrefixes.contains(where: name.hasPrefix)
        return isForeign ? "the key belongs to the system, whose values are of one machine" : nil
    }
}
