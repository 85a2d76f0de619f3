// SPDX-License-Identifier: Apache-2.0

#if UBIQUITY_TSAN
internal import UbiquityCore

/// See there.
typealias Mutex = SanitizedMutex
#endif
