// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Ubiquity
import UbiquityCore

extension DemoStory {
    /// Shows a device whose server is killed going on through the other one.
    func loseNode(_ a: DemoDevice, _ b: DemoDevice) async throws {
        guard servers.isShared else { return }
        DemoScreen.chapter("A server dies, and nobody waits for it")
        try await until("the last answer") { a.pendingKeys + b.pendingKeys == 0 }
        let before = try await servers.detours
        try await step("A's server is killed (kill -9); B's goes on") {
            try await servers.nodes[0].kill()
        }
        try await step("A writes; through the other server, B gets it") {
            a.store.set("written without its server", forKey: "NoteA")
            try await until("its arrival on B") {
                b.store.string(forKey: "NoteA") == "written without its server"
            }
        }
        try await step("B writes; A, which is connected again, gets it") {
            b.store.set("written meanwhile", forKey: "NoteB")
            try await until("its arrival on A") {
                a.store.string(forKey: "NoteB") == "written meanwhile" && a.isConnected
            }
        }
        guard try await servers.detours > before else {
            throw Trouble("A did not use the other server")
        }
        try await step("A's server starts again; nothing is lost or waiting") {
            try await servers.nodes[0].start()
            try await until("their agreement") {
                a.store.values == b.store.values && a.pendingKeys + b.pendingKeys == 0
            }
        }
    }
}
