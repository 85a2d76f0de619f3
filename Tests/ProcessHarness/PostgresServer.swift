// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// A PostgreSQL server of the caller's own, in a temporary folder and at a free port of 127.0.0.1. It
/// runs as an ordinary user, even where the caller is root, and has nothing to do with any other
/// server of the machine. Nothing is left of it when it goes, or when this process ends, however that
/// happens.
///
/// All calls block; a start takes about half a second.
///
/// Shared state, guarded by a mutex: the process of the moment and the port. One task starts and ends
/// it, and others ask for its address.
package final class PostgresServer: Sendable {
    private struct State {
        var child: ChildProcess?
        /// Chosen at the first start.
        var port: Int?
    }

    /// The server's administrator, who is the only user, the same for all servers of this process:
    /// a standby has the password of its primary.
    private static let user = "ubiquity"
    private static let password = String(UInt64.random(in: .min ... .max), radix: 36)

    private let programs: PostgresPrograms
    private let stage: Stage
    private let state = Mutex(State())

    /// Whether PostgreSQL is installed; `scripts/setup postgresql` installs it on Debian.
    package static var isInstalled: Bool { PostgresPrograms.installed != nil }

    /// - Parameter primary: The server that the new one is a standby of; nil for one of its own.
    /// - Throws: ``Trouble``.
    private init(
        standbyOf primary: PostgresServer?, settings: [String: String], parent: String
    ) throws {
        guard let programs = PostgresPrograms.installed else {
            throw Trouble("PostgreSQL 15 or later is not installed: scripts/setup postgresql")
        }
        self.programs = programs
        stage = try Stage("postgresql", in: parent)
        try programs.own(stage.folder)
        try cleanUpAfterThisProcess()
        if let primary { try copy(primary) } else { try makeCluster() }
        try set(settings)
    }

    deinit { kill() }

    /// - Parameters:
    ///   - isDurable: Whether it writes to the disk before it says so. Needless where only
    ///     processes are killed, and slow.
    ///   - settings: Of `postgresql.conf`.
    ///   - parent: The folder in which its own is made. Its path must be short, because that of a
    ///     socket has a limit, and other users must be able to enter it.
    package static func started(
        isDurable: Bool = false, settings: [String: String] = [:],
        in parent: String = NSTemporaryDirectory()
    ) throws -> PostgresServer {
        let durability = isDurable ? [:] : ["fsync": "off", "full_page_writes": "off"]
        let server = try PostgresServer(
            standbyOf: nil, settings: durability.merging(settings) { $1 }, parent: parent)
        try server.start()
        return server
    }

    /// A running standby, with the settings of this server.
    package func newStandby(in parent: String = NSTemporaryDirectory()) throws -> PostgresServer {
        let standby = try PostgresServer(standbyOf: self, settings: [:], parent: parent)
        try standby.start()
        return standby
    }

    // MARK: - Addresses

    package var folder: String { stage.folder }
    package var data: String { stage.path("data") }
    package var port: Int { state.withLock(\.port) ?? 0 }

    /// The address of a database, with the password.
    package func url(_ database: String = "postgres") -> String {
        Self.url(ports: [port], database)
    }

    /// The address of a database on whichever of the servers at these ports is the primary.
    package static func url(ports: [Int], _ database: String) -> String {
        let hosts = ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
        return "postgresql://\(user):\(password)@\(hosts)/\(database)"
    }

    // MARK: - Its life

    /// Returns when it accepts connections.
    /// - Throws: ``Trouble``, with its errors, if it ends instead.
    package func start() throws {
        let port = try state.withLock(\.port) ?? FreePort.find()
        let child = try spawn(
            "postgres",
            [
                "-D", data, "-p", "\(port)", "-k", folder, "-c", "listen_addresses=127.0.0.1",
            ])
        try wait(for: "the start of PostgreSQL") {
            if !child.isRunning { throw Trouble("PostgreSQL did not start: \(child.lastWords)") }
            return status(of: child.processID) == "ready"
        }
        state.withLock { $0 = State(child: child, port: port) }
    }

    /// The last line of the file by which PostgreSQL says how far its start is; nil if another
    /// process has left it.
    private func status(of processID: Int32) -> String? {
        let text = try? String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8)
        guard let lines = text?.split(separator: "\n", omittingEmptySubsequences: false),
            lines.count > 7, lines[0] == "\(processID)"
        else { return nil }
        return lines[7].trimmingCharacters(in: .whitespaces)
    }

    /// The process ID; nil if it is not running.
    package var processID: Int32? { state.withLock(\.child)?.processID }

    /// Shuts it down cleanly; connections are cut.
    package func stop() throws {
        guard let child = state.withLock(\.child) else { return }
        child.signal(SIGINT)
        try wait(for: "the end of PostgreSQL") { !child.isRunning }
        state.withLock { $0.child = nil }
    }

    /// `kill -9` of all its processes. What the system has taken from them is not lost.
    package func kill() {
        let child = state.withLock(\.child)
        // So that none is born while the others are killed.
        child?.signal(SIGSTOP)
        while case let numbers = processes, !numbers.isEmpty {
            for number in numbers { _ = Foundation.kill(number, SIGKILL) }
            usleep(2_000)
        }
        // PostgreSQL does not start while its number is somebody's, also of one that is dead.
        while child?.isRunning ?? false { usleep(2_000) }
        state.withLock { $0.child = nil }
    }

    /// Stops all of its processes where they are, or has them go on.
    package func freeze(_ isFrozen: Bool) {
        let child = state.withLock(\.child)
        child?.signal(isFrozen ? SIGSTOP : SIGCONT)
        for number in processes { _ = Foundation.kill(number, isFrozen ? SIGSTOP : SIGCONT) }
    }

    /// All processes of the server work in the folder of its data, and no other does.
    private var processes: [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let data = URL(fileURLWithPath: data).resolvingSymlinksInPath().path
        return names.compactMap(Int32.init).filter { number in
            let place = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/\(number)/cwd")
            return place == data
        }
    }

    /// A process that waits for the end of this one, which no signal announces, and then does what
    /// ``deinit`` would have done. It has no child that would outlive it.
    private func cleanUpAfterThisProcess() throws {
        let script = """
            trap '' HUP INT TERM
            while read -r line; do :; done
            while [ -e "$0" ]; do
                for process in /proc/[0-9]*; do
                    [ "$process/cwd" -ef "$0/data" ] && kill -9 "${process#/proc/}"
                done
                rm -rf "$0" || sleep 0.1
            done
            """
        _ = try stage.start(
            ["-c", script, folder], program: ProgramFile(path: "/bin/sh"), input: Pipe())
    }

    // MARK: - Standbys

    /// Makes a standby the primary, and returns when it writes.
    package func promote() throws { try run("pg_ctl", ["promote", "-w", "-D", data]) }

    /// Kills it, and starts it anew as a standby of another one, at its old address.
    package func become(standbyOf primary: PostgresServer) throws {
        kill()
        try? FileManager.default.removeItem(atPath: data)
        try copy(primary)
        try start()
    }

    private func copy(_ primary: PostgresServer) throws {
        try run(
            "pg_basebackup",
            [
                "-d", primary.url(), "-D", data, "--write-recovery-conf", "--checkpoint=fast",
                "--no-sync",
            ])
    }

    // MARK: - Settings and statements

    /// Settings of `postgresql.conf`, from the next start or ``reload()`` on.
    package func set(_ settings: [String: String]) throws {
        let lines = settings.sorted { $0.key < $1.key }.map { name, value in
            "\(name) = '\(value.replacing("'", with: "''"))'\n"
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: data + "/postgresql.conf"))
        try file.seekToEnd()
        try file.write(contentsOf: Data(lines.joined().utf8))
        try file.close()
    }

    package func reload() { state.withLock(\.child)?.signal(SIGHUP) }

    /// Runs statements by `psql`.
    /// - Returns: The rows, a line each, the columns divided by `|`.
    /// - Throws: ``Trouble`` with the server's words.
    @discardableResult
    package func query(_ sql: String, in database: String = "postgres") throws -> String {
        try run(
            "psql",
            [
                "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
                "--host=\(folder)", "--port=\(port)", "--username=\(Self.user)",
                "--dbname=\(database)", "--command=\(sql)",
            ]
        ).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Sorts texts by the rules of a language unless a statement says otherwise, as most servers do.
    private func makeCluster() throws {
        let password = stage.path("password")
        try Data(Self.password.utf8).write(to: URL(fileURLWithPath: password))
        try programs.own(password)
        try run(
            "initdb",
            [
                "-D", data, "--username=\(Self.user)", "--pwfile=\(password)", "--auth-local=trust",
                "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale-provider=icu",
                "--icu-locale=en", "--no-sync",
            ])
        try FileManager.default.removeItem(atPath: password)
    }

    // MARK: - Processes

    private func spawn(_ program: String, _ arguments: [String]) throws -> ChildProcess {
        let command = programs.command(program, arguments)
        return try stage.start(
            Array(command.dropFirst()), program: ProgramFile(path: command[0]))
    }

    @discardableResult
    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let child = try spawn(program, arguments)
        defer { child.forget() }
        try wait(for: "the end of \(program)") { !child.isRunning }
        guard child.status == 0 else {
            throw Trouble("\(program) ended with \(child.status): \(child.lastWords)")
        }
        return child.output
    }

    /// Waits for five minutes at most. The limit guards against hanging, and does not test speed.
    private func wait(for what: String, _ condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(300)
        while try !condition() {
            guard .now < deadline else { throw Trouble("\(what) never came") }
            usleep(2_000)
        }
    }
}
