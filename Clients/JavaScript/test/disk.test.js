// SPDX-License-Identifier: Apache-2.0

/** What a program in Node says of a disk that fails at a chosen call, and what is there afterwards. */

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Program, skip } from './support/faults.js';

const identifier = 'T.example';
const open = (home) => `
  globalThis.store = await openStore({ home: ${JSON.stringify(home)}, identifier: '${identifier}' });`;
const set = (key, value) => `store.set(${JSON.stringify(key)}, ${JSON.stringify(value)}); return store.synchronize();`;
/** A save that is tried again when the disk begins to work may still fail. */
const again = 'return await store.synchronize() || store.synchronize();';
const folderOf = (home) => join(home, 'stores', '1');
const journalOf = (home) => {
  const name = readdirSync(folderOf(home)).find((one) => one.endsWith('.journal'));
  return join(folderOf(home), /** @type {string} */ (name));
};

/** What a save that failed has left. */
const partial = (home) => readdirSync(home, { recursive: true }).filter((name) => String(name).endsWith('.new'));

function diskTest(name, body) {
  test(name, { skip, timeout: 300_000 }, async () => {
    const base = mkdtempSync(join(tmpdir(), 'ubiquity-js-'));
    const programs = [];
    const start = (options) => {
      programs.push(new Program(options));
      return programs.at(-1);
    };
    try { await body(start, join(base, 'home'), base); } finally {
      for (const program of programs) await program.kill();
      rmSync(base, { recursive: true, force: true });
    }
  });
}

/** What the next process finds. */
async function reopened(start, home, key) {
  const program = start({ isFaulty: false });
  await program.run(open(home));
  const value = await program.run(`return store.get(${JSON.stringify(key)}) ?? null;`);
  await program.kill();
  return value;
}

// In the order of a first save: folders, a new file, its name. Then lines.
for (const [rule, isFirst] of /** @type {[string, boolean][]} */ ([
  ['mkdir stores$ EACCES', true], ['flush home$ EIO', true], ['flush stores$ EIO', true], ['open .journal.new ENOSPC', true],
  ['write .journal.new ENOSPC', true], ['flush .journal.new EIO', true], ['rename .journal EIO', true],
  ['flush stores/1$ EIO', true], ['write .journal$ EIO', false], ['flush .journal EIO', false],
])) {
  for (const isKilled of [true, false]) {
    diskTest(`"${rule}": no save is said to be one, and ${isKilled ? 'a process that is killed loses only that'
      : 'the next has all'}`, async (start, home) => {
      const program = start();
      // What begins by itself is a save too.
      if (isFirst) program.fail(rule);
      await program.run(open(home));
      if (!isFirst) assert.equal(await program.run(set('kept', 1)), true);
      if (!isFirst) program.fail(rule);
      assert.equal(await program.run(set('a', 1)), false);
      const [call, , error] = rule.split(' ');
      assert.match(program.failures.at(-1), new RegExp(`^${call} .* ${error}$`));
      assert.match(await program.run('return store.status.diskError;'), /\w/);
      if (!isKilled) {
        program.fail();
        assert.equal(await program.run(again), true);
        assert.equal(await program.run('return store.status.diskError;'), null);
      }
      await program.kill();
      if (!isFirst) assert.equal(await reopened(start, home, 'kept'), 1);
      if (!isKilled) assert.equal(await reopened(start, home, 'a'), 1);
    });
  }
}

diskTest('what was in doubt after a failed flush is written anew', async (start, home) => {
  const program = start();
  await program.run(open(home));
  await program.run(set('a', 1));
  const { ino } = statSync(journalOf(home));
  program.fail('flush .journal EIO 1');
  assert.equal(await program.run(set('b', 1)), false);
  assert.equal(await program.run(again), true);
  assert.notEqual(statSync(journalOf(home)).ino, ino);
});

diskTest('on a full disk, what has room is saved: a removal, also by a new process', async (start, home) => {
  const program = start();
  await program.run(open(home));
  await program.run(set('a', 'x'.repeat(1_000)));
  await program.run(set('b', 2));
  program.fail('write .journal ENOSPC');
  assert.equal(await program.run(set('c', 'y'.repeat(1_000))), false);
  await program.run('store.remove("a"); store.remove("c");');
  program.fail('write .journal.new ENOSPC');
  assert.equal(await program.run(again), true);
  assert.doesNotMatch(readFileSync(journalOf(home), 'utf8'), /eXl5/);
  await program.kill();
  assert.equal(await reopened(start, home, 'a'), null);
  const next = start();
  await next.run(open(home));
  next.fail('write .journal.new ENOSPC');
  assert.equal(await next.run('store.remove("b"); return store.synchronize();'), true);
  assert.match(next.failures.join(), /journal.new ENOSPC/);
  await next.run('await store.close();');
  assert.deepEqual(partial(home), []);
  await next.kill();
  assert.equal(await reopened(start, home, 'b'), null);
});

diskTest('a line that cannot be cut off again is written over by a whole file', async (start, home) => {
  const program = start();
  await program.run(open(home));
  await program.run(set('a', 1));
  program.fail('write .journal$ EIO 1', 'truncate .journal$ EIO 1');
  assert.equal(await program.run(set('b', 1)), false);
  assert.equal(await program.run(again), true);
  assert.match(program.failures.join(), /truncate/);
  await program.kill();
  assert.equal(await reopened(start, home, 'b'), 1);
});

diskTest('what a process left without a flush is flushed before it counts', async (start, home) => {
  const program = start();
  await program.run(open(home));
  await program.run(set('a', 1));
  await program.kill();
  const next = start();
  next.fail('flush .journal EIO');
  await assert.rejects(next.run(open(home)), { code: 'storage', message: /cannot be read: EIO/ });
  next.fail();
  await next.run(open(home));
  assert.equal(await next.run('return store.get("a");'), 1);
});

diskTest('a home is on the disk with the folders above it, or is not opened', async (start, _home, base) => {
  const home = join(base, 'one', 'two');
  const program = start();
  for (const folder of [base, join(base, 'one')]) {
    program.fail(`flush ${folder}$ EIO`);
    await assert.rejects(program.run(open(home)), { code: 'storage', message: /cannot be made: EIO/ });
    await assert.rejects(program.run(open(home)), { code: 'storage' });
  }
  // Some systems cannot flush a folder.
  program.fail(`flush ${base}$ EINVAL`, `flush ${join(base, 'one')}$ EOPNOTSUPP`);
  await program.run(open(home));
  assert.equal(await program.run(set('a', 1)), true);
});

diskTest('a sign-in that is not on the disk is no sign-in', async (start, home) => {
  const program = start();
  await program.run(open(home));
  for (const rule of ['write account.json ENOSPC', 'flush account.json EIO', 'rename account.json EIO', 'flush home$ EIO']) {
    program.fail(rule);
    await assert.rejects(program.run('await store.device.signIn({ server: "http://127.0.0.1:9", code: "c" });'),
      { code: 'storage', message: /account.json/ }, rule);
    assert.ok(!readdirSync(home).includes('account.json.new'));
  }
});

diskTest('a home with a relative name stays where it was opened', async (start, home, base) => {
  const [here, there] = [join(base, 'here'), join(base, 'there')];
  for (const folder of [here, there]) mkdirSync(folder);
  const program = start({ cwd: here, isFaulty: false });
  await program.run(open('data'));
  await program.run(`process.chdir(${JSON.stringify(there)});`);
  assert.equal(await program.run(set('a', 1)), true);
  await program.kill();
  assert.deepEqual(readdirSync(there), []);
  assert.equal(await reopened(start, join(here, 'data'), 'a'), 1);
});

for (const [what, observe] of [
  ['a callback', 'store.subscribe("a", (value) => { store.set("own", value); throw new Error("mine"); });'],
  ['an asynchronous callback', 'store.subscribe("a", async (value) => { store.set("own", value); throw new Error("mine"); });'],
  ['a listener', 'store.addEventListener("status", () => { store.set("own", 1); throw new Error("mine"); });'],
  ['an object that is a listener', `store.addEventListener("status", { handleEvent() { store.set("own", 1);
    throw new Error("mine"); } });`],
]) {
  diskTest(`${what} that throws ends the program, when what it wrote is on the disk`, async (start, home) => {
    const program = start({ isFaulty: false });
    await program.run(open(home));
    await program.run('await store.synchronize();');
    program.run(`${observe} store.set("a", 1); await new Promise((go) => { setTimeout(go, 10_000); });`).catch(() => {});
    assert.deepEqual(await program.ended, [1, null]);
    assert.match(program.errors, /Error: mine/);
    assert.equal(await reopened(start, home, 'own'), 1);
    assert.equal(await reopened(start, home, 'a'), 1);
  });
}
