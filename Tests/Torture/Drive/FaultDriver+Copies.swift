// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import ProcessHarness
import UbiquityCore
import UbiquitySimulation

extension FaultDriver {
    /// Has a machine go on as two, again and again, and others become older copies of themselves: all of one
    /// account, for of the others more must be true.
    mutating func copyDevices() async throws {
        guard let clone = run.clone, let original = clone.original else { return }
        let copied = run.devices.filter {
            $0.account == clone.account && $0.original == nil && !run.hasSmallDisk($0)
        }
        while await waits(run.plan.copyInterval) {
            let device = copied.randomElement(using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40: try await makeClone(clone, of: original)
            case 40..<65: if let device { try await makeCopy(of: device) }
            default: if let device { try await restore(device) }
            }
        }
    }

    private func makeClone(_ clone: TortureDevice, of original: TortureDevice) async throws {
        try await whileNothingRuns(on: [original, clone]) {
            guard try await noteLoss(of: clone) else { return }
            try Self.replace(clone.home, by: original.home)
            run.chronicle.count(.clones)
            run.chronicle.note("device \(clone.number) is a clone of device \(original.number)")
            run.chronicle.note(.cloned(device: clone.number, from: original.number))
        }
    }

    private func makeCopy(of device: TortureDevice) async throws {
        try await whileNothingRuns(on: [device]) {
            try Self.replace(copy(of: device), by: device.home)
            run.chronicle.count(.copies)
            run.chronicle.note("device \(device.number) is copied")
            run.chronicle.note(.copied(device: device.number))
        }
    }

    private func restore(_ device: TortureDevice) async throws {
        guard FileManager.default.fileExists(atPath: copy(of: device)) else { return }
        try await whileNothingRuns(on: [device]) {
            guard try await noteLoss(of: device) else { return }
            try Self.replace(device.home, by: copy(of: device))
            run.chronicle.count(.restores)
            run.chronicle.note("device \(device.number) is an older copy of itself")
        }
    }

    /// Only what the server does not have may be lost: when all that it has was seen.
    /// - Returns: False if it does not say: nobody reads a store that is to be sealed, perhaps by the
    ///   device itself, which must not wait for that.
    private func noteLoss(of device: TortureDevice) async throws -> Bool {
        let listener = run.listeners.first { $0.store.account == device.account }
        let end = ContinuousClock.now + .seconds(5)
        var hasAll = false
        try await until("the server's word on all that it has") {
            hasAll = await listener?.hasAll() ?? true
            return hasAll || run.plan.isSealed && ContinuousClock.now > end
        }
        if hasAll { run.chronicle.note(.lost(device.disk)) }
        return hasAll
    }

    private func copy(of device: TortureDevice) -> String {
        run.stage.path("copy-\(device.number)")
    }

    private static func replace(_ folder: String, by other: String) throws {
        if FileManager.default.fileExists(atPath: folder) {
            try FileManager.default.removeItem(atPath: folder)
        }
        try FileManager.default.copyItem(atPath: other, toPath: folder)
    }

    /// Not at all, if peace comes first.
    private func whileNothingRuns(
        on devices: [TortureDevice], _ body: () async throws -> Void
    ) async throws {
        for device in devices { device.door.close() }
        defer { for device in devices where device.door.wasOpen { device.door.open() } }
        try await until("the end of a device's apps") {
            run.isPeaceful || devices.allSatisfy(\.door.isEmpty)
        }
        guard !run.isPeaceful else { return }
        try await body()
        for device in devices { device.door.open() }
    }
}
