// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Synchronization
import Ubiquity

/// What a process that the benchmarks start does: it is a device of its own.
struct Role: ParsableCommand {
    static let configuration = CommandConfiguration(shouldDisplay: false)

    enum Name: String, ExpressibleByArgument {
        /// Tells when each value of a key became readable.
        case watch
        /// Tells how long it took from the opening until the whole sample store was readable.
        case open
        /// Measures the calls that never leave the process.
        case local
        /// Measures what a connected store costs that nobody uses.
        case idle
    }

    @Argument var name: Name
    @Option var home: String

    func run() throws {
        switch name {
        case .watch: try watch()
        case .open: Self.say(try Opening.measure(home: home))
        case .local: Self.say(try LocalCalls.measure(home: home))
        case .idle: Self.say(try Idle.measure(home: home))
        }
    }

    /// The notification comes after the value is readable; so what is told is never too early.
    private func watch() throws {
        let store = try SampleStore.open(home: home)
        let last = Mutex<String?>(nil)
        let tell: @Sendable () -> Void = {
            last.withLock { last in
                guard let value = store.string(forKey: ChangeLatency.key), value != last
                else { return }
                let time = nanoseconds()
                last = value
                Self.write("\(value) \(time)\n")
            }
        }
        let observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: nil,
            queue: nil
        ) { _ in tell() }
        tell()
        while readLine() != nil {}
        withExtendedLifetime((store, observer)) {}
    }

    private static func say(_ answer: some Encodable) {
        guard let json = try? JSONEncoder().encode(answer) else { return }
        write(String(decoding: json, as: UTF8.self) + "\n")
    }

    private static func write(_ line: String) {
        FileHandle.standardOutput.write(Data(line.utf8))
    }
}
