// SPDX-License-Identifier: Apache-2.0

@testable internal import UbiquityServer

/// A row of the table of who may ask what: a route, and the status that each caller gets.
struct AccessRoute: CustomStringConvertible, Sendable {
    let method: String
    let path: String
    let body: String?
    private let statuses: [AccessCaller: Int]

    /// - Parameters:
    ///   - eve: What the other account's device gets that asks for ada's things, or for its own
    ///     where the address names none.
    ///   - rest: Everybody whose credential is good for nothing.
    init(
        _ method: String, _ path: String, rest: Int = 401, eve: Int, elsewhere: Int, here: Int,
        own: Int, operator: Int, body: String? = nil
    ) {
        self.method = method
        self.path = path
        self.body = body
        statuses = [
            .none: rest, .garbage: rest, .forged: rest, .revoked: rest, .expired: rest,
            .oldOperator: rest, .eve: eve, .elsewhere: elsewhere, .here: here, .own: own,
            .operator: `operator`, .folder: `operator`,
        ]
    }

    var description: String { "\(method) \(path)" }

    func status(for caller: AccessCaller) -> Int { statuses[caller] ?? 0 }

    static let all = anybodys + page + pairing + operators + devices

    private static let page = PageFile.all.map { file in
        AccessRoute(
            "GET", file.path, rest: 200, eve: 200, elsewhere: 200, here: 200, own: 200,
            operator: 200)
    }

    private static let anybodys = [
        AccessRoute(
            "GET", "/health/live", rest: 200, eve: 200, elsewhere: 200, here: 200, own: 200,
            operator: 200),
        AccessRoute(
            "GET", "/health/ready", rest: 200, eve: 200, elsewhere: 200, here: 200, own: 200,
            operator: 200),
        AccessRoute(
            "GET", "/v1/config", rest: 200, eve: 200, elsewhere: 200, here: 200, own: 200,
            operator: 200),
        // With a code that is none.
        AccessRoute(
            "POST", "/v1/sign-in", eve: 401, elsewhere: 401, here: 401, own: 401, operator: 401,
            body: #"{"code": "2222-2222-2222"}"#),
        AccessRoute(
            "POST", "/v1/sign-in-requests", rest: 200, eve: 200, elsewhere: 200, here: 200,
            own: 200, operator: 200, body: #"{"deviceName": "new"}"#),
    ]

    /// No device waits with the code in the address.
    private static let pairing = [
        AccessRoute(
            "GET", "/v1/sign-in-requests/{code}", eve: 404, elsewhere: 404, here: 404, own: 404,
            operator: 404),
        AccessRoute(
            "DELETE", "/v1/sign-in-requests/{code}", eve: 404, elsewhere: 404, here: 404,
            own: 404, operator: 404),
        // The operator has to name an account.
        AccessRoute(
            "POST", "/v1/sign-in-requests/{code}/approval", eve: 404, elsewhere: 403, here: 404,
            own: 404, operator: 400, body: forStore),
        AccessRoute(
            "POST", "/v1/codes", eve: 200, elsewhere: 403, here: 200, own: 200, operator: 403,
            body: forStore),
    ]

    private static let forStore = #"{"stores": ["\#(AccessStage.store)"]}"#

    private static func ofOperator(
        _ method: String, _ path: String, _ status: Int = 200, body: String? = nil
    ) -> AccessRoute {
        AccessRoute(
            method, path, eve: 403, elsewhere: 403, here: 403, own: 403, operator: status,
            body: body)
    }

    private static let rename = #"{"name": "other"}"#

    private static let operators = [
        ofOperator("GET", "/v1/accounts"),
        ofOperator("POST", "/v1/accounts", body: #"{"name": "new"}"#),
        // To the name that it has, for other rows name it too.
        ofOperator(
            "PATCH", "/v1/accounts/{name}", body: #"{"name": "\#(AccessStage.account)"}"#),
        ofOperator("GET", "/v1/accounts/{name}/limits"),
        ofOperator("PUT", "/v1/accounts/{name}/limits", body: #"{"keysMax": "2"}"#),
        ofOperator("DELETE", "/v1/accounts/{name}", 204),
        ofOperator("POST", "/v1/accounts/{name}/codes"),
        ofOperator("GET", "/v1/accounts/{name}/export"),
        ofOperator("GET", "/v1/accounts/{name}/devices"),
        ofOperator("DELETE", "/v1/accounts/{name}/sealing", 409),
        ofOperator("PATCH", "/v1/accounts/{name}/devices/{id}", body: rename),
        ofOperator("DELETE", "/v1/accounts/{name}/devices/{id}", 204),
        ofOperator("GET", "/v1/apps"),
        ofOperator("PUT", "/v1/apps/{identifier}", 204),
        ofOperator("DELETE", "/v1/apps/{identifier}", 204),
        ofOperator("GET", "/v1/audit"),
        ofOperator("GET", "/v1/accounts/{name}/stores"),
        ofOperator("GET", "/v1/metrics"),
    ]

    private static func ofDevice(
        _ method: String, _ path: String, eve: Int = 200, elsewhere: Int, here: Int,
        own: Int = 200, body: String? = nil
    ) -> AccessRoute {
        AccessRoute(
            method, path, eve: eve, elsewhere: elsewhere, here: here, own: own, operator: 403,
            body: body)
    }

    private static let push = """
        {"transactions": [{"writes": [
            {"key": "k", "value": {"integer": "1"}, "milliseconds": "1700000000000"}]}]}
        """

    private static let devices = [
        ofDevice("GET", "/v1/account", elsewhere: 200, here: 200),
        // It is not sealed.
        ofDevice("DELETE", "/v1/sealing", eve: 409, elsewhere: 403, here: 403, own: 409),
        // Each account has its own.
        ofDevice(
            "PUT", "/v1/handovers/{id}", eve: 400, elsewhere: 400, here: 400, own: 400,
            body: #"{"box": "AAAA"}"#),
        ofDevice("GET", "/v1/handovers/{id}", eve: 400, elsewhere: 400, here: 400, own: 400),
        ofDevice("DELETE", "/v1/account", eve: 204, elsewhere: 403, here: 403, own: 204),
        ofDevice("GET", "/v1/account/export", elsewhere: 403, here: 403),
        ofDevice("GET", "/v1/sealing", elsewhere: 200, here: 200),
        // No mark.
        ofDevice(
            "PUT", "/v1/sealing", eve: 400, elsewhere: 403, here: 403, own: 400, body: "{}"),
        ofDevice("GET", "/v1/devices", elsewhere: 403, here: 403),
        ofDevice("GET", "/v1/devices/{id}", eve: 404, elsewhere: 404, here: 404),
        ofDevice(
            "PATCH", "/v1/devices/{id}", eve: 404, elsewhere: 404, here: 404, body: rename),
        ofDevice("DELETE", "/v1/devices/{id}", eve: 404, elsewhere: 404, here: 404, own: 204),
        ofDevice("GET", "/v1/stores", elsewhere: 200, here: 200),
        // A cursor that is nobody's: the stream ends at once, whether the store may be read or not.
        ofDevice(
            "POST", "/v1/changes", elsewhere: 200, here: 200,
            body:
                #"{"stores": [{"identifier": "\#(AccessStage.store)", "since": "0123456789abcdef-1"}]}"#
        ),
        ofDevice("GET", "/v1/stores/{identifier}/changes", elsewhere: 403, here: 200),
        ofDevice("GET", "/v1/stores/{identifier}/devices", elsewhere: 403, here: 200),
        ofDevice("GET", "/v1/stores/{identifier}/history", elsewhere: 403, here: 200),
        ofDevice("GET", "/v1/stores/{identifier}/snapshot", elsewhere: 403, here: 200),
        ofDevice(
            "POST", "/v1/stores/{identifier}/changes", elsewhere: 403, here: 200, body: push),
        ofDevice("GET", "/v1/stores/{identifier}/whole", elsewhere: 403, here: 200),
        // No cursor.
        ofDevice(
            "PUT", "/v1/stores/{identifier}/whole", eve: 400, elsewhere: 403, here: 400, own: 400,
            body: "{}"),
    ]
}
