// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

/// Reads and checks the parts of a request.
extension Exchange {
    /// Nil if there is none.
    var bearer: String? { request.headers.bearer }

    /// See ``HTTPHeaders/answerFormat``.
    var answerFormat: WireFormat {
        get throws(Problem) {
            guard let format = request.headers.answerFormat else { throw .notAcceptable }
            return format
        }
    }

    var bodyFormat: WireFormat {
        get throws(Problem) {
            guard let format = request.headers.bodyFormat else { throw .unsupportedMediaType }
            return format
        }
    }

    /// The unit for counting: the address without the port, and of IPv6 the first 64 bits.
    var remoteAddress: String { origin.map { "\($0.neighbourhood)" } ?? "local" }
}

/// The parameters of the path.
extension Exchange {
    /// - Throws: ``Problem`` if it cannot be decoded.
    func text(_ name: Substring) throws(Problem) -> String {
        let parameter = parameters.first { $0.name == name }
        guard let text = parameter?.text.percentDecoded else { throw .notFound }
        return text
    }

    /// - Throws: ``Problem``.
    func storeIdentifier() throws(Problem) -> StoreIdentifier {
        let text = try text("identifier")
        do { return try StoreIdentifier(text) } catch { throw .malformed("\(error).") }
    }

    /// - Throws: ``StorageError/noSuchAccount``, also for text that cannot be a name.
    func accountName() throws -> AccountName {
        guard let name = AccountName(try text("name")) else { throw StorageError.noSuchAccount }
        return name
    }

    /// - Throws: ``StorageError/noSuchDevice``, also for text that cannot be an ID.
    func deviceID() throws -> DeviceID {
        guard let id = DeviceID(try text("id")) else { throw StorageError.noSuchDevice }
        return id
    }
}

/// Bodies, for routes that answer in a task. Few messages are larger than 16 KB.
extension Exchange {
    private func readBody(bytesMax: Int = 16_384) async throws -> ByteBuffer {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute { [self] in
                readBody(bytesMax: bytesMax) { continuation.resume(with: $0.mapError { $0 }) }
            }
        }
    }

    /// Reads a small message that does not nest.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(_ type: M.Type, bytesMax: Int = 16_384) async throws -> M {
        let format = try bodyFormat
        return try format.decode(type, from: try await readBody(bytesMax: bytesMax).bytes)
    }

    /// The same if the body is optional; without one, the message is empty.
    /// - Throws: ``Problem``, ``WireError``.
    func readMessage<M: Message>(orNone type: M.Type) async throws -> M {
        guard !request.headers.contains(name: "content-type") else {
            return try await readMessage(type)
        }
        guard try await readBody().readableBytes == 0 else { throw Problem.unsupportedMediaType }
        return M()
    }

    /// The device's name in the body.
    /// - Throws: ``Problem``, ``WireError``.
    func readTitle() async throws -> String {
        guard let displayName = DeviceDisplayName.fit(try await readMessage(WireRename.self).name)
        else {
            throw Problem.malformed("\"name\" must have a visible character.")
        }
        return displayName
    }
}

extension ByteBuffer {
    var bytes: [UInt8] { Array(readableBytesView) }
}

extension Substring {
    /// The text before and after the first such byte. Without one, nothing is after it.
    fileprivate func cut(at byte: UInt8) -> (before: Substring, after: Substring) {
        guard let index = utf8.firstIndex(of: byte) else { return (self, "") }
        return (self[..<index], self[utf8.index(after: index)...])
    }

    /// Nil if it cannot be decoded.
    fileprivate var percentDecoded: String? {
        utf8.contains(UInt8(ascii: "%")) ? removingPercentEncoding : String(self)
    }
}

extension HTTPRequestHead {
    /// The address from its path on (RFC 9112, section 3.2). The absolute form begins with a server.
    private var target: Substring {
        guard uri.utf8.first != UInt8(ascii: "/"), let scheme = uri.range(of: "://") else {
            return uri[...]
        }
        let afterServer = uri[scheme.upperBound...].drop { !"/?#".contains($0) }
        return afterServer.prefix { $0 != "#" }
    }

    /// Not decoded, and without the query.
    var path: Substring { target.cut(at: UInt8(ascii: "?")).before }

    var query: RequestQuery {
        let query = target.cut(at: UInt8(ascii: "?")).after
        return RequestQuery(query.cut(at: UInt8(ascii: "#")).before)
    }

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
}

/// The query of a request.
struct RequestQuery {
    private let query: Substring

    init(_ query: Substring) { self.query = query }

    /// The first parameter of this name, as it is if it cannot be decoded; nil if there is none.
    func text(_ name: String) -> String? {
        for parameter in query.utf8.split(separator: UInt8(ascii: "&")).map(Substring.init) {
            let (found, text) = parameter.cut(at: UInt8(ascii: "="))
            if found == name { return text.percentDecoded ?? String(text) }
        }
        return nil
    }

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
    func number(_ name: String) throws(Problem) -> Int64? {
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

    /// The generation of the key that the device has; 0 if it says nothing.
    var generation: UInt32 {
        get throws(Problem) {
            guard let number = UInt32(exactly: try number("generation") ?? 0) else {
                throw .malformed("generation must be a number from 0 to \(UInt32.max).")
            }
            return number
        }
    }

    /// A number from 1 on.
    func count(_ name: String, max: Int) throws(Problem) -> Int? {
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
