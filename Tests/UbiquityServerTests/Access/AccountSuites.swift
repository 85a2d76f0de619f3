// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// Tests that nobody gets what they have no right to. They run one at a time: each takes all of a
/// machine, and others measure how soon something happens.
@Suite(.serialized) enum AccountSuites {}
