// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Wall clocks of devices that are hours off, where Debian's `libfaketime` is installed.
struct WrongClocks {
    private static let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
    /// Of one device after the other. The first one's is right. None is ahead: there the library has
    /// waits that end at a time end at once, and the processes do nothing but wait. Clocks that are
    /// ahead, and those that are set, are for the simulator.
    private static let errors = ["", "-5h", "-30h", "-11m"]

    /// Of one node after the other: less than makes a node say that it is not ready.
    private static let nodeErrors = ["", "-0.4", "-0.8"]

    private let isUsed: Bool

    init(_ plan: TorturePlan) {
        let isThere = FileManager.default.fileExists(atPath: Self.library)
        isUsed = isThere && !plan.isQuick && Self.hideTraces()
        if !isUsed, !plan.isQuick {
            Torture.say("without wrong clocks: the package faketime is not installed, or no mounts")
        }
    }

    /// The library leaves shared memory behind when a process is killed: not on the machine's disk.
    private static func hideTraces() -> Bool {
        MountNamespace.isOwn && mount("torture", "/dev/shm", "tmpfs", 0, "size=64m") == 0
    }

    /// The environment of the device's processes. The monotonic clock stays right: no machine gets
    /// that wrong, and the history is timed by it.
    func environment(of device: Int) -> [String: String] {
        environment(Self.errors[device % Self.errors.count])
    }

    /// The same for a node of several.
    func environment(ofNode node: Int) -> [String: String] {
        environment(Self.nodeErrors[node % Self.nodeErrors.count])
    }

    private func environment(_ error: String) -> [String: String] {
        guard isUsed, !error.isEmpty else { return [:] }
        return [
            "LD_PRELOAD": Self.library, "FAKETIME": error, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        ]
    }
}
