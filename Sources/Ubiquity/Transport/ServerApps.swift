// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

/// The apps that a server accepts.
package struct ServerApps: Hashable, Sendable {
    package struct App: Hashable, Sendable {
        package var identifier: String
        package var registered: Int64

        package init(identifier: String, registered: Int64) {
            self.identifier = identifier
            self.registered = registered
        }
    }

    /// False if all apps are; nil if unknown, because a data folder does not tell how its server is
    /// started.
    package var isRegisteredOnly: Bool?
    package var apps: [App]

    package init(isRegisteredOnly: Bool?, apps: [App]) {
        self.isRegisteredOnly = isRegisteredOnly
        self.apps = apps
    }
}

extension ServerApps {
    init(_ wire: WireAppList) {
        self.init(
            isRegisteredOnly: wire.registeredOnly,
            apps: wire.apps.map {
                App(
                    identifier: $0.identifier,
                    registered: Int64(clamping: $0.registeredMilliseconds))
            })
    }
}
