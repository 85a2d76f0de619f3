// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// The contract's tests notice each way of breaking it: what they report is expected here, and to
/// report nothing is the failure.
@OwnThread @Suite struct StorageFaultTests {
    @Test(arguments: StorageFault.allCases)
    func `a storage that breaks its contract is noticed`(fault: StorageFault) async {
        await withKnownIssue { try await test(of: fault, over: .broken(fault)) }
    }

    private func test(of fault: StorageFault, over backend: Backend) async throws {
        switch fault {
        case .answersEarly: try stores.`a record comes back bit by bit`(backend: backend)
        case .dropsTombstones, .repeatsRevisions:
            try stores.`pushes of one batch see each other and count one revision each`(
                backend: backend)
        case .countsWrong: try stores.`usage is counted, and stores are listed`(backend: backend)
        case .tearsReads:
            try nodes.`who reads while others push sees each revision once, and all of it`(
                backend: backend)
        case .losesUpdates:
            try nodes
                .`nodes that push to the same stores at once lose nothing and skip no revision`(
                    backend: backend)
        case .pushesAfterRevocation:
            try nodes.`no push commits once its device's revocation has returned`(backend: backend)
        case .keepsErasedStores:
            try nodes
                .`no push commits once its account's erasure has returned, and nothing is left of it`(
                    backend: backend)
        case .redeemsCodesAgain:
            try stores.`a code is redeemed once, and not after it expired`(backend: backend)
        case .redeemsRequestsAgain:
            try pairing.`an approved device signs in once, as what was approved`(backend: backend)
        case .decidesAgain:
            try pairing.`one decision about a request counts, and the others are too late`(
                backend: backend)
        case .keepsCodesOfRevokedDevices:
            try pairing.`what a device has granted ends with the device`(backend: backend)
        case .keepsWhatRevokedDevicesAdded:
            try pairing.`what a confined device has added ends with it, and what that has added`(
                backend: backend)
        case .actsOfRevokedDevices:
            try AccountStorageTests().`a device that was signed out meanwhile does nothing`(
                backend: backend)
        case .decidesBeforeLocking:
            try nodes.`a name that several nodes give at once is given once`(backend: backend)
        case .losesVersionsOfGroups:
            try history.`pushes of one group that replace one another are all in the history`(
                backend: backend)
        case .keepsNothingThatLost:
            try history.`a write that loses is in the history, once`(backend: backend)
        case .keepsAll: try history.`what must not be kept is not`(backend: backend)
        case .keepsFloor:
            try history.`a history that grows too large loses its oldest versions, and says so`(
                backend: backend)
        case .leasesToEverybody:
            try await nodes.`one node has the chores until it does not renew them`(backend: backend)
        }
    }

    private var stores: ServerStorageTests { get throws { try ServerStorageTests() } }
    private var history: HistoryStorageTests { get throws { try HistoryStorageTests() } }
    private var pairing: PairingStorageTests { get throws { try PairingStorageTests() } }
    private var nodes: SeveralNodesTests { get throws { try SeveralNodesTests() } }
}
