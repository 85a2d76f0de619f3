// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Limits on how long tests wait for results that are due at once. They guard against hanging and
/// do not test speed.
enum TestPatience {
    static let answer = TimeAmount.seconds(300)
    static let stream = TimeAmount.seconds(600)
}
