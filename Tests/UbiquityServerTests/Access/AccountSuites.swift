// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// What nobody gets who may not have it. One test at a time: each takes a machine's whole attention,
/// and others measure how soon something happens.
@Suite(.serialized) enum AccountSuites {}
