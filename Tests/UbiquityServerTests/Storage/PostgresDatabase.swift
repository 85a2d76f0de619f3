// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A database of a test's own on the server of all tests, removed with the test's folder.
final class PostgresDatabase: Sendable {
    /// Made for the first test that needs it; ends with this process.
    static let server = Result {
        try PostgresServer.started(settings: ["max_connections": "400", "shared_buffers": "64MB"])
    }

    static let isAvailable = PostgresServer.isInstalled
    static let backends: [Backend] = isAvailable ? [.postgresql] : []

    /// A database with the schema, of which the others are copies.
    private static let template = Result {
        try server.get().query("CREATE DATABASE template")
        _ = try PostgresSettings.patient(server.get().url("template")).migrate()
        return "template"
    }

    private let nodes = Mutex<[PostgresServerStorage]>([])
    let name = "test_" + UUID().uuidString.replacing("-", with: "").lowercased()

    /// - Parameter isEmpty: Whether there is no schema in it.
    init(in folder: TemporaryFolder, isEmpty: Bool = false) throws {
        let template = try isEmpty ? "template0" : Self.template.get()
        try Self.server.get().query("CREATE DATABASE \(name) TEMPLATE \(template)")
        folder.keep(self)
    }

    deinit {
        for node in nodes.withLock(\.self) { try? node.close() }
        _ = try? Self.server.get().query("DROP DATABASE \(name) WITH (FORCE)")
    }

    var url: String { get throws { try Self.server.get().url(name) } }

    /// - Parameter proxy: The way to it; nil for none.
    func settings(through proxy: PostgresProxy? = nil) throws -> PostgresSettings {
        try Self.settings(Self.server.get(), name, through: proxy)
    }

    /// With the clock of the caller.
    static func settings(
        _ server: PostgresServer, _ database: String, through proxy: PostgresProxy? = nil
    ) -> PostgresSettings {
        let url = PostgresServer.url(ports: [proxy?.port ?? server.port], database)
        var settings = PostgresSettings.patient(
            proxy == nil ? url : url + "?sslmode=disable&gssencmode=disable")
        settings.connectionsMax = 4
        settings.usesOwnClock = true
        return settings
    }

    /// A node, which is closed with the test's folder.
    func open(through proxy: PostgresProxy? = nil) throws -> PostgresServerStorage {
        let node = try PostgresServerStorage.openForServer(settings(through: proxy))
        nodes.withLock { $0.append(node) }
        return node
    }

    @discardableResult
    func query(_ sql: String) throws -> String { try Self.server.get().query(sql, in: name) }
}

extension PostgresSettings {
    /// Settings whose time limits a slow machine does not reach.
    static func patient(_ url: String) -> PostgresSettings {
        var settings = PostgresSettings(
            url: url + (url.contains("?") ? "&" : "?") + "connect_timeout=300")
        settings.statementMilliseconds = 300_000
        settings.lockMilliseconds = 300_000
        settings.patienceMilliseconds = 300_000
        return settings
    }
}
