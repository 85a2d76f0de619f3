// SPDX-License-Identifier: Apache-2.0

#if UBIQUITY_TSAN
internal import UbiquityCore

/// See ``SanitizedMutex``.
typealias Mutex = SanitizedMutex
#endif
