// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import UbiquityCore

/// The context of a request for a route.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The origin of the request, behind trusted proxies; nil if unknown.
    var origin: IPAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The unit for counting: the address without the port, and of IPv6 the first 64 bits.
    var remoteAddress: String { origin.map { "\($0.neighbourhood)" } ?? "local" }
}
