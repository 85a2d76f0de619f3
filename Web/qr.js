// SPDX-License-Identifier: Apache-2.0

/**
 * QR codes (ISO/IEC 18004) of short ASCII texts: byte mode, error correction level M, versions 1 to 10.
 */

import { svg } from './dom.js';

/** For each version: the codewords for error correction of a block, and the number of blocks. */
const corrections = [[10, 1], [16, 1], [26, 1], [18, 2], [24, 2], [16, 4], [18, 4], [22, 4], [22, 5], [26, 5]];

function codewordCount(version) {
    let modules = (16 * version + 128) * version + 64;
    if (version > 1) {
        const alignments = Math.floor(version / 7) + 2;
        modules -= (25 * alignments - 10) * alignments - 55;
    }
    return Math.floor((version < 7 ? modules : modules - 36) / 8);
}

const dataCount = (version) => codewordCount(version) - corrections[version - 1][0] * corrections[version - 1][1];
const countBits = (version) => (version < 10 ? 8 : 16);

// Error correction over GF(2^8) modulo 0x11D.

function product(a, b) {
    let result = 0;
    for (let bit = 7; bit >= 0; bit -= 1) {
        result = (result << 1) ^ ((result >> 7) * 0x11d);
        result ^= ((b >> bit) & 1) * a;
    }
    return result;
}

function divisorOf(degree) {
    const divisor = [...new Array(degree - 1).fill(0), 1];
    let root = 1;
    for (let i = 0; i < degree; i += 1) {
        for (let j = 0; j < degree; j += 1) {
            divisor[j] = product(divisor[j], root);
            if (j + 1 < degree) divisor[j] ^= divisor[j + 1];
        }
        root = product(root, 2);
    }
    return divisor;
}

function remainderOf(data, divisor) {
    const remainder = new Array(divisor.length).fill(0);
    for (const byte of data) {
        const factor = byte ^ remainder.shift();
        remainder.push(0);
        divisor.forEach((one, i) => { remainder[i] ^= product(one, factor); });
    }
    return remainder;
}

/** The codewords, those of all blocks in turn; then the same of the error correction. */
function codewordsOf(bytes, version) {
    const bits = [];
    const append = (number, count) => { for (let bit = count - 1; bit >= 0; bit -= 1) bits.push((number >> bit) & 1); };
    append(4, 4);
    append(bytes.length, countBits(version));
    for (const byte of bytes) append(byte, 8);
    const capacity = 8 * dataCount(version);
    append(0, Math.min(4, capacity - bits.length));
    append(0, (8 - (bits.length % 8)) % 8);
    for (let padding = 0xec; bits.length < capacity; padding ^= 0xec ^ 0x11) append(padding, 8);
    const data = [];
    for (let at = 0; at < bits.length; at += 8) data.push(parseInt(bits.slice(at, at + 8).join(''), 2));

    const [each, count] = corrections[version - 1];
    const length = Math.floor(data.length / count);
    const longer = data.length % count;
    const blocks = [];
    for (let i = 0, at = 0; i < count; i += 1) {
        const size = length + (i < count - longer ? 0 : 1);
        blocks.push(data.slice(at, at + size));
        at += size;
    }
    const divisor = divisorOf(each);
    const ends = blocks.map((block) => remainderOf(block, divisor));
    const result = [];
    for (let i = 0; i <= length; i += 1) for (const block of blocks) if (i < block.length) result.push(block[i]);
    for (let i = 0; i < each; i += 1) for (const end of ends) result.push(end[i]);
    return result;
}

const masks = [
    (x, y) => (x + y) % 2 === 0, (_x, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
    (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
    (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0, (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
    (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** @returns {boolean[][] | null} The rows, true for dark; null for a text that does not fit. */
export function qrCode(text) {
    const bytes = [...text].map((one) => one.charCodeAt(0));
    let version = 1;
    while (version <= 10 && bytes.length > Math.floor((8 * dataCount(version) - 4 - countBits(version)) / 8)) version += 1;
    if (version > 10 || bytes.some((byte) => byte > 0x7f)) return null;
    const size = 17 + 4 * version;
    const rows = Array.from({ length: size }, () => new Array(size).fill(false));
    const isReserved = rows.map((row) => [...row]);
    const reserve = (x, y, isDark) => {
        if (x < 0 || y < 0 || x >= size || y >= size) return;
        rows[y][x] = isDark;
        isReserved[y][x] = true;
    };
    const rings = (x, y, radius, isDark) => {
        for (let dy = -radius; dy <= radius; dy += 1) {
            for (let dx = -radius; dx <= radius; dx += 1) reserve(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
        }
    };
    const format = (mask) => {
        let remainder = mask;
        for (let i = 0; i < 10; i += 1) remainder = (remainder << 1) ^ ((remainder >> 9) * 0x537);
        const bits = ((mask << 10) | remainder) ^ 0x5412;
        for (let at = 0; at < 15; at += 1) {
            const isDark = ((bits >> at) & 1) === 1;
            if (at < 6) reserve(8, at, isDark);
            else if (at < 8) reserve(8, at + 1, isDark);
            else if (at === 8) reserve(7, 8, isDark);
            else reserve(14 - at, 8, isDark);
            if (at < 8) reserve(size - 1 - at, 8, isDark);
            else reserve(8, size - 15 + at, isDark);
        }
        reserve(8, size - 8, true);
    };

    for (let at = 0; at < size; at += 1) {
        reserve(6, at, at % 2 === 0);
        reserve(at, 6, at % 2 === 0);
    }
    for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) rings(x, y, 4, (far) => far !== 2 && far !== 4);
    const places = [];
    if (version > 1) {
        const count = Math.floor(version / 7) + 2;
        const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
        places.push(6);
        for (let i = count - 2; i >= 0; i -= 1) places.push(size - 7 - i * step);
    }
    for (const x of places) {
        for (const y of places) {
            const isFinder = (x === 6 && (y === 6 || y === size - 7)) || (x === size - 7 && y === 6);
            if (!isFinder) rings(x, y, 2, (far) => far !== 1);
        }
    }
    format(0);
    if (version >= 7) {
        let remainder = version;
        for (let i = 0; i < 12; i += 1) remainder = (remainder << 1) ^ ((remainder >> 11) * 0x1f25);
        const bits = (version << 12) | remainder;
        for (let at = 0; at < 18; at += 1) {
            const [near, far] = [Math.floor(at / 3), size - 11 + (at % 3)];
            reserve(near, far, ((bits >> at) & 1) === 1);
            reserve(far, near, ((bits >> at) & 1) === 1);
        }
    }

    // In columns of two modules, from the right, alternately up and down.
    const codewords = codewordsOf(bytes, version);
    let bit = 0;
    for (let right = size - 1; right > 0; right -= 2) {
        if (right === 6) right = 5;
        const isUpward = ((right + 1) & 2) === 0;
        for (let row = 0; row < size; row += 1) {
            const y = isUpward ? size - 1 - row : row;
            for (const x of [right, right - 1]) {
                if (isReserved[y][x] || bit >= 8 * codewords.length) continue;
                rows[y][x] = ((codewords[bit >> 3] >> (7 - (bit & 7))) & 1) === 1;
                bit += 1;
            }
        }
    }

    const apply = (mask) => {
        for (let y = 0; y < size; y += 1) {
            for (let x = 0; x < size; x += 1) if (!isReserved[y][x] && masks[mask](x, y)) rows[y][x] = !rows[y][x];
        }
    };
    const scores = masks.map((_, mask) => {
        apply(mask);
        format(mask);
        const score = penalty(rows);
        apply(mask);
        return score;
    });
    const best = scores.indexOf(Math.min(...scores));
    apply(best);
    format(best);
    return rows;
}

/** How hard a code is to scan. */
function penalty(rows) {
    const size = rows.length;
    const lines = [...rows, ...rows.map((_, x) => rows.map((row) => row[x]))]
        .map((line) => line.map((isDark) => (isDark ? '1' : '0')).join(''));
    let result = 0;
    for (const line of lines) {
        for (const run of line.match(/0{5,}|1{5,}/g) ?? []) result += run.length - 2;
        result += 40 * (line.match(/(?=10111010000|00001011101)/g) ?? []).length;
    }
    for (let y = 0; y + 1 < size; y += 1) {
        for (let x = 0; x + 1 < size; x += 1) {
            const one = rows[y][x];
            if (one === rows[y][x + 1] && one === rows[y + 1][x] && one === rows[y + 1][x + 1]) result += 3;
        }
    }
    const dark = rows.flat().filter(Boolean).length;
    return result + Math.floor(Math.abs(dark * 20 - size * size * 10) / (size * size)) * 10;
}

/** A picture of the code, dark on light in any colours of the page, with the margin that scanners need. */
export function qrPicture(text) {
    const rows = qrCode(text);
    if (!rows) return null;
    const side = rows.length + 8;
    const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join('');
    return svg('svg', { viewBox: `0 0 ${side} ${side}`, class: 'qr', role: 'img', 'aria-label': 'QR code with the link', 'shape-rendering': 'crispEdges' },
        svg('rect', { width: side, height: side, fill: '#fff' }), svg('path', { d: path, fill: '#000' }));
}
