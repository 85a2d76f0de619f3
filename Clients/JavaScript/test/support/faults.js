// SPDX-License-Identifier: Apache-2.0

/** A program in Node whose disk fails on demand, at the calls that a test chooses: Tests/Faults/faults.c. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../../../Tests/Faults/faults.c', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ubiquity-faults-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const library = join(folder, 'faults.so');

const compiler = process.platform === 'linux' && ['cc', 'clang'].find((name) => {
  try { return execFileSync('which', [name], { stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return false; }
});
if (compiler) execFileSync(compiler, ['-shared', '-fPIC', '-O1', '-o', library, source]);
export const skip = compiler ? false : 'there is no C compiler for Tests/Faults';

let count = 0;

/** Runs what it is sent, one body of an asynchronous function after the other. */
export class Program {
  /** @param {{cwd?: string, isFaulty?: boolean}} options */
  constructor({ cwd = undefined, isFaulty = true } = {}) {
    count += 1;
    this.rules = join(folder, `rules-${count}`);
    const code = `
      import { createInterface } from 'node:readline';
      import * as client from ${JSON.stringify(new URL('../../src/node.js', import.meta.url).href)};
      Object.assign(globalThis, client);
      for await (const line of createInterface({ input: process.stdin })) {
        const body = new (async () => {}).constructor(JSON.parse(line));
        const outcome = await body().then((value) => ({ value }), ({ code, message }) => ({ code, message }));
        console.log(JSON.stringify(outcome));
      }`;
    const faults = { LD_PRELOAD: library, UBIQUITY_FAULTS: this.rules, UV_USE_IO_URING: '0' };
    this.child = spawn(process.execPath, ['--input-type=module', '--eval', code], { cwd,
      stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...(isFaulty ? faults : {}) } });
    this.ended = once(this.child, 'exit');
    this.errors = '';
    this.child.stderr.setEncoding('utf8').on('data', (text) => { this.errors += text; });
    this.child.stdin.on('error', () => {});
    this.answers = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  /** @returns {Promise<any>} What the body returns, as JSON has it. An error has its code. */
  async run(body) {
    this.child.stdin.write(`${JSON.stringify(body)}\n`);
    const { value: line, done } = await this.answers.next();
    if (done) throw new Error(`the program has ended: ${this.errors}`);
    const { value, code, message } = JSON.parse(line);
    if (message === undefined) return value;
    throw Object.assign(new Error(message), { code });
  }

  /** From here on, these calls fail, and no others. Each rule is a line of faults.c. */
  fail(...rules) {
    writeFileSync(`${this.rules}.new`, rules.join('\n'));
    renameSync(`${this.rules}.new`, this.rules);
  }

  /** The calls that have failed. */
  get failures() {
    return existsSync(`${this.rules}.log`) ? readFileSync(`${this.rules}.log`, 'utf8').trim().split('\n') : [];
  }

  /** As a machine without power ends it. */
  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
