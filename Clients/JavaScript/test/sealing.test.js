// SPDX-License-Identifier: Apache-2.0

/** Devices of a sealed account, with a real server. */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { identifier, passOn, served, serverTest, until } from './support/server.js';
import { sealAccount } from './support/sealing.js';

const problem = (code) => JSON.stringify({ type: `urn:ubiquity:problem:${code}`, code, detail: code });

/** The server of a stage, with the place for handovers that not every server has. */
function withHandovers(stage, body) {
  const boxes = new Map();
  return served(async (incoming, answer) => {
    const name = /^\/v1\/handovers\/([0-9a-f]{32})$/.exec(incoming.url)?.[1];
    if (!name) return passOn(stage, incoming, answer);
    let text = '';
    for await (const piece of incoming) text += piece;
    if (incoming.method === 'PUT') {
      boxes.set(name, text);
      return answer.writeHead(204).end();
    }
    const found = boxes.get(name);
    answer.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' });
    return answer.end(found ?? problem('not-found'));
  }, body);
}

/** A store in an account that was sealed before, at an address. */
async function lockedStore(stage, server, name) {
  const store = await stage.openStore(name);
  await store.device.signIn({ server, code: await stage.server.code('ann'), deviceName: name });
  await until(store, () => store.status.connection === 'locked');
  return store;
}

/** A store with the account's key, and the recovery key. */
async function sealedStore(stage, server = stage.server.url) {
  const store = await stage.openStore('a');
  await store.device.signIn({ server, code: await stage.server.code('ann'), deviceName: 'a' });
  const recoveryKey = await sealAccount(store.device.state.signedIn);
  await store.device.unlock(recoveryKey);
  await store.synchronizeNow();
  return { store, recoveryKey };
}

serverTest('a device without the key keeps what is written, and says what to do', async (stage) => {
  await sealedStore(stage);
  const b = await lockedStore(stage, stage.server.url, 'b');
  b.set('mine', 1);
  assert.equal(await b.synchronize(), true);
  const { connection, explanation, lastError, pendingKeys } = b.status;
  assert.equal(connection, 'locked');
  assert.match(explanation, /^The account is sealed, and this device does not have its key: unlock it .*\.$/);
  assert.match(lastError, /^the account is sealed, .* recovery key$/);
  assert.deepEqual(pendingKeys, ['mine']);
  await assert.rejects(b.synchronizeNow(), { code: 'locked', message: lastError });
});

serverTest('the recovery key unlocks a device, and what waited is sent as boxes', async (stage) => {
  const { store: a, recoveryKey } = await sealedStore(stage);
  a.set('secret', 'a text that nobody else reads');
  a.increment('steps', 3);
  await a.synchronizeNow();
  const b = await lockedStore(stage, stage.server.url, 'b');
  b.set('waited', 'until there was a key');
  await b.device.unlock(` ${recoveryKey.toLowerCase().replaceAll('-', '\u2013').replace('\u2013', '\n\u00a0')} `);
  await b.synchronizeNow();
  assert.equal(b.get('secret'), 'a text that nobody else reads');
  assert.equal(b.get('steps'), 3);
  await until(a, () => a.get('waited') === 'until there was a key');
  const { server, credential } = a.device.state.signedIn;
  const answer = await fetch(`${server}/v1/stores/${a.identifier}/whole?generation=1`,
    { headers: { Authorization: `Bearer ${credential}` } });
  const text = await answer.text();
  assert.match(text, /"box"/);
  assert.doesNotMatch(text, /nobody else|there was a key/);
  assert.equal((await b.history('secret'))[0].value, 'a text that nobody else reads');
  assert.equal((await b.valuesAt(new Date())).values.get('waited'), 'until there was a key');
});

serverTest('a device with the key hands it to one that shows a code', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  const b = await lockedStore(stage, server, 'b');
  const code = await b.device.unlockCode();
  assert.match(code, /^ubiquity:unlock;([0-9A-Z]{4}-){7}[0-9A-Z]{2}$/);
  const unlocked = b.device.unlock(code);
  await a.device.handOver(code);
  await unlocked;
  await b.synchronizeNow();
  assert.equal(b.get('theme'), 'dark');
  // The keys are on the disk.
  await b.close();
  const again = await stage.openStore('b');
  await again.synchronizeNow();
  again.set('theme', 'light');
  await again.synchronizeNow();
  await until(a, () => a.get('theme') === 'light');
}));

serverTest('a sign-in code with a secret brings the keys', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  const secret = (await a.device.unlockCode()).split(';')[1];
  // What nothing was left for locks the device: the server says that the account is sealed.
  const c = await stage.openStore('c');
  const { isSealed } = await c.device.signIn({ code: `ubiquity:${server}#${(await a.device.pair()).code};${secret}` });
  assert.equal(isSealed, true);
  await until(c, () => c.status.connection === 'locked');
  const { wholeCode, link } = await a.device.pair();
  assert.ok(wholeCode.startsWith(`ubiquity:${link};`));
  const b = await stage.openStore('b');
  assert.equal((await b.device.signIn({ code: wholeCode })).isSealed, true);
  await b.initialSync();
  assert.equal(b.get('theme'), 'dark');
  // A device without the key brings others none, and lets no server deny that the account is sealed.
  const d = await stage.openStore('d');
  await d.device.signIn({ code: (await c.device.pair()).wholeCode });
  await until(d, () => d.status.connection === 'locked');
}));

serverTest('an account that is not sealed is paired by a link, and approved by a code that says so', async (stage) => {
  const a = await stage.signedIn('a');
  const { link, wholeCode } = await a.device.pair();
  assert.equal(wholeCode, link);
  const b = await stage.openStore('b');
  const asking = await b.device.requestSignIn({ server: stage.server.url });
  await a.device.approve(await a.device.waitingDevice(asking.code));
  assert.equal((await asking.account()).isSealed, false);
  // By the user code, only the server says so.
  const c = await stage.openStore('c');
  const ask = async (options) => {
    const request = await c.device.requestSignIn({ server: stage.server.url, ...options });
    await a.device.approve(await a.device.waitingDevice(request.userCode));
    return request.account();
  };
  await assert.rejects(ask(), { code: 'notSealed', message: /^no device of the account has answered/ });
  const reasons = [];
  await assert.rejects(ask({ allowsUnsealed: (reason) => { reasons.push(reason); return false; } }), { code: 'notSealed' });
  assert.match(reasons[0], /has answered the secret/);
  assert.equal(c.device.account, null);
  assert.equal((await ask({ allowsUnsealed: true })).isSealed, false);
  const d = await stage.openStore('d');
  const plain = await d.device.requestSignIn({ server: stage.server.url, withSecret: false });
  assert.equal(plain.code, plain.link);
  await a.device.approve(await a.device.waitingDevice(plain.userCode));
  assert.equal((await plain.account()).isSealed, false);
});

serverTest('a server that keeps the keys back and denies the seal starts no device in clear', async (stage) => {
  const pushed = [];
  let isDenying = false;
  await served(async (incoming, answer) => {
    const isDenied = isDenying && incoming.method === 'GET';
    if (isDenied && incoming.url === '/v1/sealing') {
      answer.writeHead(200, { 'Content-Type': 'application/json' });
      return answer.end('{}');
    }
    if (isDenied && incoming.url.startsWith('/v1/handovers/')) {
      answer.writeHead(404, { 'Content-Type': 'application/problem+json' });
      return answer.end(problem('not-found'));
    }
    if (incoming.url.includes('/push')) incoming.on('data', (piece) => pushed.push(String(piece)));
    return passOn(stage, incoming, answer);
  }, async (server) => {
    const { store: a } = await sealedStore(stage, server);
    const b = await stage.openStore('b');
    b.set('mine', 'in clear text');
    isDenying = true;
    for (const more of [{}, { allowsUnsealed: () => false }]) {
      const asking = await b.device.requestSignIn({ server, ...more });
      await a.device.approve(await a.device.waitingDevice(asking.code));
      await assert.rejects(asking.account(), { code: 'notSealed' });
      const { wholeCode } = await a.device.pair();
      assert.ok(wholeCode.startsWith('ubiquity:'));
      await assert.rejects(b.device.signIn({ code: wholeCode, ...more }), { code: 'notSealed' });
    }
    assert.equal(b.device.account, null);
    assert.doesNotMatch(pushed.join(''), /in clear text/);
    isDenying = false;
    await b.device.signIn({ code: (await a.device.pair()).wholeCode });
    await b.synchronizeNow();
    assert.doesNotMatch(pushed.join(''), /in clear text/);
  });
});

serverTest('keys that are not kept are in memory alone', async (stage) => {
  const { store: a, recoveryKey } = await sealedStore(stage);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  const b = await lockedStore(stage, stage.server.url, 'b');
  await b.device.unlock(recoveryKey, { isKept: false });
  await b.synchronizeNow();
  assert.equal(b.get('theme'), 'dark');
  assert.notEqual(b.device.keyring, undefined);
  assert.doesNotMatch(readFileSync(`${stage.home('b')}/account.json`, 'utf8'), /keyrings/);
  await b.close();
  const again = await stage.openStore('b');
  assert.equal(again.device.keyring, undefined);
  await until(again, () => again.status.connection === 'locked');
  assert.equal(again.device.account.isSealed, true);
});

serverTest('a device that is confined to a store asks for the key of that store', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  const b = await stage.openStore('b');
  await b.device.signIn({ server, code: (await a.device.pair({ stores: [identifier] })).code });
  const code = await b.device.unlockCode();
  assert.match(code, /^ubiquity:unlock#TEAM\.example\.js;/);
  await a.device.handOver(code);
  await b.device.unlock(code);
  await b.synchronizeNow();
  assert.equal(b.get('theme'), 'dark');
  assert.deepEqual(Object.keys(Object.values(b.device.state.keyrings)[0]['1']), [identifier]);
}));

serverTest('keys of a store leave a device those of the account, also if another tab just got them', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  const b = await lockedStore(stage, server, 'b');
  const confined = (code) => code.replace('unlock', `unlock#${identifier}`);
  const code = confined(await b.device.unlockCode());
  const unlocked = b.device.unlock(code);
  await b.device.folder.changeAccount((state) => ({ ...state, keyrings: a.device.state.keyrings }));
  await a.device.handOver(code);
  await unlocked;
  assert.deepEqual(b.device.keyring, a.device.keyring);
  const again = confined(await b.device.unlockCode());
  await a.device.handOver(again);
  await b.device.unlock(again);
  assert.deepEqual(b.device.keyring, a.device.keyring);
}));

serverTest('keys from before, and those that do not continue what a device has, are refused', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  const first = a.device.keyring;
  const b = await lockedStore(stage, server, 'b');
  const code = await b.device.unlockCode();
  await a.device.handOver(code);
  const recoveryKey = await sealAccount(a.device.state.signedIn, first);
  await assert.rejects(b.device.unlock(code), { code: 'code-invalid' });
  assert.equal(b.device.keyring, undefined);
  await a.device.unlock(recoveryKey);
  assert.deepEqual(Object.keys(a.device.keyring), ['1', '2']);
  assert.equal(a.device.keyring['1'], first['1']);
  // Whoever has the account's credentials, and not its key, makes no next one.
  const second = a.device.keyring;
  await assert.rejects(sealAccount(a.device.state.signedIn, { 2: Buffer.alloc(32).toString('base64') }), /problem:proof/);
  // Whoever has made the next key, and gives another one for the one before.
  const forged = await sealAccount(a.device.state.signedIn, second, { 2: Buffer.alloc(32).toString('base64') });
  await assert.rejects(a.device.unlock(forged), { code: 'code-invalid' });
  assert.deepEqual(a.device.keyring, second);
}));

serverTest('a device that shows a code gets the keys with the approval, if all of the code was read', (stage) => withHandovers(stage, async (server) => {
  const { store: a } = await sealedStore(stage, server);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  const b = await stage.openStore('b');
  const asking = await b.device.requestSignIn({ server, deviceName: 'b' });
  assert.ok(asking.code.startsWith(`ubiquity:${asking.link};`));
  const waiting = await a.device.waitingDevice(asking.code);
  assert.deepEqual([waiting.userCode, waiting.name], [asking.userCode, 'b']);
  await a.device.approve(waiting);
  await asking.account();
  await b.synchronizeNow();
  assert.equal(b.get('theme'), 'dark');
  // Without the secret, it is locked.
  const c = await stage.openStore('c');
  const shown = await c.device.requestSignIn({ server, deviceName: 'c' });
  await a.device.approve(await a.device.waitingDevice(shown.userCode));
  await shown.account();
  await until(c, () => c.status.connection === 'locked');
  // Confined to a store, it gets the key of that store.
  const d = await stage.openStore('d');
  const confined = await d.device.requestSignIn({ server, deviceName: 'd', stores: [identifier] });
  await a.device.approve(await a.device.waitingDevice(confined.code));
  await confined.account();
  assert.deepEqual(Object.keys(d.device.keyring['1']), [identifier]);
  await d.synchronizeNow();
  assert.equal(d.get('theme'), 'dark');
}));

serverTest('the command line approves a code of this client with the keys', async (stage) => {
  const { store: a } = await sealedStore(stage);
  a.set('theme', 'dark');
  await a.synchronizeNow();
  await stage.command('swift', 'sign-in', '--server', stage.server.url, '--code', await stage.server.code('ann'));
  const file = `${stage.home('swift')}/account.json`;
  const { keyrings } = a.device.state;
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), keyrings }));
  const b = await stage.openStore('b');
  const asking = await b.device.requestSignIn({ server: stage.server.url, deviceName: 'b' });
  const [, approved] = await Promise.all([asking.account(), stage.command('swift', 'approve', asking.code, '--yes', '--json')]);
  assert.equal(JSON.parse(approved).hasKey, true);
  await b.synchronizeNow();
  assert.equal(b.get('theme'), 'dark');
});

serverTest('a server that had a sealed account gets nobody into one that is not sealed unasked', async (stage) => {
  const { store: a } = await sealedStore(stage);
  const server = stage.server.url;
  const ask = async (more = {}) => a.device.signIn({ server, code: await stage.server.code('bob'), ...more });
  await a.device.signOut();
  await assert.rejects(ask(), { code: 'notSealed', message: /^this device has had a sealed account/ });
  await assert.rejects(ask({ allowsUnsealed: () => false }), { code: 'notSealed' });
  assert.equal(a.device.account, null);
  const b = await stage.signedIn('b', { account: 'bob' });
  assert.deepEqual((await b.device.devices()).map(({ name }) => name), ['b']);
  // By an approval, too.
  const asking = await a.device.requestSignIn({ server });
  await b.device.approve(await b.device.waitingDevice(asking.code));
  await assert.rejects(asking.account(), { code: 'notSealed' });
  // Also at another address of the server.
  await assert.rejects(ask({ server: server.replace('127.0.0.1', 'localhost') }), { code: 'notSealed' });
  // The account with the keys is no question, nor is what a person allows.
  await a.device.signIn({ server, code: await stage.server.code('ann') });
  await a.synchronizeNow();
  let asked = 0;
  const allowsUnsealed = async () => { asked += 1; return true; };
  await ask({ allowsUnsealed });
  assert.deepEqual([a.device.account.name, asked], ['bob', 1]);
  await ask({ allowsUnsealed: true });
  // It survives a wipe, and a new start.
  await a.device.signOut({ wipes: true });
  await a.close();
  const again = await stage.openStore('a');
  await assert.rejects(again.device.signIn({ server, code: await stage.server.code('carl') }), { code: 'notSealed' });
});

serverTest('a server that said at the sign-in that the account is sealed gets no clear value later', async (stage) => {
  let says = '{"generation":1}';
  await served((incoming, answer) => {
    if (incoming.url !== '/v1/sealing') return passOn(stage, incoming, answer);
    answer.writeHead(200, { 'Content-Type': 'application/json' });
    return answer.end(says);
  }, async (server) => {
    const signIn = async (store, more = {}) =>
      store.device.signIn({ server, code: await stage.server.code('ann'), deviceName: 'a', ...more });
    const a = await stage.openStore('a');
    await signIn(a);
    says = '{}';
    a.set('secret', 'a text');
    await assert.rejects(a.synchronizeNow(), { code: 'locked' });
    assert.equal(a.status.connection, 'locked');
    await a.close();
    const again = await stage.openStore('a');
    await assert.rejects(again.synchronizeNow(), { code: 'locked' });
    const b = await stage.signedIn('b');
    assert.deepEqual([...b.keys()], []);
    // A person decides, also when it signs in anew.
    await assert.rejects(signIn(again), { code: 'notSealed' });
    await signIn(again, { allowsUnsealed: true });
    await again.synchronizeNow();
    await b.synchronizeNow();
    assert.equal(b.get('secret'), 'a text');
  });
});

serverTest('a server that refused a request for the account\'s key gets no clear value later', async (stage) => {
  let isSealed = false;
  await served((incoming, answer) => {
    if (!isSealed || !incoming.url.startsWith('/v1/stores/')) return passOn(stage, incoming, answer);
    answer.writeHead(409, { 'Content-Type': 'application/problem+json' });
    return answer.end(JSON.stringify({ ...JSON.parse(problem('sealed')), generation: 1 }));
  }, async (server) => {
    const a = await stage.openStore('a');
    await a.device.signIn({ server, code: await stage.server.code('ann'), deviceName: 'a' });
    await a.synchronizeNow();
    isSealed = true;
    a.set('secret', 'a text');
    await assert.rejects(a.synchronizeNow(), { code: 'locked' });
    await until(a, () => a.device.state.sealedAccounts?.length === 1);
    isSealed = false;
    await assert.rejects(a.synchronizeNow(), { code: 'locked' });
    await a.close();
    const again = await stage.openStore('a');
    await assert.rejects(again.synchronizeNow(), { code: 'locked' });
    const b = await stage.signedIn('b');
    assert.deepEqual([...b.keys()], []);
    assert.equal(again.get('secret'), 'a text');
  });
});

serverTest('boxes in each other\'s place are said, until they are replaced', async (stage) => {
  const { store: a, recoveryKey } = await sealedStore(stage);
  a.set('one', 1);
  a.set('two', 2);
  await a.synchronizeNow();
  let isHostile = true;
  const proofs = new Set();
  await served(async (incoming, answer) => {
    if (incoming.headers['ubiquity-key-proof']) proofs.add(incoming.headers['ubiquity-key-proof']);
    if (incoming.headers.accept === 'text/event-stream') {
      answer.writeHead(429, { 'Content-Type': 'application/problem+json', 'Retry-After': '600' });
      return answer.end(problem('too-many-streams'));
    }
    if (!isHostile || !/\/changes/.test(incoming.url) || incoming.method !== 'GET') return passOn(stage, incoming, answer);
    const { authorization } = incoming.headers;
    const response = await fetch(stage.server.url + incoming.url, { headers: { authorization } });
    const body = await response.json();
    const boxes = (body.records ?? []).filter(({ value }) => value?.sealed);
    if (boxes.length > 1) [boxes[0].value, boxes[1].value] = [boxes[1].value, boxes[0].value];
    answer.writeHead(response.status, { 'Content-Type': 'application/json' });
    return answer.end(JSON.stringify(body));
  }, async (server) => {
    const b = await lockedStore(stage, server, 'b');
    const problems = [];
    b.addEventListener('problem', ({ detail }) => problems.push(detail));
    await b.device.unlock(recoveryKey);
    await b.synchronizeNow();
    assert.deepEqual([...b.keys()], []);
    assert.deepEqual(b.status.setAsideKeys, ['one', 'two']);
    assert.match(b.status.explanation, /Not everything is synced: what the server has of "one" and "two" does not open/);
    assert.equal(problems.length, 1);
    isHostile = false;
    a.set('one', 1.5);
    a.set('two', 2.5);
    await a.synchronizeNow();
    await b.synchronizeNow();
    assert.deepEqual([b.get('one'), b.get('two'), b.status.setAsideKeys], [1.5, 2.5, []]);
    assert.equal(proofs.size, 1);
  });
});

serverTest('codes that give no keys are refused with a sentence', (stage) => withHandovers(stage, async (server) => {
  const { store: a, recoveryKey } = await sealedStore(stage, server);
  const b = await lockedStore(stage, server, 'b');
  const code = await b.device.unlockCode();
  const mistyped = code.slice(0, -1) + (code.endsWith('0') ? '1' : '0');
  const refused = (text, message) => assert.rejects(b.device.unlock(text), { code: 'code-invalid', message });
  await refused(mistyped, /mistyped/);
  await refused(recoveryKey.slice(0, -1), /36 letters and digits, and this has 35/);
  await refused('7KQ2-M9XD-4TRW', /36 letters and digits, and this has 12/);
  await refused((recoveryKey[0] === '0' ? '1' : '0') + recoveryKey.slice(1), /recovery key was mistyped/);
  await assert.rejects(b.device.signIn({ code: mistyped }), { code: 'code-invalid' });
  // Of another account, at the same server.
  const other = await stage.openStore('o');
  await other.device.signIn({ server, code: await stage.server.code('bob'), deviceName: 'o' });
  await assert.rejects(other.device.unlock(recoveryKey), { code: 'code-invalid', message: /is not sealed/ });
  const otherKey = await sealAccount(other.device.state.signedIn);
  await refused(otherKey, /an older one, or another account's/);
  await assert.rejects(b.device.handOver(code), { code: 'code-invalid', message: /does not have the keys/ });
  // Nobody approves it, and nobody waits any longer.
  const stop = new AbortController();
  const waiting = b.device.unlock(code, stop);
  stop.abort();
  await assert.rejects(waiting);
  assert.equal(b.status.connection, 'locked');
  await a.device.handOver(code);
  await b.device.unlock(code);
  await b.synchronizeNow();
}));

serverTest('wiping takes the keys with the values', async (stage) => {
  const { store: a } = await sealedStore(stage);
  await a.device.signOut();
  assert.equal(Object.keys(a.device.state.keyrings).length, 1);
  await a.device.signIn({ server: stage.server.url, code: await stage.server.code('ann') });
  await a.synchronizeNow();
  await a.device.signOut({ wipes: true });
  assert.equal(a.device.state.keyrings, undefined);
});
