// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// Real processes, real sockets, real files. One situation after the other, for each of them runs
/// several processes and is bounded in time.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct EndToEndTests {}
