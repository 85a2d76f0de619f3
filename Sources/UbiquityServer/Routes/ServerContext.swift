// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore

/// What a route knows besides the request.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// Without the port; of a proxy, if there is one.
    var remoteAddress: String { channel.remoteAddress?.ipAddress ?? "local" }
}
