// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import Synchronization
internal import UbiquityCore
package import UbiquityHTTP

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// Requests by `URLSession`, for Apple's systems. Elsewhere it is compiled for its tests, and trusts
/// the system's certificates only.
///
/// Shared state: `exchanges`, guarded by its mutex. `@unchecked` because a delegate is an `NSObject`.
package final class URLSessionClient: NSObject, HTTPClient, @unchecked Sendable {
    package static let shared = URLSessionClient()

    /// By the identifiers of their tasks.
    private let exchanges = Mutex<[Int: Exchange]>([:])
    private let queue = DispatchQueue(label: "ubiquity.http")
    /// By the certificates that are trusted, because a session's connections are used again.
    private let sessions = Mutex<[String?: URLSession]>([:])

    package func begin(
        _ request: HTTPRequest, _ receiver: any HTTPReceiver
    ) -> @Sendable () -> Void {
        let exchange = Exchange(request, receiver)
        if let failure = Self.refusal(of: request) {
            queue.async { exchange.end(failure) }
            return {}
        }
        guard let url = URL(string: request.url) else {
            queue.async { exchange.end(HTTPFailure.other("the address is not one")) }
            return {}
        }
        let task = session(trusting: request.certificates).dataTask(with: Self.system(request, url))
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
        queue.async { [self] in watch(exchange, task) }
        task.resume()
        return { [queue] in
            queue.async {
                exchange.stop(HTTPFailure.cancelled)
                task.cancel()
            }
        }
    }

    /// The reason this system cannot carry out the request; nil if it can.
    private static func refusal(of request: HTTPRequest) -> HTTPFailure? {
        if request.socket != nil { return .other("this system cannot ask a socket") }
        if request.pin != nil { return .other("this system cannot check a server's key") }
        #if canImport(Security)
        return nil
        #else
        guard request.certificates != nil else { return nil }
        return .other("this system cannot trust a certificate of one's own")
        #endif
    }

    private static func system(_ request: HTTPRequest, _ url: URL) -> URLRequest {
        var system = URLRequest(
            url: url, cachePolicy: .reloadIgnoringLocalCacheData,
            // This client ends what is silent.
            timeoutInterval: 86_400)
        system.httpMethod = request.method
        system.httpBody = request.body.map { Data($0) }
        system.httpShouldHandleCookies = false
        for (name, value) in request.fields { system.addValue(value, forHTTPHeaderField: name) }
        return system
    }

    /// Made with the first request: it needs this object as its delegate, which it never gives up.
    private func session(trusting certificates: String?) -> URLSession {
        sessions.withLock { sessions in
            if let session = sessions[certificates] { return session }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            configuration.urlCredentialStorage = nil
            // Each HTTP/1.1 stream occupies a connection; pushes must not wait for one.
            configuration.httpMaximumConnectionsPerHost = 1_024
            let operations = OperationQueue()
            operations.underlyingQueue = queue
            operations.maxConcurrentOperationCount = 1
            let new = URLSession(
                configuration: configuration, delegate: self, delegateQueue: operations)
            sessions[certificates] = new
            return new
        }
    }

    private func exchange(of task: URLSessionTask) -> Exchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    /// Ends the request when it has been silent for too long: at first no longer than a connection
    /// may take.
    private func watch(_ exchange: Exchange, _ task: URLSessionDataTask) {
        guard !exchange.hasEnded else { return }
        let rest = exchange.silentAt - Exchange.now
        guard rest <= 0 else {
            queue.asyncAfter(deadline: .now() + .milliseconds(Int(rest))) { [self] in
                watch(exchange, task)
            }
            return
        }
        exchange.stop(HTTPFailure.silent)
        task.cancel()
    }
}

extension URLSessionClient: URLSessionDataDelegate {
    package func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        exchange(of: task)?.moved()
    }

    package func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let exchange = exchange(of: dataTask), let response = response as? HTTPURLResponse
        else { return completionHandler(.cancel) }
        completionHandler(exchange.began(response) ? .allow : .cancel)
    }

    package func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        if exchange(of: dataTask)?.received(data) == false { dataTask.cancel() }
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) })
        else { return }
        exchange.end(error.map { HTTPFailure($0, hasBegun: exchange.hasBegun) })
    }
}

/// A request under way. Confined to the client's queue.
private final class Exchange: @unchecked Sendable {
    let request: HTTPRequest
    private let receiver: any HTTPReceiver
    private var idle = IdleTimeout(now: Exchange.now)
    private(set) var hasBegun = false
    private(set) var hasEnded = false
    /// Why this side ends the request, if it does.
    private var reason: (any Error)?

    init(_ request: HTTPRequest, _ receiver: any HTTPReceiver) {
        (self.request, self.receiver) = (request, receiver)
    }

    static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    var silentAt: Int64 { receiver.silentAt(idle) }

    func moved() { idle.moved(at: Exchange.now) }

    /// - Returns: Whether to go on.
    func began(_ response: HTTPURLResponse) -> Bool {
        moved()
        hasBegun = true
        let fields = response.allHeaderFields.compactMap { name, value in
            (name as? String).map { (name: $0, value: "\(value)") }
        }
        return attempt {
            try receiver.began(HTTPAnswerHead(status: response.statusCode, fields: fields))
        }
    }

    func received(_ data: Data) -> Bool {
        moved()
        return attempt { try data.withUnsafeBytes { try receiver.received($0) } }
    }

    private func attempt(_ body: () throws -> Void) -> Bool {
        guard reason == nil, !hasEnded else { return false }
        do { try body() } catch { reason = error }
        return reason == nil
    }

    /// Sets the reason that the request ends with, unless it has one.
    func stop(_ error: any Error) { if reason == nil { reason = error } }

    func end(_ error: (any Error)?) {
        guard !hasEnded else { return }
        hasEnded = true
        receiver.ended(reason ?? error)
    }
}

extension HTTPFailure {
    fileprivate init(_ error: any Error, hasBegun: Bool) {
        guard let error = error as? URLError else {
            self = .other("\(error.localizedDescription)")
            return
        }
        self =
            switch error.code {
            case .cancelled: .cancelled
            case .timedOut: .connectTimedOut
            case .cannotFindHost, .dnsLookupFailed: .unknownHost
            case .cannotConnectToHost: .unreachable("connection refused")
            case .notConnectedToInternet: .unreachable("no network")
            case .networkConnectionLost, .badServerResponse: hasBegun ? .cutShort : .closed
            case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
                .clientCertificateRejected:
                .certificate(.untrusted)
            case .serverCertificateHasBadDate: .certificate(.expired(nil))
            case .serverCertificateNotYetValid: .certificate(.notYetValid(nil))
            case .secureConnectionFailed: .noTLS
            default: .other("\(error.localizedDescription)")
            }
    }
}

#if canImport(Security)
internal import CryptoKit
internal import Security

/// Trust in certificates of one's own.
extension URLSessionClient {
    package func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) -> Void
    ) {
        guard let trust = challenge.protectionSpace.serverTrust,
            let pem = exchange(of: task)?.request.certificates
        else { return completionHandler(.performDefaultHandling, nil) }
        let anchors = HTTPRequest.certificates(in: pem).compactMap {
            SecCertificateCreateWithData(nil, Data($0) as CFData)
        }
        SecTrustSetAnchorCertificates(trust, anchors as CFArray)
        SecTrustSetAnchorCertificatesOnly(trust, true)
        guard !anchors.isEmpty, SecTrustEvaluateWithError(trust, nil) else {
            exchange(of: task)?.stop(HTTPFailure.certificate(.untrusted))
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }
}
#endif
