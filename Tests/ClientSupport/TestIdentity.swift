// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// TLS identities of the tests' own, which nobody trusts but they. The certificates are signed by
/// ``authority`` but for one, and hold until 2126 but for one.
package struct TestIdentity: Sendable {
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// The certificate of the authority that signed them.
    package static let authority = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUMtwY9KfTfALUnttYgdaIo5z+3QgwCgYIKoZIzj0EAwIw
        IjEgMB4GA1UEAwwXVWJpcXVpdHkgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMTcy
        NjU4WhgPMjEyNjEwMjgxNzI2NThaMCIxIDAeBgNVBAMMF1ViaXF1aXR5IHRlc3Qg
        YXV0aG9yaXR5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYT654dDWy/qwjHA3
        NcYaliromjDKdaeGFkXaCA56aFbOdmlGCZb33whxhBbN1kjiAeVXcMMnOdhIrNDs
        LJoVKKNTMFEwHQYDVR0OBBYEFDaHCfrMSfS6fiPSjcRQpKxoSP8xMB8GA1UdIwQY
        MBaAFDaHCfrMSfS6fiPSjcRQpKxoSP8xMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
        zj0EAwIDRwAwRAIgEf+XilgssD5Xs2bkzZSxAa+PHlt2riql04jvxyc6RpUCICny
        nRoPp6TnCp9wa6gP6WVpY59pfBYUF7FKGcIn4NUz
        -----END CERTIFICATE-----
        """

    /// For `localhost` and 127.0.0.1.
    package static let local = TestIdentity(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBszCCAVqgAwIBAgIUQnXvq25QaPq+Bom6bcUdEIDXUjMwCgYIKoZIzj0EAwIw
            IjEgMB4GA1UEAwwXVWJpcXVpdHkgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMTcy
            NjU4WhgPMjEyNjEwMjgxNzI2NThaMBAxDjAMBgNVBAMMBWxvY2FsMFkwEwYHKoZI
            zj0CAQYIKoZIzj0DAQcDQgAE4H1DjRHqn118G0AJEyZzBbGYqLC5gxDHE05I6Flt
            523ngooG1XDWfQNZ9YA8AyNxjQ+PiaLzte1dTNjKrVSJIqN+MHwwGgYDVR0RBBMw
            EYIJbG9jYWxob3N0hwR/AAABMAkGA1UdEwQCMAAwEwYDVR0lBAwwCgYIKwYBBQUH
            AwEwHQYDVR0OBBYEFHIdmWduktW+pE8wsFCH9ZQk+ZUOMB8GA1UdIwQYMBaAFDaH
            CfrMSfS6fiPSjcRQpKxoSP8xMAoGCCqGSM49BAMCA0cAMEQCIDYN/ZvKk20cArWz
            pYmfc96Nzv/+MKfeAigL4liodmatAiBzBLJzFVWTCQHhPnEjVkFkXGUIiWgXfo8T
            6CFJZD47ug==
            -----END CERTIFICATE-----
            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9DMVAgqz1ojGm4C+
            BTqD9OCvYhgeyJ44vwwHKVCqWIahRANCAATgfUONEeqfXXwbQAkTJnMFsZiosLmD
            EMcTTkjoWW3nbeeCigbVcNZ9A1n1gDwDI3GND4+JovO17V1M2MqtVIki
            -----END PRIVATE KEY-----
            """)

    /// For this machine, too, and signed by itself.
    package static let own = TestIdentity(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBijCCATKgAwIBAgIUOpn3JQ2LI3fFwWtTfxTTHgQAqz0wCgYIKoZIzj0EAwIw
            DjEMMAoGA1UEAwwDb3duMCAXDTI2MTEyMTE3NDg0OVoYDzIxMjYxMDI4MTc0ODQ5
            WjAOMQwwCgYDVQQDDANvd24wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARfDJXI
            pFJtM5JFGyqBhYcOqBNd8+lSKqJx4QL8sDi6ecwGi4EVQ9g4r61cVf/5h4T/qUKw
            ARIvL73JbxXEsJxQo2wwajAdBgNVHQ4EFgQURFrvNPO38ipfTGcmhPHKO2obYcww
            HwYDVR0jBBgwFoAURFrvNPO38ipfTGcmhPHKO2obYcwwGgYDVR0RBBMwEYIJbG9j
            YWxob3N0hwR/AAABMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDRgAwQwIgReAL
            g5+hRuLhGQkuJqXyTvP5m6WG7sJ8K9DdV5F+28QCHyKt4MH7ZuXO2LghG8MHme6H
            VB9H3mVH51nRmWNXmWM=
            -----END CERTIFICATE-----
            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOwaPAnXmN36al+qJ
            Z+CxXyTnIEgn+ssMU+c7/bCj7z+hRANCAARfDJXIpFJtM5JFGyqBhYcOqBNd8+lS
            KqJx4QL8sDi6ecwGi4EVQ9g4r61cVf/5h4T/qUKwARIvL73JbxXEsJxQ
            -----END PRIVATE KEY-----
            """)

    /// The pin of ``own``.
    package static let ownPin = "sha256//VGzUmPkpmNZllj9C+pHQ12tzbk84no+SWd1rNJsBUDY="

    /// For another name.
    package static let elsewhere = TestIdentity(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBujCCAV+gAwIBAgIUQnXvq25QaPq+Bom6bcUdEIDXUjUwCgYIKoZIzj0EAwIw
            IjEgMB4GA1UEAwwXVWJpcXVpdHkgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMTcy
            NjU4WhgPMjEyNjEwMjgxNzI2NThaMBQxEjAQBgNVBAMMCWVsc2V3aGVyZTBZMBMG
            ByqGSM49AgEGCCqGSM49AwEHA0IABEQeb1hzVaew0CEBXcKPH8VlUOuwHbKOh75+
            qDddWSSuNY+760y2/MgXmPXGAKokrwvvewlRsnZmI3qXBfVYoxGjfzB9MBsGA1Ud
            EQQUMBKCEHViaXF1aXR5LmV4YW1wbGUwCQYDVR0TBAIwADATBgNVHSUEDDAKBggr
            BgEFBQcDATAdBgNVHQ4EFgQUf1xNRwYCq1arcsLawiIeq7QZiFYwHwYDVR0jBBgw
            FoAUNocJ+sxJ9Lp+I9KNxFCkrGhI/zEwCgYIKoZIzj0EAwIDSQAwRgIhAKrq0Ncg
            gC1EmnHK4L+M0HyvNtG+02S7yiZrBAIeMMwwAiEA4RrOP1YsWbnW1mHhVR09//fh
            K02Z+yEJkrO5bLllkyA=
            -----END CERTIFICATE-----
            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgD3ynZmm1iu1d77/7
            W6LLNQfNMlBcPiXq77BinIYhZXehRANCAAREHm9Yc1WnsNAhAV3Cjx/FZVDrsB2y
            joe+fqg3XVkkrjWPu+tMtvzIF5j1xgCqJK8L73sJUbJ2ZiN6lwX1WKMR
            -----END PRIVATE KEY-----
            """)

    /// For this machine, until 2021.
    package static let expired = TestIdentity(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBjTCCATKgAwIBAgIBATAKBggqhkjOPQQDAjAiMSAwHgYDVQQDDBdVYmlxdWl0
            eSB0ZXN0IGF1dGhvcml0eTAeFw0yMDAxMDEwMDAwMDBaFw0yMTAxMDEwMDAwMDBa
            MBIxEDAOBgNVBAMMB2V4cGlyZWQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQl
            tFqCIKrJKB+ZQnWrdhQOuSP8ICRg2MQL0gyIWtjP1dIvrpBgKYDxuOAfvk9rlfIn
            TAOsObv9Dsr81xIDtBxJo2kwZzAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEw
            CQYDVR0TBAIwADAdBgNVHQ4EFgQU4TRzm3rUP4mTRW19pCaUTC6bp4MwHwYDVR0j
            BBgwFoAUNocJ+sxJ9Lp+I9KNxFCkrGhI/zEwCgYIKoZIzj0EAwIDSQAwRgIhAPaO
            oiVhPbn6JKXKYfhKCiktVnH6YVpgj4xHNHi8W5PpAiEAtuORuYQRmNO3dqev4a9a
            sb2z8Cccibon7iaD9zMhaUI=
            -----END CERTIFICATE-----
            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGM91ociQZ9FEcqfq
            8wxPRxTRRjGgcokeEcGHWwNoqWihRANCAAQltFqCIKrJKB+ZQnWrdhQOuSP8ICRg
            2MQL0gyIWtjP1dIvrpBgKYDxuOAfvk9rlfInTAOsObv9Dsr81xIDtBxJ
            -----END PRIVATE KEY-----
            """)

    /// Puts them into files, the key for its owner alone.
    /// - Throws: What the file system does.
    package func write(certificate: String, key: String) throws {
        try replace(certificate, self.certificate, rights: 0o644)
        try replace(key, self.key, rights: 0o600)
    }

    private func replace(_ path: String, _ text: String, rights: Int) throws {
        let new = path + ".new"
        try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: new))
        let manager = FileManager.default
        try manager.setAttributes([.posixPermissions: rights], ofItemAtPath: new)
        if manager.fileExists(atPath: path) { try manager.removeItem(atPath: path) }
        try manager.moveItem(atPath: new, toPath: path)
    }
}
