// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Ubiquity

struct PrivateFilesTests {
    @Test(arguments: [
        ("h", nil), ("/", nil), ("", nil), ("é", nil), ("home", nil), ("/h", "/"), ("a/b", "a"),
        ("/a/b", "/a"), ("./h", "."),
    ])
    func `a path has the folder above it, however short it is`(path: String, parent: String?) {
        #expect(PrivateFiles.parent(of: path) == parent)
    }
}
