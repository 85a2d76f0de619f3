// SPDX-License-Identifier: Apache-2.0

internal import UbiquityServer

extension FuzzEntry {
    /// A server's configuration file.
    static var configuration: FuzzEntry {
        FuzzEntry("configuration", stack: .system, bytesMax: 2_048) {
            Samples.configurations().mapValues { Array($0.utf8) }
        } check: { bytes in
            guard let file = try? ConfigurationFile(bytes) else { return }
            let text = file.settings.map { "\($0.name) = \($0.value)" }.joined(separator: "\n")
            let again = try ConfigurationFile(Array(text.utf8))
            let pairs = [file, again].map { $0.settings.map { [$0.name, $0.value] } }
            try must(pairs[0] == pairs[1], "settings changed when they were written")
            for setting in file.settings {
                try must(!setting.value.contains("\n"), "a value has two lines")
                try must(!setting.name.hasPrefix("-"), "a name is an option")
            }
        }
    }
}
