// SPDX-License-Identifier: Apache-2.0

/// Which names of an app's preferences may ever be mirrored.
package enum MirroredName {
    /// A mirror's own bookkeeping begins with this.
    package static let bookkeeping = "UbiquityMirror:"

    /// What systems and frameworks keep in an app's preferences, which is of one machine.
    private static let foreignPrefixes = [
        "AK", "Apple", "NS", "com.apple.", "AddingEmojiKeybordHandled", "INNextFreshmintRefresh",
        "INNextHearbeatDate", "METAL_", "MSVLoggingMasterSwitchEnabledKey",
        "MultipleProcessesEnabled",
        "PKKeychainVersionKey", "PKLogNotificationServiceResponsesKey", "WebDatabaseDirectory",
        "WebKit",
    ]

    /// Why a name is never mirrored, a sentence; nil: it may be.
    package static func refusal(of name: String) -> String? {
        if name.isEmpty { return "a key must not be empty" }
        if name.hasPrefix(bookkeeping) { return "the key belongs to the mirror itself" }
        let isForeign = foreignPrefixes.contains(where: name.hasPrefix)
        return isForeign ? "the key belongs to the system, whose values are of one machine" : nil
    }
}
