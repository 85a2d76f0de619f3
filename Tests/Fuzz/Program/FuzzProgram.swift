// SPDX-License-Identifier: Apache-2.0

private import Foundation
private import FuzzEntries

/// Handles the command line. libFuzzer, which has the `main`, calls this first, and ignores
/// arguments that begin with two hyphens.
///
/// `--entry=NAME` chooses what is fuzzed. Instead of fuzzing, `--list` prints the entries, and
/// `--seeds=FOLDER` writes the seeds of their corpora.
@_cdecl("LLVMFuzzerInitialize")
func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
    if CommandLine.arguments.contains("--list") { list() }
    if let folder = option("seeds") { writeSeeds(to: folder) }
    _ = thread
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
func check(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do { try thread.check(Array(UnsafeBufferPointer(start: bytes, count: count))) } catch {
        fatalError("\(error)")
    }
    return 0
}

private let thread = FuzzThread(entry)

private let entry: FuzzEntry = {
    guard let entry = option("entry").flatMap(FuzzEntry.named) else {
        fail("give --entry=NAME, one of: \(FuzzEntry.all.map(\.name).joined(separator: " "))")
    }
    return entry
}()

private func option(_ name: String) -> String? {
    let prefix = "--\(name)="
    return CommandLine.arguments.last { $0.hasPrefix(prefix) }
        .map { String($0.dropFirst(prefix.count)) }
}

/// Each entry with the length that its inputs may have.
private func list() -> Never {
    for entry in FuzzEntry.all { print(entry.name, entry.bytesMax) }
    exit(0)
}

private func writeSeeds(to folder: String) -> Never {
    do {
        for entry in FuzzEntry.all {
            let folder = "\(folder)/\(entry.name)"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            for (name, bytes) in try entry.seeds() {
                try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/seed-\(name)"))
            }
        }
    } catch { fail("\(error)") }
    exit(0)
}

private func fail(_ sentence: String) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(2)
}
