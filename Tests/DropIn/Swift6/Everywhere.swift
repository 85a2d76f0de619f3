// SPDX-License-Identifier: Apache-2.0

// The one file with which an app that was written for Apple's Foundation needs no further line: what
// it imports is there in every file of the module.

@_exported import Foundation
@_exported import Observation
@_exported import Ubiquity
