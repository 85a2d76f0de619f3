// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import UbiquityCore

/// The responses to identity provider tokens that are refused.
extension Problem {
    static let tokenMalformed = Problem(
        .unauthorized, "token-invalid",
        "What was sent is no JSON Web Token with a signature. Send the identity provider's as it is."
    )
    static let tokenForged = Problem(
        .unauthorized, "token-invalid",
        "The token is not signed by a key of the identity provider that this server trusts.")
    static let tokensNotTaken = Problem(
        .unauthorized, "token-not-taken",
        "This server takes no tokens of identity providers. Sign in by a code.")

    /// Details for the holder of a valid signature: an app's developer.
    init(_ refusal: IdentityRefusal) {
        let (code, detail) =
            switch refusal {
            case .otherIssuer:
                (
                    "token-invalid",
                    "The token was issued by another provider than this server trusts."
                )
            case .otherAudience: ("token-invalid", "The token is made out for another audience.")
            case .endless: ("token-invalid", "The token never expires, and is not taken therefore.")
            case .expired: ("token-expired", "The token has expired. Get a new one.")
            case .notYetValid: ("token-invalid", "The token is not valid yet.")
            case .noSubject:
                (
                    "token-invalid",
                    "The claim that names the account must be a text of 1 to "
                        + "\(IdentityRule.subjectBytesMax) bytes without control characters."
                )
            }
        self.init(.unauthorized, code, detail)
    }
}
