// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

extension Samples {
    static let account = SignedInAccount(
        server: "https://ubiquity.example", account: "0123456789abcdef", accountName: "anna",
        device: device.description, deviceName: "laptop", credential: "ubd_secret")

    static func texts() -> [String: String] {
        [
            "cursor": cursor.text, "cursor-zero": "0000000000000000-0",
            "cursor-most": "ffffffffffffffff-9223372036854775807", "device": device.description,
            "store": "TEAMID.com.example.app_1-2", "key": "Schlüssel 👩🏽‍🚀",
            "code": "7KQ2-M9XD-4TRW", "code-lower": "7kq2m9xd4trw", "account": "Anna's account",
            "address": "https://ubiquity.example:8443/below/", "address-six": "http://[::1]:7717",
            "escaped": "TEAMID%2Ecom%C3%A9%00", "media-type": "Application/JSON; charset=utf-8",
            "ipv4": "192.0.2.17", "ipv6": "2001:db8::ffff:192.0.2.17", "zone": "fe80::1%eth0",
            "range": "2001:db8::/32", "empty": "", "date": "1500-03-01T00:00:00.25+01:00",
            "date-expanded": "-000044-03-15T00:00:00Z",
        ]
    }

    static func headers() -> [String: String] {
        [
            "json": "Authorization: Bearer ubd_secret\nAccept: application/json\n"
                + "Content-Type: application/json; charset=utf-8\n",
            "protobuf": "authorization: bearer  ubd_x \naccept: application/x-protobuf;q=0.9, */*\n"
                + "content-type: application/protobuf\n",
            "stream": "Accept: text/html, text/event-stream;events=binary\n"
                + "Last-Event-ID: \(cursor.text)\n",
            "neither": "Accept: text/html\nAccept: image/png;\nContent-Type: text/plain\n",
        ]
    }

    static func configurations() -> [String: String] {
        [
            "some": "# A comment\n\nport = 7717\n  log-level=info\t\r\n",
            "equals": "database = postgresql://ubiquity@db/ubiquity?target_session_attrs=any\n",
            "repeated": "trusted-proxy = ::1\ntrusted-proxy = 10.0.0.0/8",
            "mistakes": "= 1\nport\nPort = 1\nport =\n",
        ]
    }

    static func accounts() -> [String: String] {
        let account = """
            {"account": "0123456789abcdef", "accountName": "anna", "credential": "ubd_secret",
            "device": "0000000000000007", "deviceName": "laptop",
            "server": "https://ubiquity.example"}
            """
        return [
            "signed-in": """
            {"folder": "2", "folders": {"0123456789abcdef": "2", "f": "1"}, "signedIn": \(account)}
            """,
            "signed-out": "{\"folder\": \"1\", \"folders\": {}}",
            "null": "{\"folder\": \"1\", \"folders\": {\"a\": \"x\"}, \"signedIn\": null}",
            "incomplete": "{\"folder\": 1}",
        ]
    }

    static func entitlements() -> [String: String] {
        let head = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
            "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            """
        func file(_ value: String) -> String {
            head + "<plist version=\"1.0\"><dict>"
                + "<key>com.apple.developer.ubiquity-kvstore-identifier</key>"
                + "\(value)</dict></plist>"
        }
        return [
            "named": file("<string>TEAMID.com.example.app</string>"),
            "variable": file("<string>$(TeamIdentifierPrefix)$(CFBundleIdentifier)</string>"),
            "other-type": file("<array><true/></array>"),
        ]
    }
}
