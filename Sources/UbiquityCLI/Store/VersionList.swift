// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// Versions as a table for people, and as JSON.
struct VersionList {
    var versions: [KeyVersion]
    var devices: AccountDevices
    /// Whether to name the key of each.
    var hasKeys = false

    var table: Table {
        let names = KeyNames(versions.map(\.key))
        return Table(
            header: (hasKeys ? ["KEY"] : [])
                + ["VERSION", "WHEN", "DEVICE", "STATUS", "VALUE"],
            rows: versions.map { version in
                (hasKeys ? [names.shown(version.key)] : [])
                    + [
                        version.isGap ? "-" : version.name, time(version.stamp),
                        name(of: version.stamp.device), status(of: version),
                    ]
            }, values: versions.map { [$0.valueText] })
    }

    var json: JSON {
        .array(
            versions.map { version in
                let (ended, by) = version.end
                return [
                    "key": .string(version.key.string),
                    "version": version.isGap ? .null : .string(version.name),
                    "value": version.value.map(JSON.value) ?? .null,
                    "made": .string(Phrase.isoTime(version.stamp.timestamp.milliseconds)),
                    "received": .optional(version.came?.text),
                    "device": .string(version.stamp.device.description),
                    "deviceName": .optional(devices.names[version.stamp.device]),
                    "status": .string(version.outcome.word), "ended": .optional(ended?.text),
                    "endedBy": .optional(by?.device.description),
                    "reason": .optional(version.reason),
                ]
            })
    }

    func time(_ stamp: Stamp) -> String { Phrase.time(stamp.timestamp.milliseconds) }

    func name(of device: DeviceID) -> String {
        if device == devices.own || device == .unassigned { return "this device" }
        return devices.names[device].map(JSON.escaped) ?? device.description.shortID
    }

    private func status(of version: KeyVersion) -> String {
        switch version.outcome {
        case .waiting: "not sent yet"
        case .current: "current"
        case .replaced(_, let stamp): "replaced by \(name(of: stamp.device))"
        case .lost(_, let stamp): "lost to \(name(of: stamp.device)), \(time(stamp))"
        case .refused(.superseded): "lost before it was sent"
        case .refused: "refused: \(version.reason ?? "")"
        case .gap: "and more, not kept"
        }
    }
}

extension KeyVersion {
    var isGap: Bool { outcome == .gap }

    /// On one line.
    func valueText(_ columnsMax: Int?) -> String {
        value?.line(columnsMax) ?? (isGap ? "(not known)" : "(removed)")
    }

    fileprivate var end: (RecordVersion.Moment?, by: Stamp?) {
        switch outcome {
        case .replaced(let moment, let stamp), .lost(let moment, let stamp): (moment, stamp)
        case .waiting, .current, .refused, .gap: (nil, nil)
        }
    }

    fileprivate var reason: String? {
        if case .refused(let refusal) = outcome { refusal.detail } else { nil }
    }
}

extension KeyVersion.Outcome {
    /// The word in JSON.
    fileprivate var word: String {
        switch self {
        case .waiting: "waiting"
        case .current: "current"
        case .replaced: "replaced"
        case .lost: "lost"
        case .refused: "refused"
        case .gap: "gap"
        }
    }
}

extension RecordVersion.Moment {
    /// Nil if the time is not known.
    fileprivate var text: String? { milliseconds > 0 ? Phrase.isoTime(milliseconds) : nil }
}
