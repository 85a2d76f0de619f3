// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityWire

/// The stores that a request for a stream names.
struct StreamedStoreTests {
    private func list(_ json: String) throws -> [StreamedStore] {
        try StreamedStore.list(WireFormat.json.decode(WireNewStream.self, from: Array(json.utf8)))
    }

    @Test func `a store is asked for whole and as saved, unless the request says otherwise`() throws
    {
        let stores = try list(
            """
            {"stores": [{"identifier": "a"}, {"identifier": "b", "since": "000000000000001f-2", "saved": false},
                {"identifier": "c", "since": "000000000000001f-2", "saved": true, "other": 1}], "other": {}}
            """)
        let position = Position(epoch: 0x1f, revision: 2)
        #expect(
            try stores == [
                StreamedStore(StoreIdentifier("a"), since: nil, isSaved: true),
                StreamedStore(StoreIdentifier("b"), since: position, isSaved: false),
                StreamedStore(StoreIdentifier("c"), since: position, isSaved: true),
            ])
    }

    @Test func `a list of another form is refused, and the sentence names the store`() {
        for (json, fault) in [
            (#"{}"#, "\"stores\" must name 1 to 64 stores"),
            (
                #"{"stores": [{"identifier": "a"}, {"identifier": "a"}]}"#,
                "stores[1]: the store is named twice"
            ),
            (
                #"{"stores": [{"identifier": "a", "since": "x"}]}"#,
                "stores[0]: \"since\" was not issued by this server"
            ),
            (
                #"{"stores": [{}]}"#,
                "stores[0]: a store identifier has 1 to 255 letters, digits, dots, hyphens and "
                    + "underscores, and begins with a letter or digit"
            ),
        ] {
            #expect(throws: WireError(fault)) { try list(json) }
        }
    }
}
