// SPDX-License-Identifier: Apache-2.0

import ProcessHarness

/// One of the torture's servers: the only one, or a node of several, with ways of its own to their
/// database.
struct TortureNode: Sendable {
    let number: Int
    let server: ServerProcess
    /// To each of the two databases.
    var ways: [Proxy] = []
}
