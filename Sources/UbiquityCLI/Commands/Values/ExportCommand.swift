// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Export the store as a property list.",
        discussion: """
            Changes on the server are fetched first if possible. The XML form cannot hold control \
            characters, and loses fractions of a second; --binary keeps everything. Only you can \
            read the file. An existing file is only replaced with --force: as a whole, or not at all.

            A file's name ends in .plist or .xml, or has a /: another word could be a store's name. \
            Write --store NAME to export that store.

            Status 76: keys are missing, or not as the server has them, because it has something of \
            them that this device does not take, such as a value that the account's key does not open. The \
            file is written all the same.

            JSON, with a file: {"exported", "file"}. Without one, the values themselves, as `list \
            --json` prints them; - is always a property list.
            """)

    @Argument(
        help: "The file to write. Default, and -: standard output.", completion: .file(),
        transform: notEmpty)
    var file: String?

    @Flag(help: "Replace the file if it exists.")
    var force = false

    @Flag(help: "Use the binary form instead of XML.")
    var binary = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup(title: "Server") var sync: SyncOptions
    @OptionGroup var json: ValueJSONOption

    /// Nil for the standard output.
    private var path: String? { file == "-" ? nil : file }

    func validate() throws {
        if file == "-" {
            try refuse(
                given(("--json", json.plain.isOn), ("--exact", json.exact)),
                "with -, which is for a property list.")
        }
        if path != nil {
            try refuse(given(("--exact", json.exact)), "with a file, which is a property list.")
        }
        if let path { try checkName(path) }
        if path == nil { try refuse(given(("--force", force)), "without a file.") }
        if path == nil, binary, json.isOn {
            throw ValidationError("Without a file, --binary cannot be used with --json or --exact.")
        }
    }

    /// Users of `defaults` write the domain first.
    private func checkName(_ path: String) throws {
        guard !path.contains("/") else { return }
        let name = path.lowercased()
        if name.hasSuffix(".json") {
            throw ValidationError(
                "A file is a property list; for JSON write `ubiquity export --json > \(path)`, or "
                    + "--exact to keep all types.")
        }
        guard ![".plist", ".xml"].contains(where: name.hasSuffix) else { return }
        throw ValidationError(
            "\(path) could be a store: write `ubiquity export --store \(path)` for that, and "
                + "./\(path) for a file.")
    }

    func run() async throws {
        let draft = try path.map { try AtomicFile(path: $0, replaces: force) }
        let (values, missing) = try await OpenStore.with(
            store, sync.policy, ifMissing: .refuse
        ) { open in
            await open.refresh()
            return (open.store.values, open.store.engineStatus.setAside.keys.count)
        }
        if path == nil, json.isOn {
            json.print(.values(values))
        } else {
            let bytes = binary ? BinaryPropertyList.encode(.entries(values)) : try xml(values)
            if let path, let draft {
                try draft.write(bytes)
                try draft.finish()
                report(values.count, path)
            } else {
                Output.write(bytes)
            }
        }
        if missing > 0 {
            throw Failure(
                .incomplete,
                "\(Phrase.keys(missing)) \(missing == 1 ? "is" : "are") missing in the export, or not as "
                    + "the server has \(missing == 1 ? "it" : "them")")
        }
    }

    private func xml(_ values: [Key: PropertyListValue]) throws -> [UInt8] {
        let compatibility = XMLCompatibility(values)
        guard compatibility.impossible.isEmpty, let bytes = PropertyListXML.encode(.entries(values))
        else {
            throw Failure(
                .badInput,
                "XML cannot hold some of the values (control characters, infinite dates, keys "
                    + "that differ in Unicode normalisation only): "
                    + "\(Phrase.names(compatibility.impossible)); use --binary")
        }
        if !compatibility.lossy.isEmpty {
            Output.note(
                """
                XML has no fractions of a second and, for most programs, no negative zeros and no \
                years beyond four digits; --binary keeps them: \(Phrase.names(compatibility.lossy))
                """)
        }
        return bytes
    }

    private func report(_ count: Int, _ file: String) {
        json.print(
            ["exported": .integer(count), "file": .string(file)],
            or: "Exported \(Phrase.keys(count)) to \(file).")
    }
}
