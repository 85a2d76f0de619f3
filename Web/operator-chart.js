// SPDX-License-Identifier: Apache-2.0

/** A chart of figures over the last minutes: one line for each node. */

import { fill, h, svg } from './dom.js';
import { counted } from './text.js';

const [width, height] = [600, 150];
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** The end of a scale: 1, 2 or 5 times a power of ten, so that counts have whole numbers. */
export function scaleEnd(max) {
    if (!(max > 1)) return 1;
    const unit = 10 ** Math.floor(Math.log10(max));
    // Not quite, because of rounding.
    return [1, 2, 5, 10].map((factor) => factor * unit).find((end) => end >= max * 0.999);
}

/**
 * @param {string} title
 * @param {{name: string, of: (sample: any) => number | null, style?: string}[]} lines
 * @param {(value: number) => string} format
 * @param {string} none What is said while no value is known.
 */
export function chart(title, lines, format, none = 'With the next answer of the server.') {
    const now = h('p.now');
    const at = h('p.at');
    const from = h('span');
    const top = h('span');
    const empty = h('p.hint', {}, none);
    const plot = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img' });
    const element = h('figure.card.chart', {}, h('figcaption', {}, h('h2', {}, title), now),
        h('div.plot', {}, h('div.scale', { 'aria-hidden': 'true' }, top, h('span', {}, format(0))), plot, empty),
        h('div.times', { 'aria-hidden': 'true' }, from, at, h('span', {}, 'now')));
    let drawn = { nodes: [], begin: 0, end: 0 };

    const told = (sample) => lines.map(({ name, of }) => [name, of(sample)]).filter(([, value]) => value !== null)
        .map(([name, value]) => `${name ? `${name} ` : ''}${format(value)}`).join(', ') || '–';
    const show = (nodes, begin, end) => {
        drawn = { nodes, begin, end };
        from.textContent = `${counted(Math.round((end - begin) / 60_000), 'minute')} ago`;
        const values = nodes.flatMap(({ samples }) => samples.flatMap((sample) => lines.map(({ of }) => of(sample)))).filter((value) => value !== null);
        empty.hidden = values.length > 0;
        const max = scaleEnd(Math.max(0, ...values));
        top.textContent = format(max);
        const x = ({ time }) => ((time - begin) / (end - begin) * width).toFixed(1);
        const y = (value) => (height - 2 - value / max * (height - 6)).toFixed(1);
        fill(plot, [0.5, 1].map((part) => svg('path', { class: 'grid', d: `M0 ${y(max * part)}H${width}` })),
            nodes.flatMap(({ samples, number }) => lines.map(({ of, style = '' }) => {
                // A line ends where nothing is known, and a value between two such places is a dot.
                let isDown = false;
                const path = samples.map((sample) => {
                    const value = of(sample);
                    const step = value === null ? '' : isDown ? `L${x(sample)} ${y(value)}` : `M${x(sample)} ${y(value)}h0`;
                    isDown = value !== null;
                    return step;
                }).join('');
                return svg('path', { class: `curve c${number % 6} ${style}`, d: path });
            })));
        const newest = nodes.map(({ name, samples }) => [name, told(samples.at(-1))]);
        fill(now, newest.length === 1 ? newest[0][1] : newest.map(([, text], index) =>
            h(`span.node.c${nodes[index].number % 6}`, {}, text)));
        plot.setAttribute('aria-label', `${title}, now ${newest.map(([name, text]) => (newest.length > 1 ? `${name}: ${text}` : text)).join('; ')}`);
    };
    plot.addEventListener('pointermove', ({ clientX }) => {
        const { left, width: shown } = plot.getBoundingClientRect();
        const time = drawn.begin + (clientX - left) / shown * (drawn.end - drawn.begin);
        const near = drawn.nodes.map(({ samples }) => samples.reduce((best, one) =>
            (Math.abs(one.time - time) < Math.abs(best.time - time) ? one : best)));
        at.textContent = near.length ? `${clock.format(near[0].time)}: ${near.map(told).join(' | ')}` : '';
    });
    plot.addEventListener('pointerleave', () => { at.textContent = ''; });
    return { element, show };
}
