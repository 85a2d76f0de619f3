// SPDX-License-Identifier: Apache-2.0

extension Sealer {
    package func seal(_ push: Push) -> Push {
        var sealed = push
        sealed.generation = generation
        sealed.transactions = push.transactions.map { transaction in
            transaction.mapContents { seal($0).content }
        }
        return sealed
    }

    /// Opens changes. Records that do not open stay as they came.
    /// - Parameter bounds: Those of the message: no more elements come out of its boxes than it may
    ///   have.
    /// - Throws: ``SealingFault`` if there is what no server of a sealed store has.
    package func open(
        _ changes: ChangeSet, within bounds: MessageBounds
    ) throws(SealingFault) -> ChangeSet {
        var opened = changes
        var elements = bounds.elements
        opened.records = try open(changes.records, within: &elements)
        return opened
    }

    /// The same for an answer to a push.
    package func open(
        _ answer: PushAnswer, within bounds: MessageBounds
    ) throws(SealingFault) -> PushAnswer {
        var opened = answer
        var elements = bounds.elements
        opened.results = []
        for result in answer.results {
            guard case .committed(let writes) = result else {
                opened.results.append(result)
                continue
            }
            var results: [WriteResult] = []
            for write in writes {
                guard case .superseded(let record) = write else {
                    results.append(write)
                    continue
                }
                let opening = open(record, within: &elements)
                results.append(.superseded(by: try opening.record()))
            }
            opened.results.append(.committed(results))
        }
        return opened
    }

    /// The same for versions.
    package func open(
        _ page: HistoryPage, within bounds: MessageBounds
    ) throws(SealingFault) -> HistoryPage {
        var opened = page
        var elements = bounds.elements
        for index in page.versions.indices {
            opened.versions[index].record =
                try open(page.versions[index].record, within: &elements).record()
        }
        return opened
    }

    /// The same for a store as it was.
    package func open(
        _ snapshot: StoreSnapshot, within bounds: MessageBounds
    ) throws(SealingFault) -> StoreSnapshot {
        var opened = snapshot
        var elements = bounds.elements
        opened.records = try open(snapshot.records, within: &elements)
        return opened
    }

    private func open(
        _ records: [Record], within elements: inout Int
    ) throws(SealingFault) -> [Record] {
        var opened: [Record] = []
        opened.reserveCapacity(records.count)
        for record in records {
            opened.append(try open(record, within: &elements).record())
        }
        return opened
    }
}

extension Sealer.Opening {
    /// The record, opened or not.
    fileprivate func record() throws(SealingFault) -> Record {
        switch self {
        case .opened(let record), .unopened(let record): return record
        case .forbidden(let fault): throw fault
        }
    }
}
