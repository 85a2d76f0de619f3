// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The answer to a read of a store.
struct StoreAnswer: Sendable {
    enum Form: Hashable, Sendable {
        case message(WireFormat)
        /// The event `changes`, which may name its store; nothing if a listener that resumes is up
        /// to date.
        case event(of: StoreIdentifier?)
    }

    /// Everything except the records.
    let head: ChangeSet
    /// For a message, with its headers.
    let answer: Answer

    static func draft(
        _ form: Form, _ head: ChangeSet, _ records: [StoredRecord], _ permit: AccountShares.Permit
    ) -> AnswerDraft<StoredRecord, StoreAnswer> {
        switch form {
        case .message(let format):
            return AnswerDraft(records, format, permit) { record, encoder in
                encoder.encode(try record.record())
            } end: { encoder, pieces in
                pieces.append(encoder.end(head))
                return StoreAnswer(head: head, answer: Answer(pieces.end(), permit, format))
            }
        case .event(let store):
            let isSilent = records.isEmpty && !head.isWhole
            let beginning = isSilent ? "" : ServerSentEvent.changesHead(head.cursor, of: store)
            return AnswerDraft(records, .json, permit, beginning: beginning) { record, encoder in
                encoder.encode(try record.record())
            } end: { encoder, pieces in
                if !isSilent {
                    pieces.append(encoder.end(head, of: store))
                    pieces.append(ServerSentEvent.end.utf8)
                }
                return StoreAnswer(head: head, answer: Answer(pieces.end(), permit))
            }
        }
    }
}
