// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

extension ServerMetrics.State {
    func addRequests(to text: inout PrometheusText) {
        text.begin("ubiquity_requests_total", .counter, "Requests that were answered.")
        let requests = requests.sorted {
            ($0.key.route, $0.key.method, $0.key.status)
                < ($1.key.route, $1.key.method, $1.key.status)
        }
        for (request, count) in requests {
            text.value(
                "ubiquity_requests_total", count,
                [
                    "method": request.method, "route": request.route,
                    "status": "\(request.status)",
                ])
        }
        text.begin(
            "ubiquity_request_seconds", .histogram,
            "Time from a request's head to its answer; for a stream, to its beginning.")
        for (route, histogram) in requestSeconds.sorted(by: { $0.key < $1.key }) {
            text.histogram("ubiquity_request_seconds", histogram, ["route": route])
        }
        text.begin("ubiquity_problems_total", .counter, "Requests that were refused, by code.")
        for (code, count) in problems.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            text.value("ubiquity_problems_total", count, ["code": code.rawValue])
        }
        text.begin("ubiquity_limits_total", .counter, "Limits that were reached.")
        for limit in EdgeLimit.allCases {
            text.value(
                "ubiquity_limits_total", limits[limit, default: 0], ["limit": limit.rawValue])
        }
    }

    func addPushes(to text: inout PrometheusText) {
        text.begin("ubiquity_pushes_total", .counter, "Decided pushes.")
        text.value("ubiquity_pushes_total", pushes)
        text.begin("ubiquity_transactions_total", .counter, "Their transactions, by outcome.")
        for (outcome, count) in transactions.sorted(by: { $0.key < $1.key }) {
            text.value("ubiquity_transactions_total", count, ["outcome": outcome])
        }
        text.begin("ubiquity_commit_pushes", .histogram, "Pushes committed together.")
        text.histogram("ubiquity_commit_pushes", commitPushes)
        text.begin(
            "ubiquity_commit_seconds", .histogram,
            "Duration of a commit, including its flush to disk.")
        text.histogram("ubiquity_commit_seconds", commitSeconds)
        text.begin(
            "ubiquity_delivery_seconds", .histogram,
            "Time from a commit to a stream's connection.")
        text.histogram("ubiquity_delivery_seconds", deliverySeconds)
        text.begin("ubiquity_connections_total", .counter, "Accepted connections.")
        text.value("ubiquity_connections_total", connections)
        text.begin(
            "ubiquity_unreadable_total", .counter,
            "Requests that needed an unreadable record in the database.")
        text.value("ubiquity_unreadable_total", unreadable)
    }
}
