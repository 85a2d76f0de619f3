// SPDX-License-Identifier: Apache-2.0

// snippet.exported
@_exported import Foundation
@_exported import Observation
@_exported import Ubiquity
// snippet.end
