// SPDX-License-Identifier: Apache-2.0

/** The figures of the server's nodes over the last minutes, from metrics in the Prometheus text format. */

/** Five minutes, at one sample in two seconds. */
export const samplesMax = 150;
const nodesMax = 32;

/** The samples of a text: for each name, its labels and values. Lines that are not samples are skipped. */
export function parseMetrics(text) {
    const found = new Map();
    for (const line of text.split('\n')) {
        const [, name, labels, value] = /^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$/.exec(line) ?? [];
        if (!name) continue;
        const pairs = [...(labels ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) =>
            [key, text.replace(/\\(.)/g, (_, one) => (one === 'n' ? '\n' : one))]);
        if (!found.has(name)) found.set(name, []);
        found.get(name).push({ labels: Object.fromEntries(pairs), value: Number(value) });
    }
    return found;
}

const sum = (samples) => samples.reduce((all, { value }) => all + value, 0);

/** The counts of all histograms of a name together, by upper bound. */
function buckets(metrics, name, admits = () => true) {
    const counts = new Map();
    for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
        if (admits(labels)) counts.set(labels.le, (counts.get(labels.le) ?? 0) + value);
    }
    return counts;
}

/**
 * The value below which this share of what was counted between two moments lies, interpolated in its
 * step; null if nothing was counted.
 * @param {Map<string, number>} before
 * @param {Map<string, number>} after Cumulative counts by upper bound, as text.
 */
export function quantile(share, before, after) {
    const steps = [...after].map(([bound, count]) => [bound === '+Inf' ? Infinity : Number(bound), count - (before.get(bound) ?? 0)])
        .sort(([a], [b]) => a - b);
    const all = steps.at(-1)?.[1] ?? 0;
    if (!(all > 0)) return null;
    let [low, under] = [0, 0];
    for (const [bound, count] of steps) {
        if (count >= share * all) {
            // Beyond the last bound, that bound is all that is known.
            if (bound === Infinity) return low;
            return count > under ? low + (bound - low) * (share * all - under) / (count - under) : bound;
        }
        [low, under] = [bound, count];
    }
    return low;
}

/** The figures of one moment, and the counters from which the next ones are made. */
function read(metrics, time) {
    const one = (name) => metrics.get(name)?.[0]?.value ?? null;
    return {
        time, node: metrics.get('ubiquity_node_info')?.[0]?.labels.node ?? 'this server',
        nodes: one('ubiquity_nodes'), isReady: one('ubiquity_ready') === 1, connections: one('ubiquity_connections'),
        listeners: one('ubiquity_listeners'), memory: one('process_resident_memory_bytes'),
        database: one('ubiquity_database_bytes'), waiting: one('ubiquity_listener_bytes'),
        certificate: one('ubiquity_certificate_expires_seconds'), unreadable: one('ubiquity_unreadable_total') ?? 0,
        counters: {
            pushes: one('ubiquity_pushes_total') ?? 0, requests: sum(metrics.get('ubiquity_requests_total') ?? []),
            problems: sum(metrics.get('ubiquity_problems_total') ?? []),
        },
        // What devices ask for; not this page's own requests.
        answering: buckets(metrics, 'ubiquity_request_seconds', ({ route }) => route.startsWith('/v1/stores')),
        pushRate: null, requestRate: null, problemRate: null, p50: null, p99: null,
    };
}

/** Adds what needs an earlier sample of the same node. A restarted node counts from the beginning. */
function compare(sample, last) {
    const seconds = (sample.time - last.time) / 1_000;
    const rate = (name) => Math.max(0, sample.counters[name] - last.counters[name]) / seconds;
    if (!(seconds > 0) || sample.counters.requests < last.counters.requests) return;
    Object.assign(sample, { pushRate: rate('pushes'), requestRate: rate('requests'), problemRate: rate('problems') });
    for (const [name, share] of [['p50', 0.5], ['p99', 0.99]]) {
        const value = quantile(share, last.answering, sample.answering);
        sample[name] = value === null ? null : value * 1_000;
    }
}

/** The samples of each node that has answered, the oldest first. */
export class Figures {
    constructor() { this.nodes = new Map(); }

    /** @param {number} time Milliseconds since 1970. */
    add(text, time) {
        const sample = read(parseMetrics(text), time);
        const samples = this.nodes.get(sample.node) ?? [];
        if (samples.length) compare(sample, samples.at(-1));
        samples.push(sample);
        if (samples.length > samplesMax) samples.shift();
        this.nodes.set(sample.node, samples);
        const begin = time - samplesMax * 2_000;
        for (const [node, { length, [length - 1]: newest }] of this.nodes) {
            if (newest.time < begin) this.nodes.delete(node);
        }
        if (this.nodes.size > nodesMax) this.nodes.delete(this.nodes.keys().next().value);
        return sample;
    }
}
