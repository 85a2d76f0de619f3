// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension Samples {
    static func tokens() -> [String: String] {
        let claims = #"{"iss":"https://id.example","aud":["app"],"sub":"u1","exp":1795000000.5}"#
        func token(_ header: String) -> String {
            "\(base64(header)).\(base64(claims)).\(base64(String(repeating: "s", count: 64)))\n"
        }
        let number = base64(String(repeating: "n", count: 32))
        let elliptic =
            #"{"kty":"EC","crv":"P-256","kid":"e","use":"sig","x":"\#(number)","y":"\#(number)"}"#
        let rsa = #"{"kty":"RSA","kid":"r","alg":"RS256","n":"\#(number)","e":"AQAB"}"#
        let edwards = #"{"kty":"OKP","crv":"Ed25519","kid":"o","x":"\#(number)"}"#
        let secret = #"{"kty":"oct","k":"\#(number)"}"#
        let all = #"{"keys":[\#(elliptic),\#(rsa),\#(edwards),\#(secret)]}"#
        return [
            "elliptic": token(#"{"alg":"ES256","kid":"e","typ":"JWT"}"#) + all,
            "rsa": token(#"{"alg":"RS256","kid":"r"}"#) + all,
            "only-key": token(#"{"alg":"EdDSA"}"#) + #"{"keys":[\#(edwards)]}"#,
            "none": token(#"{"alg":"none"}"#) + all,
            "critical": token(#"{"alg":"EdDSA","kid":"o","crit":["b64"],"b64":false}"#) + all,
            "no-keys": token("{}") + #"{"keys":[{}]}"#,
        ]
    }

    private static func base64(_ text: String) -> String {
        Data(text.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }
}
