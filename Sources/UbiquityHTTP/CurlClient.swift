// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CCurl
internal import Foundation

/// The client on libcurl, which is loaded at the first request. All requests of a client are carried
/// out on one thread.
///
/// Shared state: `place`, the thread, which is read and replaced atomically: a lock that another
/// thread held when the process forked would never be free in the child, which needs a thread of its
/// own. Clients and threads are never freed; a process has one of each.
package final class CurlClient: HTTPClient, @unchecked Sendable {
    package static let shared = CurlClient()

    private let environment: CurlEnvironment
    private let place: UnsafeMutablePointer<UnsafeMutableRawPointer?>

    /// - Parameter environment: The variables that name proxies and trusted certificates.
    package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.environment = CurlEnvironment(environment)
        place = .allocate(capacity: 1)
        place.initialize(to: nil)
    }

    package func begin(
        _ request: HTTPRequest, _ receiver: any HTTPReceiver
    ) -> @Sendable () -> Void {
        let transfer = CurlTransfer(request, receiver)
        let thread = thread
        thread.begin(transfer)
        return { thread.cancel(transfer) }
    }

    /// The proxy for requests to this URL, without its user and password; nil for none.
    package func proxy(for url: String) -> String? {
        environment.proxy(for: url).map(CurlEnvironment.withoutUser)
    }

    /// As ``proxy(for:)-instance`` for the process's client.
    package static func proxy(for url: String) -> String? { shared.proxy(for: url) }

    private var thread: CurlThread {
        while true {
            let known = ccurl_load_pointer(place)
            if let known {
                let thread = Unmanaged<CurlThread>.fromOpaque(known).takeUnretainedValue()
                if thread.isOfThisProcess { return thread }
            }
            let new = Unmanaged.passRetained(CurlThread(environment))
            if ccurl_replace_pointer(place, known, new.toOpaque()) {
                return new.takeUnretainedValue()
            }
            new.release()
        }
    }
}
#endif
