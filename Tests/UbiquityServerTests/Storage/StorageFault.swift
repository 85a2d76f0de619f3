// SPDX-License-Identifier: Apache-2.0

/// A way in which a storage breaks its contract. The contract's tests must notice each.
enum StorageFault: CaseIterable {
    /// A push is answered before its changes can be read.
    case answersEarly
    case dropsTombstones
    /// Two pushes have one revision.
    case repeatsRevisions
    case countsWrong
    /// A read has the records of one moment and the position of another.
    case tearsReads
    /// Of two nodes that push at once, one replaces what the other did.
    case losesUpdates
    /// A push is committed by the rights that its device had a moment ago.
    case pushesAfterRevocation
    case keepsErasedStores
    case redeemsCodesAgain
    case redeemsRequestsAgain
    /// A second decision about a sign-in request replaces the first.
    case decidesAgain
    /// A code outlives the device that made it.
    case keepsCodesOfRevokedDevices
    /// What a confined device added outlives it.
    case keepsWhatRevokedDevicesAdded
    /// A device that was signed out a moment ago can still erase its account.
    case actsOfRevokedDevices
    /// Whether a name is free is decided before it is taken.
    case decidesBeforeLocking
    case leasesToEverybody
    /// Of a group, only the first push keeps what it replaces.
    case losesVersionsOfGroups
    case keepsNothingThatLost
    /// Also what must not be kept.
    case keepsAll
    /// Versions that were pruned count as if they had never existed.
    case keepsFloor
}
