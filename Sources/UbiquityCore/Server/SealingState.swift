// SPDX-License-Identifier: Apache-2.0

/// What a server keeps of the sealing of an account. Being a value, it is unchanged after a refusal.
package struct SealingState: Hashable, Sendable {
    /// Nil if the account is not sealed.
    package private(set) var mark: AccountSealing?
    /// The device that sealed the account with its present key; nil if it is not sealed.
    package private(set) var author: Author?
    /// The greatest generation that the account ever had, also before it was reset.
    package private(set) var greatest: UInt32 = 0
    /// When the account is reset, in milliseconds since 1970 by the server's clock, unless a device
    /// with its key is heard of before. Nil if nobody has asked for that.
    package private(set) var ends: Int64?

    package struct Author: Hashable, Sendable {
        package var device: DeviceID
        /// As it was then. At most 255 bytes of it are kept.
        package var name: String
        /// When it did, in milliseconds since 1970 by the server's clock.
        package var milliseconds: Int64

        package init(device: DeviceID, name: String, milliseconds: Int64) {
            (self.device, self.name, self.milliseconds) = (device, name, milliseconds)
        }
    }

    /// How long before a reset without the key the devices have to be heard of.
    package static let noticeMilliseconds: Int64 = 7 * 86_400_000
    /// How far a generation may be ahead of the server's clock.
    private static let aheadSeconds: Int64 = 86_400

    package init() {}

    package var generation: UInt32 { mark?.generation ?? 0 }

    // MARK: - Rules

    /// Takes a device's mark: with another recovery key for the present key, or with a later one.
    ///
    /// The mark that the account has changes nothing, with a proof or without: an answer may have been
    /// lost.
    /// - Parameters:
    ///   - proof: Of the present key. The first mark needs none.
    ///   - author: The device, and when.
    /// - Returns: Whether anything has changed.
    package mutating func take(
        _ new: AccountSealing, proof: Bytes32?, by author: Author
    ) throws(SealingRefusal) -> Bool {
        guard new != mark else { return false }
        if let mark {
            guard
                new.generation > mark.generation
                    || new.generation == mark.generation && new.check == mark.check
            else { throw .otherGeneration(mark.generation, asked: new.generation) }
            try check(proof)
        }
        if new.generation != generation {
            guard new.generation > greatest else { throw .spentGeneration }
            let latest = Keyring.firstGeneration(
                at: author.milliseconds / 1_000 + Self.aheadSeconds)
            guard new.generation <= latest else { throw .generationAhead(author.milliseconds) }
            self.author = author
            greatest = new.generation
        }
        (mark, ends) = (new, nil)
        return true
    }

    /// Resets the account, so that all values must be removed, or announces that: a device without the
    /// key can only announce it, and housekeeping carries that out when it is due.
    /// - Parameter proof: Of the present key; nil if the device has not shown it.
    /// - Returns: Whether anything has changed. A further announcement changes nothing.
    package mutating func reset(
        proof: Bytes32?, at now: Int64, by actor: AuditActor
    ) throws(SealingRefusal) -> Bool {
        switch actor {
        case .housekeeping:
            guard let ends, ends <= now else { return false }
        case .device where mark != nil && proof == nil:
            guard ends == nil else { return false }
            ends = now + Self.noticeMilliseconds
            return true
        case .device where mark != nil: try check(proof)
        case .device, .operatorLocally, .operatorByCredential, .stranger:
            guard mark != nil else { throw .notSealed }
        }
        (mark, author, ends) = (nil, nil, nil)
        return true
    }

    /// Withdraws the announcement of a reset, because a device has shown its key.
    /// - Returns: Whether there was one, and the proof is right.
    package mutating func withdrawReset(proof: Bytes32) -> Bool {
        guard ends != nil, mark?.check == SHA256.hash(proof.bytes) else { return false }
        ends = nil
        return true
    }

    /// Checks that a store is replaced by a device with the account's present key.
    package func check(_ whole: WholeStore) throws(SealingRefusal) {
        try SealingRefusal.check(whole.generation, in: generation)
        try check(whole.proof)
    }

    private func check(_ proof: Bytes32?) throws(SealingRefusal) {
        guard let mark, let proof, mark.check == SHA256.hash(proof.bytes) else { throw .noProof }
    }

    // MARK: - Stored

    /// All but ``ends``; nil if there never was a mark. Begins with the generation, in
    /// ``generationBytes``, and the check.
    package var bytes: [UInt8]? {
        guard self != SealingState() else { return nil }
        var bytes: [UInt8] = []
        bytes.append(bigEndian: generation)
        bytes += mark?.check.bytes ?? [UInt8](repeating: 0, count: Bytes32.count)
        bytes.append(bigEndian: greatest)
        bytes.append(bigEndian: author?.device.rawValue ?? 0)
        bytes.append(bigEndian: UInt64(bitPattern: author?.milliseconds ?? 0))
        let name = Array((author?.name ?? "").utf8.prefix(255))
        return bytes + [UInt8(name.count)] + name + (mark?.recovery ?? [])
    }

    package static let generationBytes = 4
    private static let headerBytes = generationBytes + Bytes32.count + 4 + 8 + 8 + 1

    /// - Parameter bytes: Nil for an account that never had a mark.
    /// - Returns: Nil for bytes that are not of this form.
    package init?(bytes: [UInt8]?, ends: Int64?) {
        self.init()
        guard let bytes else { return }
        var place = 0
        func next(_ count: Int) -> ArraySlice<UInt8> {
            defer { place += count }
            return bytes[place..<place + count]
        }
        guard bytes.count >= Self.headerBytes else { return nil }
        let generation = UInt32(truncatingIfNeeded: next(Self.generationBytes).bigEndianNumber)
        guard let check = Bytes32(next(Bytes32.count)) else { return nil }
        greatest = UInt32(truncatingIfNeeded: next(4).bigEndianNumber)
        let device = DeviceID(rawValue: next(8).bigEndianNumber)
        let milliseconds = Int64(bitPattern: next(8).bigEndianNumber)
        let nameBytes = Int(next(1).bigEndianNumber)
        guard generation <= greatest, bytes.count - place >= nameBytes else { return nil }
        let name = String(decoding: next(nameBytes), as: UTF8.self)
        guard generation > 0 else { return }
        mark = AccountSealing(
            generation: generation, check: check, recovery: Array(bytes[place...]))
        guard mark != nil else { return nil }
        author = Author(device: device, name: name, milliseconds: milliseconds)
        self.ends = ends
    }
}

extension DeviceRights {
    /// Whether a proof that the device shows withdraws an announced reset.
    package func withdrawsReset(by proof: Bytes32) -> Bool {
        announcedCheck.flatMap { Bytes32($0) } == SHA256.hash(proof.bytes)
    }
}
