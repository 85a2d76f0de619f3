// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// Real processes, real sockets, real files. Each situation runs several processes and is bounded
/// in time.
@Suite(.timeLimit(.minutes(15)))
struct EndToEndTests {}
