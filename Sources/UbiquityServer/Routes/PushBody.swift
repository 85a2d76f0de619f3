// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore
package import UbiquityWire

/// The body of a push, as a device sends it.
package enum PushBody {
    /// No setting of the key's length lets a longer one in. Deletions are checked by it too.
    package static let keyBytesMax = 1_024

    /// Needs a thread with a deep stack, see ``BlockingThreads``, unless the body is short.
    /// - Parameter author: The device whose writes need not name it.
    /// - Throws: ``WireError`` or ``Problem`` that names what is wrong.
    package static func decode(
        _ body: [UInt8], _ format: WireFormat, author: DeviceID
    ) throws -> Push {
        let push = try Push(format.decode(WirePush.self, from: body), author: author)
        for transaction in push.transactions {
            for write in transaction.writes where write.key.string.utf8.count > keyBytesMax {
                throw Problem.malformed("A key has more than \(keyBytesMax) bytes.")
            }
        }
        return push
    }
}
