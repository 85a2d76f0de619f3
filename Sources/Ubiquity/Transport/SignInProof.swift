// SPDX-License-Identifier: Apache-2.0

/// By what a person shows to a server that an account is theirs.
package enum SignInProof: Hashable, Sendable {
    /// From who runs the server. It works once.
    case code(String)
    /// From the identity provider that the server trusts: a JSON Web Token, as it is.
    case token(String)
}
