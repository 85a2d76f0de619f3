// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Testing

@testable import Ubiquity

@Suite struct `A write that is refused` {
    @Test func `is one line of the log, which names the key and the leaf`() throws {
        let log = LogRecorder()
        let local = try LocalStore { $0.logger = log.logger }
        local.store.set(["site": try #require(URL(string: "http://x"))], forKey: "bookmarks")
        #expect(
            log.lines == [
                LogRecorder.Line(
                    level: .error,
                    text: "the write of the key \"bookmarks\" was refused: bookmarks.site: a URL "
                        + "is not a property-list value")
            ])
    }

    /// An app that goes on and on with what cannot be must not fill the disk with its log, nor the
    /// memory with what nobody reads.
    @Test func `is a line of the log for the first ones only, when there is no end to them`()
        async throws
    {
        let log = LogRecorder()
        let queue = DispatchQueue(label: "busy")
        let local = try LocalStore {
            $0.logger = log.logger
            $0.notificationQueue = queue
        }
        let errors = local.store.errors
        queue.suspend()
        for number in 0..<20_000 { local.store.set(NSNull(), forKey: "key \(number)") }
        #expect((64...128).contains(log.lines.count))
        let storage = UbiquityError(.storage, "another kind of trouble is not lost in it")
        local.store.report(storage)
        #expect(log.lines.last?.text == storage.description)
        queue.resume()
        var posted: [UbiquityError] = []
        for await error in errors {
            posted.append(error)
            if error == storage { break }
        }
        #expect(posted.count <= NotificationPoster.errorsMax)
    }

    @Test func `ends the program with that sentence where the app is strict`() async throws {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let local = try LocalStore { $0.isStrict = true }
            local.store.set(NSNull(), forKey: "key")
            exit(EXIT_SUCCESS)
        }
        let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(output.contains("key: a NSNull is not a property-list value"))
    }

    @Test func `because the store is full does not end the program of a strict app`() throws {
        let local = try LocalStore { $0.isStrict = true }
        local.store.set(Data(count: 1_048_577), forKey: "large")
        #expect(local.store.object(forKey: "large") == nil)
    }

    @Test func `for its size is judged by what it holds, whatever a property list would take`()
        throws
    {
        let local = try LocalStore()
        let numbers = [Double](repeating: 1.5, count: 65_536)
        local.store.set(numbers, forKey: "a")
        #expect(local.store.array(forKey: "a")?.count == numbers.count)
        local.store.set(numbers + [1], forKey: "a")
        #expect(local.store.array(forKey: "a")?.count == numbers.count)
        local.store.set([true], forKey: "b")
        #expect(local.store.object(forKey: "b") == nil)
        #expect(local.store.status.bytes == 1_048_576)
    }

    @Test func `for its key is judged by the app's own limit as long as no server has said`()
        throws
    {
        let bytes = try LocalStore { $0.keyLimit = .utf8Bytes(3) }
        bytes.store.set(1, forKey: "é1")
        bytes.store.set(2, forKey: "éé")
        #expect(bytes.store.dictionaryRepresentation as? [String: Int] == ["é1": 1])

        let units = try LocalStore { $0.keyLimit = .utf16Units(128) }
        let longest = String(repeating: "é", count: 128)
        units.store.set(1, forKey: longest)
        units.store.set(2, forKey: longest + "1")
        units.store.set(3, forKey: String(repeating: "😀", count: 65))
        #expect(units.store.dictionaryRepresentation as? [String: Int] == [longest: 1])
    }
}
