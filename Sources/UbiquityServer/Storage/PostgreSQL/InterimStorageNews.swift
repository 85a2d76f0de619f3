// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

enum StorageNews: Hashable, Sendable {
    case committed(StoreReference, Position)
    case revoked(DeviceReference), erased(AccountID), appsChanged
    case anything
    case historyWentBack(String)
}
