// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

extension WireVersion {
    package init(_ version: RecordVersion) {
        self.init()
        record = WireRecord(version.record)
        if let came = version.came {
            revision = UInt64(clamping: came.revision)
            cameMilliseconds = UInt64(clamping: came.milliseconds)
        }
        switch version.outcome {
        case .current: outcome = .current(true)
        case .replaced(let moment, let stamp): outcome = .replaced(Ended(moment, by: stamp))
        case .lost(let moment, let stamp): outcome = .lost(Ended(moment, by: stamp))
        }
    }
}

extension WireVersion.Ended {
    fileprivate init(_ moment: RecordVersion.Moment, by stamp: Stamp) {
        self.init()
        revision = UInt64(clamping: moment.revision)
        milliseconds = UInt64(clamping: moment.milliseconds)
        by = WireReplaced(stamp)
    }
}

extension RecordVersion {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireVersion) throws(WireError) {
        let outcome: Outcome
        switch wire.outcome {
        case .current(true): outcome = .current
        case .replaced(let ended):
            outcome = .replaced(Moment(ended), by: try Stamp(wire: ended.by))
        case .lost(let ended): outcome = .lost(Moment(ended), by: try Stamp(wire: ended.by))
        case .current(false), nil: throw WireError("a version has no outcome")
        }
        self.init(
            record: try Record(wire.record),
            came: wire.revision == 0
                ? nil
                : Moment(
                    revision: Int64(clamping: wire.revision),
                    milliseconds: Int64(wireMilliseconds: wire.cameMilliseconds)),
            outcome: outcome)
    }
}

extension RecordVersion.Moment {
    fileprivate init(_ wire: WireVersion.Ended) {
        self.init(
            revision: Int64(clamping: wire.revision),
            milliseconds: Int64(wireMilliseconds: wire.milliseconds))
    }
}

extension WireSnapshot {
    package init(_ snapshot: StoreSnapshot) {
        self.init()
        records = snapshot.records.map(WireRecord.init)
        revision = UInt64(clamping: snapshot.revision)
        forgottenKeys = snapshot.forgottenKeys.map(\.string).sorted()
        serverMilliseconds = UInt64(clamping: snapshot.serverMilliseconds)
    }
}

extension StoreSnapshot {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireSnapshot) throws(WireError) {
        var forgotten = Set<Key>()
        for key in wire.forgottenKeys {
            do { forgotten.insert(try Key(key)) } catch { throw WireError("\(error)") }
        }
        self.init(
            records: try [Record](wire.records), revision: Int64(clamping: wire.revision),
            forgottenKeys: forgotten,
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds))
    }
}

extension HistoryPage {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireHistory) throws(WireError) {
        var versions: [RecordVersion] = []
        for (index, version) in wire.versions.enumerated() {
            do { versions.append(try RecordVersion(version)) } catch {
                throw WireError("versions[\(index)]: \(error)")
            }
        }
        self.init(
            versions: versions, next: wire.next.isEmpty ? nil : wire.next,
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds))
    }
}
