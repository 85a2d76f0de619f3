// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

extension WireSealing {
    /// - Parameter isConfined: Whether it is for a confined device.
    package init(_ state: SealingState, isConfined: Bool) {
        self.init()
        guard let mark = state.mark else { return }
        (generation, check) = (mark.generation, Data(mark.check.bytes))
        endsMilliseconds = UInt64(clamping: state.ends ?? 0)
        guard !isConfined else { return }
        recovery = Data(mark.recovery)
        guard let author = state.author else { return }
        (sealedBy, sealedByName) = (author.device.description, author.name)
        sealedMilliseconds = UInt64(clamping: author.milliseconds)
    }
}

/// The name of the header in which a device shows the proof of its key, in base64.
package let keyProofHeader = "ubiquity-key-proof"

extension AccountSealing {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireSealing) throws(WireError) {
        guard wire.generation > 0 else { throw WireError("\"generation\" must be from 1 on") }
        guard let check = Bytes32(Array(wire.check)) else {
            throw WireError("\"check\" must have \(Bytes32.count) bytes")
        }
        guard
            let mark = AccountSealing(
                generation: wire.generation, check: check, recovery: Array(wire.recovery))
        else {
            throw WireError("\"recovery\" may have at most \(Self.recoveryBytesMax) bytes")
        }
        self = mark
    }
}

extension WholeStore {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireWholeStore) throws(WireError) {
        self.init(
            cursor: try Cursor(wire: wire.cursor, in: "cursor"), generation: wire.generation,
            records: try [Record](wire.records))
    }
}
