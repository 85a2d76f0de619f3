// SPDX-License-Identifier: Apache-2.0

extension Dictionary {
    /// The last value of each key. The library's initialiser cannot be compiled for WebAssembly.
    init(last pairs: some Sequence<(Key, Value)>) {
        self.init(minimumCapacity: pairs.underestimatedCount)
        for (key, value) in pairs { updateValue(value, forKey: key) }
    }
}

extension [String: String] {
    /// The value of an environment variable; nil also if it is empty.
    package subscript(nonEmpty name: String) -> String? {
        self[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The folder that an environment variable names; nil if it is not an absolute path. The XDG
    /// specification says of a relative one: invalid, and to be ignored.
    package subscript(folder name: String) -> String? {
        self[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// The user's folder for application data: `XDG_DATA_HOME`, or `.local/share` in `HOME`; nil if
    /// neither is an absolute path.
    package var dataHome: String? {
        self[folder: "XDG_DATA_HOME"] ?? self[folder: "HOME"].map { $0 + "/.local/share" }
    }
}
