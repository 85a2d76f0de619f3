// SPDX-License-Identifier: Apache-2.0

internal import UbiquityHTTP

#if os(Linux)
/// The only HTTP client of the process, whose stores share its connections.
let sharedHTTPClient: any HTTPClient = CurlClient.shared
#else
internal import URLSessionHTTP

/// The only HTTP client of the process, whose stores share its connections.
let sharedHTTPClient: any HTTPClient = URLSessionClient.shared
#endif
