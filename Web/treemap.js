// SPDX-License-Identifier: Apache-2.0

/** The use of space in a store: a picture with an area for each key, which keys lead through. */

import { dialog, dialogHead, field, fill, h, svg } from './dom.js';
import { keySheet } from './key-sheet.js';
import { bytes, counted, cut, shortKey } from './text.js';

const tilesMax = 80;
const [width, height] = [640, 400];
/** A character's, at the size of the labels. */
const characterWidth = 9;

/**
 * Divides a rectangle into areas in proportion to weights, which descend: the squarified treemap of
 * Bruls, Huizing and van Wijk. Weights are more than 0.
 * @param {number[]} weights
 * @returns {{x: number, y: number, width: number, height: number}[]} In the order of the weights.
 */
export function treemap(weights, width, height) {
    const scale = width * height / weights.reduce((sum, one) => sum + one, 0);
    const areas = weights.map((one) => one * scale);
    const tiles = [];
    let [x, y] = [0, 0];
    for (let start = 0; start < areas.length;) {
        const side = Math.min(width, height);
        let [end, sum, worst] = [start, 0, Infinity];
        // A row grows for as long as its tiles become more like squares.
        while (end < areas.length) {
            const more = sum + areas[end];
            const worse = Math.max(side * side * areas[start] / more ** 2, more ** 2 / (side * side * areas[end]));
            if (worse > worst) break;
            [end, sum, worst] = [end + 1, more, worse];
        }
        const thickness = sum / side;
        let along = 0;
        for (const area of areas.slice(start, end)) {
            const length = area / thickness;
            tiles.push(width < height ? { x: x + along, y, width: length, height: thickness }
                : { x, y: y + along, width: thickness, height: length });
            along += length;
        }
        if (width < height) [y, height] = [y + thickness, height - thickness];
        else [x, width] = [x + thickness, width - thickness];
        start = end;
    }
    return tiles;
}

/**
 * The greatest, and what is left as one.
 * @param {Iterable<[string, number]>} weights
 * @returns {{name: string | null, weight: number, count: number}[]} In descending order, but for the rest.
 */
export function greatest(weights, max = tilesMax) {
    const all = [...weights].filter(([, weight]) => weight > 0).sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
    const found = all.slice(0, max).map(([name, weight]) => ({ name, weight, count: 1 }));
    const rest = all.slice(max);
    if (rest.length) found.push({ name: null, weight: rest.reduce((sum, [, weight]) => sum + weight, 0), count: rest.length });
    return found.sort((a, b) => b.weight - a.weight);
}

/** The keys of each beginning: what is before the first sign that divides a key. */
export function beginnings(keys) {
    const counts = new Map();
    for (const key of keys) {
        const end = key.search(/[^\p{L}\p{N}]/u);
        const name = end > 0 && end + 1 < key.length ? key.slice(0, end + 1) : key;
        counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
}

const ways = [
    ['bytes', 'Bytes per key', (model) => model.keys().map((key) => [key, model.bytes(key)]), bytes],
    ['keys', 'Keys by prefix', (model) => beginnings(model.keys()), (count) => counted(count, 'key')],
];

export const usageDialog = (model) => dialog('box.wide', 'Storage use', (close) => {
    const place = h('div.treemap');
    const choice = h('select', { autofocus: true, onchange: () => draw() }, ways.map(([id, name]) => h('option', { value: id }, name)));
    const draw = () => {
        const [id, , weigh, say] = ways.find(([one]) => one === choice.value);
        const tiles = greatest(weigh(model));
        const total = tiles.reduce((sum, { weight }) => sum + weight, 0);
        fill(place, total ? picture(tiles, total, say, id === 'bytes' ? (key) => keySheet(model, key) : null)
            : h('p.quiet', {}, 'The store has no values that count.'));
    };
    draw();
    return [dialogHead('Storage use', close), field('Show', choice), place];
});

/** One tile has the focus, and the arrows move it. @param {((name: string) => void) | null} open */
function picture(tiles, total, say, open) {
    const rectangles = treemap(tiles.map(({ weight }) => weight), width, height);
    const elements = tiles.map(({ name, weight, count }, i) => {
        const label = name === null ? counted(count, 'other') : shortKey(name);
        const share = weight / total;
        const { x, y, width: w, height: tall } = rectangles[i];
        const room = Math.floor((w - 12) / characterWidth);
        const element = svg('g', { tabindex: i ? -1 : 0, role: open && name !== null ? 'button' : 'img', class: name === null ? 'rest' : `tone${i % 4}`,
            'aria-label': `${label}: ${say(weight)}, ${share < 0.01 ? 'less than 1' : Math.round(share * 100)} percent` },
        svg('title', {}, `${label}: ${say(weight)}`),
        svg('rect', { x: x + 1, y: y + 1, width: Math.max(w - 2, 0.5), height: Math.max(tall - 2, 0.5), rx: Math.min(5, w / 4, tall / 4) }),
        room > 3 && tall > 22 && svg('text', { x: x + 8, y: y + 19 }, cut(label, room)),
        room > 5 && tall > 42 && svg('text', { x: x + 8, y: y + 36, class: 'size' }, cut(say(weight), room + 1)));
        if (open && name !== null) element.addEventListener('click', () => open(name));
        return element;
    });
    const list = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Areas in proportion; the arrow keys lead from one to the next' }, elements);
    list.addEventListener('keydown', (event) => {
        const at = elements.indexOf(document.activeElement);
        const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: elements.length - 1 }[event.key];
        if (event.key === 'Enter' || event.key === ' ') document.activeElement.dispatchEvent(new MouseEvent('click', { bubbles: true }));
        else if (next === undefined) return;
        else if (elements[next]) {
            elements[at]?.setAttribute('tabindex', '-1');
            elements[next].setAttribute('tabindex', '0');
            elements[next].focus();
        }
        event.preventDefault();
    });
    return list;
}
