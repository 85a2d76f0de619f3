// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

extension WireSealing {
    /// - Parameter mark: Nil for an account that is not sealed.
    package init(_ mark: AccountSealing?) {
        self.init()
        guard let mark else { return }
        generation = mark.generation
        check = Data(mark.check.bytes)
        recovery = Data(mark.recovery)
    }
}

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
