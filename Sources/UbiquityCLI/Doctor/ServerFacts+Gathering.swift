// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityServer

extension ServerFacts {
    init(dataFolder: String) {
        inspection = DataFolderInspection(dataFolder: dataFolder)
        freeBytes = Machine.freeBytes(at: inspection.path)
        let lock = inspection.path + "/lock"
        openFilesMax =
            LockHolder(of: lock).flatMap { Machine.openFilesMax(of: $0.process) }
            ?? Machine.openFilesMax
        connectionsMax = ServerSettings(dataFolder: dataFolder).connectionsMax
        now = Int64(Date().timeIntervalSince1970 * 1_000)
    }
}
