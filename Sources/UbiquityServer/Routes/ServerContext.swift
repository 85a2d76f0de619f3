// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import UbiquityCore

/// What a route knows besides the request.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// Where the request comes from, behind proxies that are trusted; nil: it is not known.
    var origin: IPAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// What is counted together: the address without the port, of IPv6 the first 64 bits.
    var remoteAddress: String { origin.map { "\($0.neighbourhood)" } ?? "local" }
}
