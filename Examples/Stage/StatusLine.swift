// SPDX-License-Identifier: Apache-2.0

internal import ExampleScreen
internal import Ubiquity

extension Line {
    /// Describes the state of a device's sync.
    init(_ status: UbiquityStatus) {
        let waiting = status.pendingKeys.count
        let keys = waiting == 1 ? "1 key waits" : "\(waiting) keys wait"
        self = Line(status.connection) + (waiting == 0 ? "" : "  " + Line(keys, Style(.yellow)))
    }

    private init(_ connection: UbiquityStatus.Connection) {
        self =
            switch connection {
            case .polling: Line("● connected, no live stream", Style(.green))
            case .connected: Line("● connected", Style(.green))
            case .connecting: Line("◌ connecting", Style(.yellow))
            case .waiting: Line("○ offline", Style(.red))
            case .signedOut: Line("○ signed out", Style(.red))
            case .locked: Line("○ needs the account's key", Style(.red))
            case .unauthorized: Line("○ needs a new sign-in", Style(.red))
            case .notConfigured: Line("○ has no identifier", Style(.red))
            }
    }
}
