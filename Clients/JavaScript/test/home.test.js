// SPDX-License-Identifier: Apache-2.0

/** A home of Node: its lock, its files, and a disk that fails. */

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync,
  statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice, openStore } from '../src/node.js';
import { served } from './support/server.js';

const identifier = 'T.example';
const skip = existsSync(new URL('../src/engine.wasm', import.meta.url)) ? false : '`make engine` was not run';

function homeTest(name, body, otherwise = false) {
  test(name, { skip: skip || otherwise, timeout: 300_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    try { await body(home); } finally { rmSync(home, { recursive: true, force: true }); }
  });
}

/** A process that opens a store, and what it prints first. */
function run(home, code, ...before) {
  const source = `import { openStore } from ${JSON.stringify(new URL('../src/node.js', import.meta.url).href)};
    const store = await openStore({ home: ${JSON.stringify(home)}, identifier: '${identifier}' })
      .catch((error) => { console.log(error.code); process.exit(); });
    ${code}`;
  const [program, ...words] = [...before, process.execPath, '--input-type=module', '--eval', source];
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  return { child, ended, line: once(child.stdout, 'data').then(([data]) => String(data).trim(), () => '') };
}

homeTest('a home of version 0.9 is opened, with what it had not sent', async (home) => {
  cpSync(new URL('../../../Tests/Formats/1/javascript', import.meta.url), home, { recursive: true });
  const store = await openStore({ home, identifier: 'TEAM.example.formats' });
  assert.equal(store.device.account.name, 'ann');
  assert.equal(store.get('theme'), 'dark');
  assert.equal(store.get('unsent javascript'), 'é');
  assert.equal(store.get('steps'), 5);
  assert.deepEqual(store.get('options'), { size: 12 });
  assert.deepEqual(store.status.pendingKeys, ['steps', 'unsent javascript']);
  await store.close();
});

const hold = `
  store.set('a', 1);
  await store.synchronize();
  console.log('held');
  setInterval(() => {}, 1_000);`;

const locks = (home) => readdirSync(home).filter((name) => name.startsWith('lock.'));
const journalOf = (home) => {
  const folder = join(home, 'stores', '1');
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.journal')));
};

homeTest('a home is of one process at a time, until that ends, however it ends', async (home) => {
  const { child, ended, line } = run(home, hold);
  assert.equal(await line, 'held');
  await assert.rejects(openStore({ home, identifier }), { code: 'open', message: /is open in another process/ });
  // One that stands still has it all the same.
  child.kill('SIGSTOP');
  await assert.rejects(openStore({ home, identifier }), { code: 'open' });
  child.kill('SIGKILL');
  await ended;
  assert.equal(locks(home).length, 1);
  const store = await openStore({ home, identifier });
  assert.equal(store.get('a'), 1);
  await assert.rejects(openDevice({ home }), { code: 'open' });
  assert.equal(locks(home).length, 1);
  await store.close();
  assert.deepEqual(locks(home), []);
});

const canUnshare = (() => {
  try {
    execFileSync('unshare', ['--pid', '--net', '--fork', '--mount-proc', 'true'], { stdio: 'ignore' });
    return true;
  } catch { return false; }
})();

for (const [where, words] of [['another namespace of processes and networks', ['--pid', '--net', '--fork', '--mount-proc']],
  ['one without /proc', ['--pid', '--net', '--fork', '--mount']]]) {
  homeTest(`a process in ${where} is kept out, and keeps others out`, async (home) => {
    const outside = await openStore({ home, identifier });
    const inside = () => run(home, hold, 'unshare', ...words, '--kill-child',
      ...(words.includes('--mount') ? ['sh', '-c', 'umount -l /proc; exec "$0" "$@"'] : []));
    assert.equal(await inside().line, 'open');
    await outside.close();
    const { child, ended, line } = inside();
    assert.equal(await line, 'held');
    await assert.rejects(openStore({ home, identifier }), { code: 'open' });
    child.kill('SIGKILL');
    await ended;
    const again = await openStore({ home, identifier });
    assert.equal(again.get('a'), 1);
    await again.close();
  }, canUnshare ? false : 'processes cannot have namespaces of their own here');
}

homeTest('of many processes that open a home at once, one has it', async (home) => {
  const all = Array.from({ length: 6 }, () => run(home, hold));
  const lines = await Promise.all(all.map(({ line }) => line));
  assert.deepEqual(lines.sort(), ['held', ...Array(5).fill('open')]);
  for (const { child, ended } of all) {
    child.kill('SIGKILL');
    await ended;
  }
});

homeTest('a home that cannot be locked is refused with a sentence', async (home) => {
  const file = join(home, 'file');
  writeFileSync(file, '');
  await assert.rejects(openDevice({ home: join(file, 'home') }), { code: 'storage', message: /cannot be made/ });
  // Longer than the names of sockets are, which is no matter where a folder that is open has a short one.
  const long = join(home, 'x'.repeat(200));
  if (existsSync('/proc/self/fd')) await (await openDevice({ home: long })).close();
  await assert.rejects(openDevice({ home: '/proc/self' }), { code: 'storage', message: /cannot be locked/ });
});

homeTest('after it is closed, a device opens nothing', async (home) => {
  const device = await openDevice({ home });
  await device.close();
  await assert.rejects(device.openStore(identifier), { code: 'closed' });
  const other = await openDevice({ home });
  const store = await other.openStore(identifier);
  store.set('a', 1);
  await other.close();
});

homeTest('what is saved survives kill -9, and a line that was not written to its end', async (home) => {
  const { child, ended, line } = run(home, `
    for (let number = 0; number < 50; number += 1) { store.set('n', number); await store.synchronize(); }
    console.log('saved');
    setInterval(() => store.set('later', Math.random()), 1);`);
  await line;
  child.kill('SIGKILL');
  await ended;
  const file = journalOf(home);
  for (const torn of ['["e', '\0\0\0\n']) {
    appendFileSync(file, torn);
    const store = await openStore({ home, identifier });
    assert.equal(store.get('n'), 49);
    store.set('more', torn.length);
    assert.equal(await store.synchronize(), true);
    await store.close();
    const again = await openStore({ home, identifier });
    assert.equal(again.get('more'), torn.length);
    await again.close();
  }
});

homeTest('a save costs what it writes, and a journal does not grow without end', async (home) => {
  const store = await openStore({ home, identifier });
  store.set('large', 'x'.repeat(200_000));
  await store.synchronize();
  const before = statSync(journalOf(home)).size;
  store.set('small', 0);
  await store.synchronize();
  assert.ok(statSync(journalOf(home)).size - before < 5_000);
  for (let number = 0; number < 8; number += 1) {
    store.set('large', `${number}`.repeat(200_000));
    await store.synchronize();
  }
  assert.ok(statSync(journalOf(home)).size < 1_500_000);
  await store.close();
});

for (const [what, change, message] of [
  ['damaged', (text) => text.replace('[[', '[{'), /cannot be read/],
  ['of a later format', (text) => text.replace('"format":2', '"format":3'), /format is 3, .* a newer version wrote it/],
]) {
  homeTest(`a journal that is ${what} is named, and left as it is`, async (home) => {
    const store = await openStore({ home, identifier });
    for (const key of ['a', 'b']) {
      store.set(key, 1);
      await store.synchronize();
    }
    await store.close();
    const file = journalOf(home);
    const text = change(readFileSync(file, 'utf8'));
    writeFileSync(file, text);
    await assert.rejects(openStore({ home, identifier }), { code: 'storage', message });
    assert.equal(readFileSync(file, 'utf8'), text);
    writeFileSync(join(home, 'account.json'), '{"format":3}');
    await assert.rejects(openDevice({ home }), { code: 'storage', message: /account.json.*newer version/ });
    assert.deepEqual(locks(home), []);
  });
}

homeTest('a disk that fails is said, and tried again', async (home) => {
  const store = await openStore({ home, identifier });
  store.set('a', 1);
  await store.synchronize();
  // The folder is gone, and a file is in its place.
  const stores = join(home, 'stores');
  const { disk } = store.shell.storage;
  await disk.close();
  renameSync(stores, `${stores}.away`);
  writeFileSync(stores, '');
  store.set('b', 2);
  assert.equal(await store.synchronize(), false);
  assert.match(store.shell.status.diskError, /EEXIST|ENOTDIR/);
  assert.equal(store.shell.status.isLeader, true);
  rmSync(stores);
  renameSync(`${stores}.away`, stores);
  while (store.shell.status.diskError) await new Promise((go) => { setTimeout(go, 20); });
  await store.close();
  const again = await openStore({ home, identifier });
  assert.equal(again.get('b'), 2);
  await again.close();
});

homeTest('refused writes are kept, the newest', async (home) => {
  const device = await openDevice({ home });
  const disk = device.folder.disk('1', identifier);
  await disk.load();
  for (let version = 0; version < 3; version += 1) {
    const refused = Array.from({ length: 500 }, (_, number) => new Uint8Array([version, number >> 8, number & 255]));
    await disk.save({ expects: version, entries: [], refused });
  }
  await device.close();
  const again = await openDevice({ home });
  const read = again.folder.disk('1', identifier);
  await read.load();
  const kept = await read.refused();
  assert.equal(kept.length, 1_024);
  assert.deepEqual([...kept[0]], [2, 1, 243]);
  assert.deepEqual([...kept.at(-1)], [0, 1, 220]);
  assert.deepEqual(await read.save({ expects: 7, entries: [] }), { content: read.rows.load() });
  await again.close();
});

homeTest('what no account has is removed, and no running store writes it again', async (home) => {
  const state = (server) => ({ format: 2, device: { folder: '1', folders: { a: '1' }, signedIn: {
    server, account: 'a', accountName: 'ann', device: '1'.repeat(16), deviceName: 'x', credential: 'c' } } });
  await served((_request, response) => response.writeHead(204).end(), async (server) => {
    writeFileSync(join(home, 'account.json'), JSON.stringify(state(server)));
    mkdirSync(join(home, 'stores', 'unowned'), { recursive: true });
    const device = await openDevice({ home });
    assert.deepEqual(readdirSync(join(home, 'stores')), []);
    const store = await device.openStore(identifier);
    store.set('secret', 1);
    await store.synchronize();
    store.set('secret', 2);
    await device.signOut({ wipes: true });
    assert.equal(store.get('secret'), undefined);
    assert.ok(!existsSync(join(home, 'stores', '1')));
    store.set('new', 1);
    assert.equal(await store.synchronize(), true);
    assert.deepEqual(readdirSync(join(home, 'stores')), [device.state.folder]);
    await device.close();
  });
});

homeTest('a sign-in tries the disk before it uses up a code', async (home) => {
  let asked = 0;
  await served((_request, response) => {
    asked += 1;
    response.writeHead(500).end();
  }, async (server) => {
    const device = await openDevice({ home });
    mkdirSync(join(home, 'account.json.new'));
    await assert.rejects(device.signIn({ server, code: 'c' }));
    assert.equal(asked, 0);
    await device.close();
  });
});

// A home that somebody moves, removes or replaces under a running program

/** A store with a value that is on the disk, in a home inside of the test's folder. */
async function openedIn(folder) {
  const home = join(folder, 'home');
  const store = await openStore({ home, identifier });
  store.set('old', 1);
  assert.equal(await store.synchronize(), true);
  return { home, away: join(folder, 'away'), store };
}

for (const [what, change] of /** @type {[string, (home: string, away: string) => any][]} */ ([
  ['removed', (home) => rmSync(home, { recursive: true })],
  ['moved', renameSync],
  ['moved, and another one is in its place', (home, away) => {
    renameSync(home, away);
    mkdirSync(join(home, 'stores', '1'), { recursive: true });
  }],
  ['moved, and a copy is in its place', (home, away) => {
    renameSync(home, away);
    cpSync(away, home, { recursive: true, filter: (name) => !name.includes('lock.') });
  }],
  ['still there, but its lock is not', (home) => locks(home).forEach((name) => rmSync(join(home, name)))],
  ['still there, but its lock was made anew', (home) => locks(home).forEach((name) => {
    rmSync(join(home, name));
    writeFileSync(join(home, name), '');
  })],
])) {
  for (const isFirst of [false, true]) {
    homeTest(`a home is ${what}: ${isFirst ? 'a new store is not opened' : 'no save is said to be one'}`, async (folder) => {
      const { home, away, store } = await openedIn(folder);
      change(home, away);
      const before = existsSync(home) ? readdirSync(home, { recursive: true }) : null;
      if (isFirst) await assert.rejects(store.device.openStore('T.other'), { code: 'storage', message: /lock/ });
      store.set('new', 1);
      assert.equal(await store.synchronize(), false);
      assert.match(store.status.diskError, /another program has moved, replaced or removed/);
      store.remove('old');
      await assert.rejects(store.device.signOut({ wipes: true }), { code: 'storage' });
      await assert.rejects(store.device.erase(), { code: 'storage' });
      assert.deepEqual(existsSync(home) ? readdirSync(home, { recursive: true }) : null, before);
    });
  }
}

homeTest('a home that is moved back has all', async (folder) => {
  const { home, away, store } = await openedIn(folder);
  renameSync(home, away);
  mkdirSync(home);
  store.set('new', 1);
  assert.equal(await store.synchronize(), false);
  rmSync(home, { recursive: true });
  renameSync(away, home);
  // A save that is tried again at this moment may still fail.
  assert.equal(await store.synchronize() || await store.synchronize(), true);
  await store.close();
  const again = await openStore({ home, identifier });
  assert.deepEqual([...again.values()], [['new', 1], ['old', 1]]);
  await again.close();
});

homeTest('who has lost the lock overwrites nothing of the process that came in', async (folder) => {
  const { home, store } = await openedIn(folder);
  for (const name of locks(home)) rmSync(join(home, name));
  const { child, ended, line } = run(home, hold.replace("set('a', 1)", "set('a', store.get('old'))"));
  try {
    assert.equal(await line, 'held');
    store.set('a', 'other');
    assert.equal(await store.synchronize(), false);
    await assert.rejects(store.close(), { code: 'storage' });
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
  const again = await openStore({ home, identifier });
  assert.equal(again.get('a'), 1);
  await again.close();
});

homeTest('a link that leads elsewhere is another home', async (folder) => {
  const [link, one, two] = ['link', 'one', 'two'].map((name) => join(folder, name));
  for (const home of [one, two]) mkdirSync(home);
  symlinkSync(one, link);
  const store = await openStore({ home: link, identifier });
  store.set('a', 1);
  assert.equal(await store.synchronize(), true);
  rmSync(link);
  symlinkSync(two, link);
  store.set('a', 2);
  assert.equal(await store.synchronize(), false);
  assert.deepEqual(readdirSync(two), []);
  await assert.rejects(store.close(), { code: 'storage' });
});

for (const [what, change] of /** @type {[string, (file: string, backup: string) => any][]} */ ([
  ['removed', (file) => rmSync(file)],
  ['removed with its folders', (file) => rmSync(join(file, '..', '..'), { recursive: true })],
  ['written over by a backup', (file, backup) => writeFileSync(file, backup)],
  ['written over by other values of the same size', (file) => {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, `${text.slice(0, -2)} \n`);
  }],
  ['replaced by a backup', (file, backup) => {
    writeFileSync(`${file}.backup`, backup);
    renameSync(`${file}.backup`, file);
  }],
  ['cut', (file, backup) => writeFileSync(file, backup.slice(0, -3))],
])) {
  homeTest(`a journal is ${what}: what was said to be saved is there all the same`, async (folder) => {
    const { home, store } = await openedIn(folder);
    const backup = readFileSync(journalOf(home), 'utf8');
    store.set('since', 1);
    assert.equal(await store.synchronize(), true);
    change(journalOf(home), backup);
    store.set('new', 1);
    assert.equal(await store.synchronize(), true);
    await store.close();
    const again = await openStore({ home, identifier });
    assert.deepEqual([...again.values()], [['new', 1], ['old', 1], ['since', 1]]);
    await again.close();
  });
}
