// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// A process in a group of its own, which has the three files that it is given and no other.
///
/// By `posix_spawn`: Foundation's `Process` reads beyond a page, and traps, where this process has more
/// than some 1,300 open files, and a test of many connections has them for a moment.
///
/// Shared state, guarded by a mutex: the status of a process that has ended. The system keeps it until
/// somebody asks, and the number belongs to no other process until then.
package final class SpawnedProcess: Sendable {
    package let id: Int32
    private let end = Mutex<Int32?>(nil)

    /// - Parameters:
    ///   - command: The path of the program, and its arguments.
    ///   - environment: All of its variables.
    ///   - files: Its input, which is empty if it is nil, its output and its errors.
    /// - Throws: ``Trouble``.
    package init(
        _ command: [String], environment: [String: String],
        files: (input: Int32?, output: Int32, errors: Int32)
    ) throws {
        #if canImport(Darwin)
        var (actions, attributes): (posix_spawn_file_actions_t?, posix_spawnattr_t?) = (nil, nil)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_CLOEXEC_DEFAULT
        #else
        var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        let flags = POSIX_SPAWN_SETPGROUP
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        if let input = files.input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, files.output, 1)
        posix_spawn_file_actions_adddup2(&actions, files.errors, 2)
        #if !canImport(Darwin)
        try Self.closeOthers(&actions)
        #endif
        var words = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer {
            for text in words + variables { free(text) }
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        var id: pid_t = 0
        let failure = posix_spawn(&id, command[0], &actions, &attributes, &words, &variables)
        guard failure == 0 else {
            throw Trouble("\(command[0]) cannot be started: \(String(cString: strerror(failure)))")
        }
        self.id = id
    }

    #if !canImport(Darwin)
    /// By a function of glibc 2.34 that the system's module hides.
    private static func closeOthers(_ actions: inout posix_spawn_file_actions_t) throws {
        typealias Function =
            @convention(c) (
                UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32
            ) -> Int32
        guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else {
            throw Trouble("this C library is too old to start programs")
        }
        _ = unsafeBitCast(symbol, to: Function.self)(&actions, 3)
    }
    #endif

    /// The exit status, or the number of the signal that ended it; nil while it runs.
    package var status: Int32? {
        end.withLock { end in
            if end == nil { end = ended() }
            return end
        }
    }

    private func ended() -> Int32? {
        var status: Int32 = 0
        guard waitpid(id, &status, WNOHANG) == id else { return nil }
        return status & 0x7f == 0 ? status >> 8 & 0xff : status & 0x7f
    }

    package func signal(_ number: Int32) {
        end.withLock { end in
            if end == nil { end = ended() }
            if end == nil { Foundation.kill(id, number) }
        }
    }
}
