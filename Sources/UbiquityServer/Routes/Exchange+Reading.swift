// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

extension Exchange {
    /// Answers with the problem that the error is for the client.
    func refuse(_ error: any Error) { refuse(Problem(error)) }

    /// Refuses the request if the body throws.
    func attempt(_ body: () throws -> Void) {
        do { try body() } catch { refuse(error) }
    }

    /// Finds the caller, at once if the connection's last request had the same credential not long
    /// ago and nothing was revoked since.
    func findCaller(by gate: Gate, then: @escaping (Caller) throws -> Void) {
        guard !gate.isInFolder else { return attempt { try then(.operator) } }
        let field = request.headers.first(name: "authorization")
        let revocations = gate.authenticator.revocations
        let now = gate.clock.uptime()
        if let known = connection.client, known.authorization == field,
            known.revocations == revocations, now < known.until
        {
            return attempt { try then(known.caller) }
        }
        gate.authenticator.caller(
            request.headers.bearer,
            then: callback { [connection] caller in
                connection.client = HTTPConnection.Client(
                    authorization: field, caller: caller, revocations: revocations,
                    until: now + gate.authenticator.connectionMilliseconds)
                try then(caller)
            })
    }

    /// Continues on this connection's loop, at once if that is where the result arrives. An error
    /// refuses the request.
    func callback<T: Sendable>(
        _ then: @escaping (T) throws -> Void
    ) -> @Sendable (Result<T, any Error>) -> Void {
        let loop = loop
        let bound = NIOLoopBound((exchange: self, then: then), eventLoop: loop)
        return { result in
            let go: @Sendable () -> Void = {
                let (exchange, then) = bound.value
                exchange.attempt { try then(try result.get()) }
            }
            if loop.inEventLoop { go() } else { loop.execute(go) }
        }
    }
}

extension HTTPRequestHead {
    var query: URI { URI(uri) }

    /// Nil if the whole store is requested. The header takes precedence, because browsers send it
    /// when they reconnect.
    func position(orLastEvent: Bool) throws(Problem) -> Position? {
        let last = orLastEvent ? headers.first(name: "last-event-id") : nil
        guard let text = last ?? query.text("since") else { return nil }
        guard let position = Position(try Cursor(given: text)) else { throw .foreignCursor }
        return position
    }

    /// Whether the device has saved everything up to the cursor that it names. Clients of version
    /// 0.1 do not say otherwise.
    var saysSaved: Bool { query.text("saved") != "false" }

    /// The path, not decoded and without the query.
    var plainPath: Substring {
        guard uri.utf8.first == UInt8(ascii: "/") else { return URI(uri).path[...] }
        return uri[..<(uri.utf8.firstIndex(of: UInt8(ascii: "?")) ?? uri.endIndex)]
    }
}

/// The parameters of a query; nil if they are not given.
extension URI {
    func text(_ name: Substring) -> String? { queryParameters[name].map { String($0) } }

    /// - Throws: ``Problem``.
    var key: Key? {
        get throws(Problem) {
            guard let text = text("key") else { return nil }
            do { return try Key(text) } catch { throw .malformed("\(error).") }
        }
    }

    /// The cursor up to which the device has saved the store.
    /// - Throws: ``Problem``.
    var saved: Cursor? {
        get throws(Problem) {
            guard let text = text("saved") else { return nil }
            return try Cursor(given: text)
        }
    }

    /// A number from 0 on.
    func number(_ name: Substring) throws(Problem) -> Int64? {
        guard let text = text(name) else { return nil }
        guard let number = Int64(text), number >= 0 else {
            throw .malformed("\(name) must be a number from 0 on.")
        }
        return number
    }

    /// The text that names must contain; nil for any.
    func part(bytesMax: Int) throws(Problem) -> String? {
        guard let part = text("search"), !part.isEmpty else { return nil }
        guard part.utf8.count <= bytesMax, !part.hasControls else {
            throw .malformed(
                "search must have at most \(bytesMax) bytes, and no control characters.")
        }
        return part
    }

    var auditFilter: AuditFilter {
        get throws(Problem) {
            var filter = AuditFilter()
            if let word = text("deed") {
                guard let action = AuditAction(rawValue: word) else {
                    throw .malformed("deed must be an action of the audit log.")
                }
                filter.action = action
            }
            if let id = text("account") {
                guard let account = AccountID(id) else {
                    throw .malformed("account must be an account's ID, 16 hexadecimal digits.")
                }
                filter.account = account
            }
            return filter
        }
    }

    /// A number from 1 on.
    func count(_ name: Substring, max: Int) throws(Problem) -> Int? {
        guard let text = text(name) else { return nil }
        guard let count = Int(text), (1...max).contains(count) else {
            throw .malformed("\(name) must be a number from 1 to \(max).")
        }
        return count
    }
}

extension Cursor {
    fileprivate init(given text: String) throws(Problem) {
        guard let cursor = Cursor(text) else { throw .foreignCursor }
        self = cursor
    }
}

extension Problem {
    fileprivate static var foreignCursor: Problem {
        .malformed("This cursor was not issued by this server.")
    }
}
