// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import Synchronization
package import UbiquityCore

/// The bytes of all requests that this process has handed to the network, to show progress.
package let uploadedBytes = Atomic<Int>(0)

/// Carries out requests over HTTP: libcurl on Linux, `URLSession` on Apple's systems. A process has
/// one, whose requests share its connections.
///
/// Follows no redirect, which would send the credential to an address that nobody chose, and stores
/// nothing. Waits at most ``HTTPRequest/connectSecondsMax`` for a connection. An idempotent request
/// whose kept connection turns out to be closed before any of its answer came is sent once more, on
/// a new one.
package protocol HTTPClient: Sendable {
    /// Begins a request. Never blocks.
    /// - Returns: A closure that cancels it: unless it has ended, the receiver is told
    ///   ``HTTPFailure/cancelled`` soon, and nothing else.
    func begin(_ request: HTTPRequest, _ receiver: any HTTPReceiver) -> @Sendable () -> Void
}

/// A request over HTTP.
package struct HTTPRequest: Sendable {
    /// The longest wait for a connection, with the name looked up and TLS agreed on.
    package static let connectSecondsMax = 10

    package var method: String
    /// Begins with `http://` or `https://`; escaped.
    package var url: String
    /// The path of the Unix domain socket to connect to in place of the URL's host; nil for none.
    package var socket: String?
    package var fields: [(name: String, value: String)] = []
    package var body: [UInt8]?
    /// Whether it does no harm to send it twice. If not, it gets a connection of its own: a kept one
    /// may turn out to be closed when the server has read it.
    package var isIdempotent = true
    /// The only certificates accepted, in PEM: the issuer's or the server's own. Nil means the
    /// system's, or with a ``pin`` any.
    package var certificates: String?
    /// The only public key of the server that is accepted: `sha256//` and, in base64, the digest of
    /// its DER form. Nil means any. Without ``certificates``, the key is all that counts: neither the
    /// name in the server's certificate, nor its dates, nor its issuer.
    package var pin: String?

    package init(_ method: String, _ url: String) { (self.method, self.url) = (method, url) }

    /// What a PEM text has in the places of certificates, in DER.
    package static func certificates(in pem: String) -> [[UInt8]] {
        pem.components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst().compactMap { part in
            guard let end = part.range(of: "-----END CERTIFICATE-----") else { return nil }
            let text = String(part[..<end.lowerBound])
            let der = Data(base64Encoded: text, options: .ignoreUnknownCharacters)
            // A sequence of ASN.1.
            return der?.first == 0x30 ? der.map(Array.init) : nil
        }
    }
}

/// The status and the fields of an answer.
package struct HTTPAnswerHead: Sendable {
    package var status: Int
    /// Empty if there is none, as in HTTP/2.
    package var reason: String
    /// In the order of their arrival.
    package var fields: [(name: String, value: String)]

    package init(status: Int, reason: String = "", fields: [(name: String, value: String)] = []) {
        (self.status, self.reason, self.fields) = (status, reason, fields)
    }

    /// The first value of the field with this name, in any case; nil if there is none.
    package subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name }?.value
    }
}

/// Is told what becomes of a request.
///
/// Every function is called on the client's only thread or queue, which all requests of the process
/// share, so none may block. Nothing more is read from the server until a call has returned.
package protocol HTTPReceiver: AnyObject, Sendable {
    /// The longest time without a byte in either direction, in milliseconds, after which the client
    /// ends the request as ``HTTPFailure/silent``. Read after every call here.
    var silenceMillisecondsMax: Int64 { get }
    /// The answer begins. An error ends the request, as in ``received(_:)``.
    func began(_ head: HTTPAnswerHead) throws
    /// A piece of the answer's body, valid during the call.
    func received(_ piece: UnsafeRawBufferPointer) throws
    /// The last call. Nil if the answer was complete; otherwise an ``HTTPFailure``, or the error
    /// thrown by a function of the receiver.
    func ended(_ error: (any Error)?)
}

extension HTTPReceiver {
    /// The time at which a request will have been silent for too long, by the clock of `idle`.
    package func silentAt(_ idle: IdleTimeout) -> Int64 {
        var idle = idle
        idle.silenceMilliseconds = min(max(silenceMillisecondsMax, 0), .max / 2)
        return idle.end
    }
}

/// The reason a request has no complete answer.
package enum HTTPFailure: Error, Hashable, Sendable {
    /// No connection within ``HTTPRequest/connectSecondsMax``.
    case connectTimedOut
    /// The host has no address.
    case unknownHost
    /// No connection; the system's words, in lower case, such as "connection refused".
    case unreachable(String)
    /// The other side closed the connection before its answer began.
    case closed
    /// It closed it in the middle of its answer.
    case cutShort
    /// The connection broke; the system's words.
    case broken(String)
    /// The other side does not speak TLS.
    case noTLS
    case certificate(CertificateProblem)
    /// No byte has moved for ``HTTPReceiver/silenceMillisecondsMax``.
    case silent
    case cancelled
    /// Something else, such as an answer that is not HTTP or a proxy's refusal: a few words.
    case other(String)

    package enum CertificateProblem: Hashable, Sendable {
        /// It is for other names.
        case otherName
        /// When it expired, in seconds since 1970; nil if the system does not say.
        case expired(Int64?)
        /// When it begins to be valid.
        case notYetValid(Int64?)
        case untrusted
        /// The server's key is not ``HTTPRequest/pin``.
        case otherKey
        /// The text of ``HTTPRequest/certificates`` has none.
        case nothingToTrust
    }
}
