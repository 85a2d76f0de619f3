// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityWire

@testable import UbiquityCore

/// Protocol/vectors/sealing.json, which the tests of the Python client make with code of their own.
@Suite struct `The vectors of sealing` {
    private let file: Vectors

    init() throws { file = try Vectors("sealing.json") }

    @Test func `say which box is made of which write, and that it opens`() throws {
        for vector in try file.cases() {
            let (sealer, record) = (try sealer(vector), try record(vector))
            let canonical = [UInt8](try data(vector, "canonical"))
            #expect(record.content.value.map(CanonicalForm.encode) == canonical)
            let sealed = try sealed(vector)
            #expect(sealer.seal(record) == sealed, "\(vector)")
            #expect(open(sealed, by: sealer) == .opened(record), "\(vector)")
            let wire = WireFormat.json.encode(WireRecord(sealed))
            #expect(try Record(WireFormat.json.decode(WireRecord.self, from: wire)) == sealed)
        }
    }

    @Test func `say which boxes do not open`() throws {
        for vector in try file.cases("unopened") {
            let sealed = try sealed(vector)
            #expect(try open(sealed, by: sealer(vector)) == .unopened(sealed), "\(vector)")
        }
    }

    @Test func `say how counts are tagged`() throws {
        for vector in try file.cases("counts") {
            let (sealer, record, sealed) = try (sealer(vector), record(vector), sealed(vector))
            #expect(sealer.seal(record) == sealed, "\(vector)")
            #expect(open(sealed, by: sealer) == .opened(record), "\(vector)")
        }
    }

    @Test func `say the keys, the digests and the padded sizes`() throws {
        for vector in try file.cases("keys") {
            let (generation, store) = (try generation(vector), try store(vector))
            let confined = try keyring(vector).confined(to: [store])
            let key = try bytes(vector.vector("derived").text("store"))
            #expect(try confined.roots[generation] == .stores([store: #require(Bytes32(key))]))
        }
        for vector in try file.cases("digests") {
            let digest = try sealer(vector).digest(record(vector).stamp)
            #expect(try String(digest) == vector.text("digest"))
        }
        for vector in try file.cases("padding") {
            #expect(
                try SealedText.padded(vector.integer("bytes")) == vector.integer("padded"))
        }
    }

    @Test func `say how keys are handed over and recovered`() throws {
        for vector in try file.cases("proofs") {
            let keyring = try keyring(vector)
            let (proof, check) = try (bytes(vector.text("proof")), bytes(vector.text("check")))
            #expect(keyring.proof(of: keyring.current) == Bytes32(proof))
            #expect(keyring.check == Bytes32(check))
        }
        for vector in try file.cases("handovers") {
            let box = [UInt8](try data(vector, "box"))
            let handover: Handover =
                switch vector.json["keys"] as? String {
                case "sealed": .noKey
                case "not sealed": .notSealed
                default: .keys(try handed(vector))
                }
            let secret = try #require(HandoverSecret(bytes(vector.text("secret"))))
            let account = try vector.text("account")
            #expect(try handover.sealed(of: account, with: secret) == box)
            #expect(try HandoverName(of: secret, in: account).text == vector.text("name"))
            #expect(Handover(box, of: account, with: secret) == handover)
            #expect(Handover(box, of: account + "1", with: secret) == nil)
            let code = try #require(try KeyCode(vector.text("code")))
            #expect(code.secret == secret && code.front == "7KQ2-M9XD-4TRW")
            #expect(try code.text == vector.text("code"))
        }
        for vector in try file.cases("recoveries") {
            let (keyring, wrap) = (try handed(vector), [UInt8](try data(vector, "wrap")))
            let key = try #require(RecoveryKey(bytes(vector.text("recoveryKey"))))
            #expect(try key.text == vector.text("text"))
            #expect(try RecoveryKey(text: vector.text("text")) == key)
            #expect(try key.wrap(keyring) == wrap && key.open(wrap) == keyring)
        }
    }

    private func handed(_ vector: Vectors.Vector) throws -> Keyring {
        func fields(_ json: Any) -> PropertyListValue {
            guard let named = json as? [String: Any] else {
                return .string(ExactString(json as? String ?? ""))
            }
            let pairs = named.map { (ExactString($0.key), $0.value) }
            return .dictionary(
                Dictionary(uniqueKeysWithValues: pairs).mapValues(fields))
        }
        return try Keyring(fields: fields(vector.vector("keys").json))
    }

    private func open(_ record: Record, by sealer: Sealer) -> Sealer.Opening {
        var elements = 1_000
        return sealer.open(record, within: &elements)
    }

    private func sealer(_ vector: Vectors.Vector) throws -> Sealer {
        try #require(keyring(vector).sealer(of: store(vector)))
    }

    private func keyring(_ vector: Vectors.Vector) throws -> Keyring {
        let key = try #require(Bytes32(bytes(vector.text("accountKey"))))
        return Keyring([try generation(vector): .account(key)])
    }

    private func generation(_ vector: Vectors.Vector) throws -> UInt32 {
        try UInt32(vector.integer("generation"))
    }

    private func store(_ vector: Vectors.Vector) throws -> StoreIdentifier {
        try StoreIdentifier(vector.text("store"))
    }

    /// Without a value where there is none: the other fields alone are meant.
    private func record(_ vector: Vectors.Vector) throws -> Record {
        var json = try vector.vector("record").json
        if json["value"] == nil { json["deleted"] = true }
        let bytes = try JSONSerialization.data(withJSONObject: json)
        return try Record(WireFormat.json.decode(WireRecord.self, from: [UInt8](bytes)))
    }

    private func sealed(_ vector: Vectors.Vector) throws -> Record {
        var record = try record(vector)
        let box = SealedBox(
            generation: try generation(vector), bytes: [UInt8](try data(vector, "box")))
        record.content = .value(.sealed(box))
        return record
    }

    private func data(_ vector: Vectors.Vector, _ name: String) throws -> Data {
        try #require(Data(base64Encoded: vector.text(name)))
    }

    private func bytes(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count - 1, by: 2).map {
            UInt8(String(digits[$0...$0 + 1]), radix: 16) ?? 0
        }
    }
}
