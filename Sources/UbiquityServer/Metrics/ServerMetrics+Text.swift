// SPDX-License-Identifier: Apache-2.0

internal import UbiquityWire

extension ServerMetrics {
    /// Current values, as opposed to counters.
    struct Gauges: Sendable {
        var connections: Int
        var listeners: Int
        var listenerBytes: Int
        var answerBytes: Int
        var bodyBytes: Int
        /// This process among those of the same machine and others.
        var node: String
        /// Nil if the database does not say.
        var databaseBytes: Int?
        /// The nodes that share the database; nil if it is this one's own.
        var nodes: Int?
        /// Nil if the system does not provide it.
        var memoryBytes: Int?
        /// Seconds since 1970; nil without TLS.
        var certificateExpires: Int64?
        var certificateFailures: Int?
        var isReady: Bool
    }

    /// All metrics, for Prometheus.
    func text(_ gauges: Gauges) -> String {
        let state = current
        var text = PrometheusText()
        state.addRequests(to: &text)
        state.addPushes(to: &text)
        gauges.add(to: &text)
        return text.text
    }
}

extension ServerMetrics.State {
    fileprivate func addRequests(to text: inout PrometheusText) {
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

    fileprivate func addPushes(to text: inout PrometheusText) {
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
            "Time from a commit to a listener's connection.")
        text.histogram("ubiquity_delivery_seconds", deliverySeconds)
        text.begin("ubiquity_connections_total", .counter, "Accepted connections.")
        text.value("ubiquity_connections_total", connections)
        text.begin(
            "ubiquity_unreadable_total", .counter,
            "Requests that needed an unreadable record in the database.")
        text.value("ubiquity_unreadable_total", unreadable)
    }
}

extension ServerMetrics.Gauges {
    fileprivate func add(to text: inout PrometheusText) {
        func gauge(_ name: String, _ help: String, _ value: Int?) {
            guard let value else { return }
            text.begin(name, .gauge, help)
            text.value(name, value)
        }
        text.begin("ubiquity_node_info", .gauge, "The name of this node: machine and process.")
        text.value("ubiquity_node_info", 1, ["node": node])
        gauge("ubiquity_nodes", "Nodes that are connected to the database.", nodes)
        gauge("ubiquity_connections", "Connections that are open.", connections)
        gauge("ubiquity_listeners", "Streams that are open.", listeners)
        gauge("ubiquity_listener_bytes", "Bytes waiting for listeners.", listenerBytes)
        gauge("ubiquity_answer_bytes", "Bytes waiting in connections.", answerBytes)
        gauge("ubiquity_body_bytes", "Bodies that are being read.", bodyBytes)
        gauge("ubiquity_database_bytes", "Size of the database and its log.", databaseBytes)
        gauge("ubiquity_ready", "1 if the server is ready, as in /health/ready.", isReady ? 1 : 0)
        gauge(
            "ubiquity_certificate_expires_seconds",
            "Time when the certificate expires, since 1970.",
            certificateExpires.map { Int($0) })
        if let certificateFailures {
            let name = "ubiquity_certificate_reloads_failed_total"
            text.begin(name, .counter, "Changed TLS files that could not be used.")
            text.value(name, certificateFailures)
        }
        gauge("process_resident_memory_bytes", "Memory of the process.", memoryBytes)
    }
}
