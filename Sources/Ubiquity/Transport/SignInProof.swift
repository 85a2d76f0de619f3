// SPDX-License-Identifier: Apache-2.0

/// A person's proof to a server that an account is theirs.
package enum SignInProof: Hashable, Sendable {
    /// A code from the server operator. It works once.
    case code(String)
    /// A JSON Web Token from the identity provider that the server trusts, unchanged.
    case token(String)
}
