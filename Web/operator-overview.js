// SPDX-License-Identifier: Apache-2.0

/** How the server is: health, nodes and live charts. */

import { bdi, fill, h } from './dom.js';
import { attempt, whenMilliseconds } from './operator-accounts.js';
import { chart } from './operator-chart.js';
import { Figures, samplesMax } from './operator-metrics.js';
import { bytes, counted, cut, time, visible } from './text.js';

const pollMilliseconds = 2_000;
/** How much the charts show: as little as there is. */
const spans = [60_000, 120_000, samplesMax * pollMilliseconds];
const accountsMax = 1_000;
/** A node that did not answer for this long may be gone. */
const silentMilliseconds = 20_000;

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const rate = (value) => (value >= 100 ? number.format(value) : small.format(value));
const milliseconds = (value) => `${rate(value)} ms`;

const make = () => [
    chart('Pushes a second', [{ name: '', of: ({ pushRate }) => pushRate }], rate),
    chart('Time to answer', [{ name: 'half within', of: ({ p50 }) => p50 },
        { name: '99% within', of: ({ p99 }) => p99, style: 'dashed' }], milliseconds, 'No device has asked for a store in this time.'),
    chart('Subscribers', [{ name: '', of: ({ listeners }) => listeners }], (value) => number.format(value)),
    chart('Memory', [{ name: '', of: ({ memory }) => memory }], bytes),
    chart('Database', [{ name: '', of: ({ database }) => database }], bytes),
    chart('Requests a second', [{ name: '', of: ({ requestRate }) => requestRate }], rate),
];

/** @param {Figures} figures Kept by the page, so that other views do not end them. */
export function overview(server, figures) {
    const status = h('span.status.busy', { role: 'status' }, 'Asking');
    const problem = h('div.slot', { role: 'status' });
    const nodes = h('ul.nodes', { 'aria-label': 'Nodes' });
    const about = h('p.hint');
    const content = h('div.slot');
    const charts = make();
    let isOver = false;
    let timer = 0;

    const draw = () => {
        const end = Date.now();
        const known = [...figures.nodes].map(([name, samples], index) => ({ name: visible(cut(name, 80)), samples, number: index }));
        if (!known.length) return;
        const oldest = Math.min(...known.map(({ samples }) => samples[0].time));
        const span = spans.find((one) => one >= end - oldest) ?? spans.at(-1);
        for (const one of charts) one.show(known, end - span, end);
        fill(nodes, known.map((node) => nodeCard(node, end)));
        const all = Math.max(...known.map(({ samples }) => samples.at(-1).nodes ?? 0));
        about.hidden = !all;
        about.textContent = `${counted(all, 'node is', 'nodes are')} connected to the database. A node knows its own figures only: `
            + `those above are of the ${known.length === 1 ? 'one that has' : `${known.length} that have`} answered this page. Behind a `
            + 'balancer that passes requests to one node after the other, all of them appear.';
    };
    const poll = async () => {
        if (!document.hidden) {
            try {
                const sample = figures.add(await server.get(['metrics']), Date.now());
                if (isOver) return;
                fill(problem);
                status.className = `status ${sample.isReady ? 'good' : 'bad'}`;
                status.textContent = sample.isReady ? 'Ready' : 'Not ready';
            } catch (error) {
                if (isOver) return;
                status.className = 'status away';
                status.textContent = 'No answer';
                fill(problem, h('p.note.bad', {}, error.message));
            }
            draw();
        }
        timer = setTimeout(poll, pollMilliseconds);
    };
    attempt(async () => {
        const { accounts = [] } = await server.get(['accounts'], { limit: accountsMax });
        fill(content, contentCard(accounts));
    }, content);
    draw();
    poll();
    return {
        title: 'Overview',
        element: h('div.view.wide', {}, h('header.head', {}, h('h1', {}, 'Overview'), status), problem, content,
            h('div.charts', {}, charts.map(({ element }) => element)), h('section', {}, h('h2', {}, 'Nodes'), nodes, about)),
        dispose: () => {
            isOver = true;
            clearTimeout(timer);
        },
    };
}

/** What the server has; with no account, how it gets one. */
function contentCard(accounts) {
    if (!accounts.length) {
        return h('section.card', {}, h('h2', {}, 'A new server'), h('p', {}, 'There is no account yet. ',
            h('a', { href: '#/accounts' }, 'Create the first one'), ', and sign a device in with its code. '
            + 'What devices do shows here at once: the charts are of the last minutes, for as long as this page is open.'));
    }
    const devices = accounts.flatMap(({ devices = [] }) => devices);
    const seen = Math.max(0, ...devices.map(({ seenMilliseconds }) => Number(seenMilliseconds ?? 0)));
    const many = accounts.length === accountsMax ? ' or more' : '';
    return h('section.card', {}, h('dl', {}, [['Accounts', `${number.format(accounts.length)}${many}`],
        ['Devices', `${number.format(devices.length)}${many}`], ['Last seen', seen ? whenMilliseconds(seen) : 'no device yet']]
        .map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value)))));
}

function nodeCard({ name, samples, number: index }, end) {
    const newest = samples.at(-1);
    const isSilent = end - newest.time > silentMilliseconds;
    const facts = [
        ['Connections', newest.connections], ['Subscribers', newest.listeners],
        ['Waiting for subscribers', newest.waiting === null ? null : bytes(newest.waiting)],
        ['Memory', newest.memory === null ? null : bytes(newest.memory)],
        ['Database', newest.database === null ? null : bytes(newest.database)],
        ['Refused a second', newest.problemRate === null ? null : rate(newest.problemRate)],
        ['Unreadable records found', newest.unreadable],
        newest.certificate !== null && ['Certificate until', time(new Date(newest.certificate * 1_000))],
    ].filter(Boolean);
    const [kind, word] = isSilent ? ['away', 'Silent'] : newest.isReady ? ['good', 'Ready'] : ['bad', 'Not ready'];
    return h('li.card', {}, h('div.line', {}, h(`span.swatch.c${index % 6}`), h('h3', {}, bdi(name)), h(`span.status.${kind}`, {}, word)),
        h('dl', {}, facts.map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value === null ? 'not known' : String(value))))));
}
