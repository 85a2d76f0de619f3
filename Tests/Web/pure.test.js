// SPDX-License-Identifier: Apache-2.0

/** The pages without a browser: files, areas, stores, figures, and what they believe of an identity provider. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';

// As the server has them: the client in a folder beside.
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ubiquity-page-'));
after(() => rmSync(folder, { recursive: true }));
cpSync(join(root, 'Web'), folder, { recursive: true });
cpSync(join(root, 'Clients/JavaScript/src'), join(folder, 'client'), { recursive: true });
writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
const load = (name) => import(join(folder, name));
const { FileError, storesOf, valuesMax } = await load('import-file.js');
const { beginnings, greatest, treemap } = await load('treemap.js');
const { Model, distinct, sentenceOf } = await load('model.js');
const { InputError, readReal } = await load('editor.js');
const { contains } = await load('text.js');
const { Figures, parseMetrics, quantile } = await load('operator-metrics.js');
const { IdentityError, challengeOf, checkedEndpoints, codeOf, providerOf, requestAddress, tokenOf } = await load('identity.js');

const bytes = (text) => new TextEncoder().encode(text);
/** The only store of a file. */
const values = (data) => {
  const stores = storesOf(typeof data === 'string' ? bytes(data) : data);
  assert.equal(stores.length, 1);
  assert.equal(stores[0].name, null);
  return Object.fromEntries(stores[0].values);
};
const refuses = (data, reason) =>
  assert.throws(() => storesOf(typeof data === 'string' ? bytes(data) : data), (error) => error instanceof FileError && reason.test(error.message));
const plist = (content) => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">${content}</plist>\n`;
const dict = (content) => plist(`<dict><key>k</key>${content}</dict>`);

/** The same as Python's own library writes it: [in XML, in binary]. */
const python = (expression, ...formats) => formats.map((format) => new Uint8Array(execFileSync('python3', ['-c', `
import datetime, plistlib, sys
sys.stdout.buffer.write(plistlib.dumps(${expression}, fmt=plistlib.FMT_${format}))`])));

test('a property list in either format has the values that another program wrote', () => {
  const expression = `{"text": "a<&>'\\"é😀", "empty": "", "yes": True, "no": False, "small": -5, "large": 2**63 - 1, "unsigned": 2**64 - 1,
    "least": -2**63, "half": 0.5, "one": 1.0, "when": datetime.datetime(2026, 11, 21, 10, 0, 1), "data": bytes(range(256)),
    "list": [1, [], {}], "inner": {"b": {"c": "d"}, "a": 1}, "__proto__": "own", "many": list(range(300))}`;
  for (const data of python(expression, 'XML', 'BINARY')) {
    const found = values(data);
    assert.deepEqual(Object.entries(found).find(([key]) => key === '__proto__')[1], { string: 'own' });
    assert.deepEqual({ ...found, many: found.many.array.values.length }, { ...found,
      text: { string: 'a<&>\'"é😀' }, empty: { string: '' }, yes: { boolean: true }, no: { boolean: false }, small: { integer: '-5' },
      large: { integer: '9223372036854775807' }, unsigned: { unsigned: '18446744073709551615' }, least: { integer: '-9223372036854775808' },
      half: { real: 0.5 }, one: { real: 1 }, when: { date: 816_948_001 },
      data: { data: Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString('base64') },
      list: { array: { values: [{ integer: '1' }, { array: {} }, { dictionary: {} }] } },
      inner: { dictionary: { entries: [{ key: 'a', value: { integer: '1' } },
        { key: 'b', value: { dictionary: { entries: [{ key: 'c', value: { string: 'd' } }] } } }] } },
      many: 300 });
  }
});

test('the finer points of XML are read as they are meant', () => {
  assert.deepEqual(values(dict('<string>a\r\nb&#13;&#x1F600;<!-- no --><![CDATA[<b>&amp;]]></string>')), { k: { string: 'a\nb\r😀<b>&amp;' } });
  assert.deepEqual(values(dict('<integer> 0xff </integer>')), { k: { integer: '255' } });
  assert.deepEqual(values(dict('<real>-Infinity</real>')), { k: { real: '-Infinity' } });
  assert.deepEqual(values(dict('<real>-0.0</real>')), { k: { real: '-0' } });
  assert.deepEqual(values(dict('<string/>')), { k: { string: '' } });
  assert.deepEqual(values(`\ufeff${plist('<dict/>')}`), {});
});

test('a file that is not what it seems is refused with a reason', () => {
  for (const [data, reason] of [
    ['', /not a property list/], ['hello', /text outside/], [plist(''), /not a property list/], [plist('<array/>'), /not a dictionary/],
    [dict(''), /key without a value/], [dict('<string>a</string><string>b</string>'), /value without a key/], [dict('<set/>'), /do not know: set/],
    [dict('<integer>1.5</integer>'), /invalid integer/], [dict('<integer>18446744073709551616</integer>'), /64 bits/],
    [dict('<date>tomorrow</date>'), /invalid date/], [dict('<data>!</data>'), /base64/], [dict('<string>&lol;</string>'), /entity/],
    [dict('<string>&#xD800;</string>'), /entity/], [dict('<string>&amp</string>'), /entity/], [dict('<string>a'), /<\/dict> where/],
    ['<!DOCTYPE plist [<!ENTITY a "b">]><plist><dict/></plist>', /cannot be read/],
    [dict('<true/><key>k</key><true/>'), /key twice/], [dict('<constructor/>'), /do not know/], [plist('<dict><array></dict>'), /where <\/array>/],
    ['<plist><dict>', /not complete/], ['{"a": nul', /not JSON/], ['[1]', /not an object/], ['{"a": null}', /null is not/],
    ['{"a": 12345678901234567890}', /so large a number/], ['{"a": {"integer": "x"}}', /value of a is not one/],
    ['{"a": 1, "a": 2}', /the key a twice/], ['{"a": [{"b": "\\\\", "c\\"": {}, "c\\u0022" : 1}]}', /the key c" twice/],
    ['{"a": "\\ud800"}', /Unicode/], ['{"a": {"\\ud800": 1, "b": 2}}', /Unicode/],
  ]) refuses(data, reason);
  refuses(new Uint8Array([0x7b, 0xff]), /UTF-8/);
});

test('the files of the vectors are taken and refused as by the command line', () => {
  const { cases, refused } = JSON.parse(readFileSync(join(root, 'Protocol/vectors/imports.json'), 'utf8'));
  const data = ({ xml, json, bytes: base64 }) => (base64 ? new Uint8Array(Buffer.from(base64, 'base64')) : bytes(xml ?? json));
  for (const one of cases) {
    assert.deepEqual(values(data(one)), Object.fromEntries((one.value.dictionary.entries ?? []).map(({ key, value }) => [key, value])), JSON.stringify(one));
  }
  for (const one of refused) {
    assert.throws(() => storesOf(data(one)), FileError, one.why);
  }
});

test('a key may be in several objects, and look like the end of one', () => {
  const text = '{"a": {"b": {"a": "}"}, "\\\\\\"{": ["b", {"b": ":"}, {"b": 1}]}, "b": "a"}';
  assert.deepEqual(Object.keys(values(text)), ['a', 'b']);
});

test('JSON is taken with types or without', () => {
  assert.deepEqual(values('{"a": {"integer": "5"}, "b": {"real": 1}}'), { a: { integer: '5' }, b: { real: 1 } });
  assert.deepEqual(values(' {"a": 5, "b": 1.5, "c": [true, {"d": ""}]}'), { a: { integer: '5' }, b: { real: 1.5 },
    c: { array: { values: [{ boolean: true }, { dictionary: { entries: [{ key: 'd', value: { string: '' } }] } }] } } });
});

test('nothing in a file is without end', () => {
  refuses(dict(`${'<array>'.repeat(600)}${'</array>'.repeat(600)}`), /512 levels/);
  refuses(`{"a": ${'['.repeat(5_000)}${']'.repeat(5_000)}}`, /512 levels/);
  refuses(dict(`<array>${'<true/>'.repeat(valuesMax)}</array>`), /values/);
  refuses(`{"a": [${'0,'.repeat(valuesMax)}0]}`, /values/);
  refuses(new Uint8Array(2 ** 26 + 1), /64 MB/);
  values(dict(`${'<array>'.repeat(511)}${'</array>'.repeat(511)}`));
  // Twelve arrays, each with a hundred references to the next: a trillion values in two kilobytes.
  const object = (i) => [0xaf, 0x10, 100, ...Array(100).fill(i + 1)];
  const objects = [[0xd1, 1, 2], [0x51, 0x6b], ...Array.from({ length: 12 }, (_, i) => object(i + 2)), [0x09]];
  refuses(assembled(objects), /values/);
  // And one that contains itself.
  refuses(assembled([[0xd1, 1, 0], [0x51, 0x6b]]), /damaged/);
});

/** A binary property list of objects. */
function assembled(objects) {
  const content = [...bytes('bplist00')];
  const offsets = objects.map((one) => content.push(...one) - one.length);
  const table = content.length;
  for (const one of offsets) content.push(one >> 8, one & 255);
  const eight = (number) => [0, 0, 0, 0, number >>> 24, number >>> 16 & 255, number >>> 8 & 255, number & 255];
  return new Uint8Array([...content, 0, 0, 0, 0, 0, 0, 2, 1, ...eight(objects.length), ...eight(0), ...eight(table)]);
}

test('a damaged binary property list is refused, whatever is wrong with it', () => {
  const [data] = python('{"a": [1, 2.5, "é", b"xy", {"b": True}], "c": 2**64 - 1}', 'BINARY');
  let refused = 0;
  const attempt = (changed) => {
    try {
      storesOf(changed);
    } catch (error) {
      assert.ok(error instanceof FileError, error.stack);
      refused += 1;
    }
  };
  for (let at = 0; at < data.length; at += 1) {
    attempt(data.subarray(0, at));
    for (const byte of [0, 1, 15, 127, 128, 255, data[at] ^ 16]) attempt(Uint8Array.from(data, (one, i) => (i === at ? byte : one)));
  }
  assert.ok(refused > data.length);
});

test('a key whose value is none is named, and the others are there', () => {
  const [binary] = python('{"a": 1, "odd": {"x": [plistlib.UID(5)]}, "z": [2]}', 'BINARY');
  const xml = (odd) => bytes(plist(`<dict><key>a</key><integer>1</integer><key>odd</key>${odd}<key>z</key><array><integer>2</integer></array></dict>`));
  const odd = ['<dict><key>x</key><array><uid>5<b/></uid><true/></array></dict>', '<integer>x</integer>', '<real>x</real>', '<true>x</true>',
    '<date>x</date>', '<data>x</data>', '<set/>', '<array><set><string>x</string></set></array>', '<dict><key>x</key><true/><key>x</key><true/></dict>',
    `${'<array>'.repeat(600)}${'</array>'.repeat(600)}`].map(xml);
  for (const data of [binary, bytes('{"a": 1, "odd": {"x": null}, "z": [2]}'), ...odd]) {
    const faults = new Map();
    const [{ values: found }] = storesOf(data, faults);
    assert.deepEqual([...found], [['a', { integer: '1' }], ['z', { array: { values: [{ integer: '2' }] } }]]);
    assert.deepEqual([...faults.keys()], ['odd']);
    assert.throws(() => storesOf(data), FileError);
  }
});

test('a file that is no property list is refused as a whole, whatever its keys are', () => {
  const refusesAll = (text, reason) => assert.throws(() => storesOf(bytes(text), new Map()), reason);
  refusesAll(plist('<array><set/></array>'), /do not know: set/);
  refusesAll(plist('<set/>'), /do not know: set/);
  refusesAll(dict('<integer>x</integer><true/>'), /value without a key/);
  refusesAll(dict('<set></array>'), /where <\/set> should be/);
  refusesAll(dict('<set>'), /where <\/set> should be/);
  refusesAll(dict(`<set/><key>l</key><array>${'<true/>'.repeat(valuesMax)}</array>`), /more than 1,048,576 values/);
});

test('a key without a value does not make typed values dictionaries', () => {
  const faults = new Map();
  const [{ values: found }] = storesOf(bytes('{"theme": {"string": "dark"}, "n": {"integer": "5"}, "bad": null}'), faults);
  assert.deepEqual([...found], [['theme', { string: 'dark' }], ['n', { integer: '5' }]]);
  assert.deepEqual([...faults.keys()], ['bad']);
});

test('a number is the one that was typed, or refused', () => {
  for (const [text, real] of [['12.5', 12.5], ['12,5', 12.5], ['0,125', 0.125], ['-1234,500', -1234.5], [' 1e3 ', 1000], ['.5', 0.5], ['12,5000', 12.5],
    ['-0', '-0'], ['0e-999', 0], ['NaN', 'NaN'], ['-Infinity', '-Infinity']]) assert.deepEqual(readReal(text), { real }, text);
  for (const [text, reason] of [['12,500', /Write 12500, or 12\.500/], ['-1,234,567', /Write -1234567, or -1\.234567/], ['1,234.5', /Enter a number/],
    ['', /Enter/], ['seven', /Enter/], ['infinity', /Enter/], ['1e999', /too large/], ['1e-999', /too small/], ['1,2,3', /Enter/]]) {
    assert.throws(() => readReal(text), (error) => error instanceof InputError && reason.test(error.message), text);
  }
});

test('a sentence for people begins with a capital letter, or with a name as it is', () => {
  for (const [text, sentence, ...names] of [
    ['the disk is full', 'The disk is full.'], ['full', 'Full.'], ['volume: this is too large', 'volume: this is too large.'],
    ['my volume: this is too large', 'my volume: this is too large.', 'my volume'], ['notes is closed', 'notes is closed.', 'notes'],
    ['team.app is closed', 'team.app is closed.'], ['https://ubiquity.example answered 404', 'https://ubiquity.example answered 404.'],
  ]) assert.equal(sentenceOf(new Error(text), names), sentence);
  // A reason is never empty.
  assert.equal(sentenceOf(new DOMException('', 'QuotaExceededError')), 'QuotaExceededError.');
  assert.equal(sentenceOf(''), 'The reason is not known.');
});

test('devices of one name are told apart', () => {
  const devices = [{ id: '0123456789abcdef', name: 'Chrome on Linux' }, { id: 'fedcba9876543210', name: 'Chrome on Linux' }, { id: '1', name: 'laptop' }];
  assert.deepEqual(distinct(devices).map(({ name }) => name), ['Chrome on Linux (01234567)', 'Chrome on Linux (fedcba98)', 'laptop']);
});

test('a text is found at any depth of a value', () => {
  const wire = { array: { values: [{ dictionary: { entries: [{ key: 'Name', value: { string: 'Ada Lovelace' } }] } }, { integer: '42' }] } };
  for (const text of ['lovelace', 'name', '42']) assert.ok(contains(wire, text), text);
  assert.ok(!contains(wire, 'babbage'));
});

test('the export of an account has its stores, and is refused where it is none', () => {
  const file = (change = (text) => text) => new TextEncoder().encode(change(`{"format":"ubiquity-account-1","account":{"name":"ada"},"stores":[
{"identifier":"a.b","records":[{"key":"x","value":{"integer":"1"}},{"key":"__proto__","value":{"string":"two"}}],"history":[{"record":{"key":"x"}}]},
{"identifier":"c","records":[]}]}`));
  const [first, second] = storesOf(file());
  assert.deepEqual([first.name, [...first.values]], ['a.b', [['x', { integer: '1' }], ['__proto__', { string: 'two' }]]]);
  assert.deepEqual([second.name, second.values.size], ['c', 0]);
  const changed = (from, to) => file((text) => text.replace(from, to));
  refuses(changed('account-1', 'account-2'), /newer/);
  refuses(changed('"c"', '"a.b"'), /the store a.b twice/);
  assert.deepEqual([...storesOf(changed('"__proto__"', '"x"'))[0].values], [['x', { string: 'two' }]]);
  assert.deepEqual([...storesOf(changed('"__proto__","value":{"string":"two"}', '"x"'))[0].values], []);
  refuses(changed('"value":{"integer":"1"}', '"value":1'), /an invalid record of a.b/);
  refuses(changed('"integer":"1"', '"integer":"one"'), /The value of x is not one/);
  refuses(changed('{"string":"two"}', '{}'), /an invalid record of a.b/);
  refuses(changed('[]', '{}'), /where a list should be/);
  refuses(changed('"identifier":"c",', ''), /a store without a name/);
  refuses(file().subarray(0, -3), /not JSON/);
});

test('the areas of a treemap are in proportion, inside, and apart', () => {
  for (const weights of [[1], [6, 6, 4, 3, 2, 2, 1], Array.from({ length: 80 }, (_, i) => 1e6 / (i + 1) ** 2), [1, 1e-9]]) {
    const tiles = treemap(weights, 600, 400);
    const sum = weights.reduce((all, one) => all + one, 0);
    tiles.forEach((tile, i) => {
      assert.ok(Math.abs(tile.width * tile.height - 240_000 * weights[i] / sum) < 1e-3);
      assert.ok(tile.x >= 0 && tile.y >= 0 && tile.x + tile.width < 600.001 && tile.y + tile.height < 400.001);
      for (const other of tiles.slice(i + 1)) {
        const [wide, tall] = [['x', 'width'], ['y', 'height']].map(([at, size]) =>
          Math.min(tile[at] + tile[size], other[at] + other[size]) - Math.max(tile[at], other[at]));
        assert.ok(wide < 1e-3 || tall < 1e-3);
      }
    });
  }
  // Not slivers.
  assert.ok(treemap([6, 6, 4, 3, 2, 2, 1], 600, 400).every(({ width, height }) => Math.max(width / height, height / width) < 3));
});

test('the greatest have an area of their own, and the others one together', () => {
  const weights = Array.from({ length: 100 }, (_, i) => [`k${i}`, i]);
  const found = greatest(weights, 10);
  assert.deepEqual(found[0], { name: null, weight: 89 * 90 / 2, count: 89 });
  assert.deepEqual(found.slice(1).map(({ name }) => name), Array.from({ length: 10 }, (_, i) => `k${99 - i}`));
  assert.deepEqual([...beginnings(['a.b', 'a.c', 'a', 'b-1', '.x', 'é/1', 'end.'])],
    [['a.', 2], ['a', 1], ['b-', 1], ['.x', 1], ['é/', 1], ['end.', 1]]);
});

test('of two stores that are opened at once, only the last one stays open', async () => {
  const open = [];
  const openStore = async (identifier) => {
    await new Promise(setImmediate);
    if (identifier === 'damaged') throw new Error('it is damaged');
    open.push(identifier);
    const close = async () => {
      await new Promise(setImmediate);
      open.splice(open.indexOf(identifier), 1);
    };
    return { identifier, close, synchronize: async () => true, refusedWrites: async () => [], addEventListener() {} };
  };
  const model = Object.assign(new Model(), { device: { openStore }, notes: { stores: [] }, store: null });
  await model.openStore('first');
  await Promise.all([model.openStore('second'), model.openStore('third')]);
  assert.deepEqual(open, ['third']);
  assert.equal(model.store.identifier, 'third');
  // One that cannot be opened does not keep the next one away.
  const [damaged] = await Promise.allSettled([model.openStore('damaged'), model.openStore('fourth')]);
  assert.equal(damaged.status, 'rejected');
  assert.deepEqual(open, ['fourth']);
});

test('figures are read as Prometheus reads them', () => {
  const counts = (...numbers) => new Map(numbers.map((count, index) => [['0.1', '1', '10', '+Inf'][index], count]));
  const none = counts(0, 0, 0, 0);
  assert.deepEqual(parseMetrics('# HELP a b\nnot a sample\na{b="c\\"d\\\\e\\nf",g="}"} 2.5\n').get('a'),
    [{ labels: { b: 'c"d\\e\nf', g: '}' }, value: 2.5 }]);
  assert.deepEqual([quantile(0.5, none, counts(0, 10, 10, 10)), quantile(0.5, none, counts(10, 10, 10, 10)),
    quantile(0.99, none, counts(0, 0, 0, 10)), quantile(0.5, none, none),
    quantile(0.5, counts(100, 100, 100, 100), counts(100, 110, 110, 110))], [0.55, 0.05, 10, null, 0.55]);
  const text = (pushes, node = 'a') => `ubiquity_pushes_total ${pushes}\nubiquity_requests_total{route="x"} ${pushes}\n`
    + `ubiquity_node_info{node="${node}"} 1\n`;
  const figures = new Figures();
  const rates = [[0, 0], [10, 2_000], [3, 4_000], [5, 5_000]].map(([pushes, time]) => figures.add(text(pushes), time).pushRate);
  assert.deepEqual(rates, [null, 5, null, 2]);
  for (let index = 0; index < 400; index += 1) figures.add(text(index, 'b'), 6_000 + index * 2_000);
  // A node that answers no more ends with what the charts show, and the others do not grow.
  assert.deepEqual([[...figures.nodes.keys()], figures.nodes.get('b').length], [['b'], 150]);
});

test('an identity provider is believed only what is safe', () => {
  const issuer = 'https://id.example/realm';
  const good = { issuer, authorization_endpoint: 'https://login.example/a?b=c', token_endpoint: 'https://id.example/token' };
  assert.deepEqual(checkedEndpoints(good, issuer), { authorize: good.authorization_endpoint, token: good.token_endpoint });
  for (const wrong of [null, {}, { ...good, issuer: 'https://id.example' }, { ...good, token_endpoint: 'https://other.example/token' },
    { ...good, token_endpoint: 'http://id.example/token' }, { ...good, authorization_endpoint: 'javascript:alert(1)' },
    { ...good, authorization_endpoint: 'http://login.example' }, { ...good, authorization_endpoint: ['https://login.example'] }]) {
    assert.throws(() => checkedEndpoints(wrong, issuer), IdentityError, JSON.stringify(wrong));
  }
  assert.equal(providerOf({}), null);
  assert.equal(providerOf({ identityProvider: { issuer: 'x', client: 'page' } }), null);
  assert.deepEqual(providerOf({ identityProvider: { issuer, client: 'page', more: 1 } }), { issuer, client: 'page' });
});

test('the request to the provider has all that the standards ask for', async () => {
  // The example of RFC 7636, appendix B.
  const challenge = await challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
  assert.equal(challenge, 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
  const url = new URL(requestAddress('https://login.example/a?b=c&state=theirs', { client: 'p&q', back: 'https://u.example/', state: 's', nonce: 'n', challenge }));
  assert.deepEqual(Object.fromEntries(url.searchParams), { b: 'c', state: 's', response_type: 'code', client_id: 'p&q',
    redirect_uri: 'https://u.example/', scope: 'openid profile', nonce: 'n', code_challenge: challenge, code_challenge_method: 'S256' });
});

test('an answer of the provider counts once, in time, and from the right one', () => {
  const kept = { state: 's', issuer: 'https://id.example', began: 1_000 };
  const query = (more = {}) => new URLSearchParams({ state: 's', code: 'c', ...more });
  assert.equal(codeOf(query(), kept, 2_000), 'c');
  assert.equal(codeOf(query({ iss: kept.issuer }), kept, 2_000), 'c');
  for (const [answer, mine, now] of [[query(), null, 2_000], [query({ state: 'S' }), kept, 2_000], [query(), kept, 601_000], [query(), kept, 999],
    [query({ iss: 'https://evil.example' }), kept, 2_000], [query({ error: 'x' }), kept, 2_000], [query({ code: '' }), kept, 2_000]]) {
    assert.throws(() => codeOf(answer, mine, now), IdentityError);
  }
  const token = (claims) => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;
  assert.equal(tokenOf({ id_token: token({ nonce: 'n', name: 'é' }) }, 'n'), token({ nonce: 'n', name: 'é' }));
  for (const wrong of [null, {}, { id_token: 5 }, { id_token: 'a.b' }, { id_token: token({ nonce: 'm' }) }, { id_token: token({}) }]) {
    assert.throws(() => tokenOf(wrong, 'n'), IdentityError);
  }
});
