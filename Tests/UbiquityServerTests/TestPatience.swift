// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// How long tests wait for what comes at once. Under the thread sanitizer all is ten times slower.
enum TestPatience {
    #if UBIQUITY_TSAN
    static let isSanitized = true
    #else
    static let isSanitized = false
    #endif

    static let answer = TimeAmount.seconds(isSanitized ? 80 : 8)
    static let stream = TimeAmount.seconds(isSanitized ? 600 : 60)
}
