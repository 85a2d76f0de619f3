// SPDX-License-Identifier: Apache-2.0

// Checked with `tsc --strict`: what an app writes compiles, what it must not write does not, and the sources have
// what is declared.
import {
  ChangeEvent, ErrorCode, Store, UbiquityError, Value, openDevice, openStore, real,
} from '../index';
import * as node from '../src/node.js';

interface Point { x: number; y: number; label?: string }

export async function app(): Promise<Value | undefined> {
  const device = await openDevice({ home: 'data' });
  const store: Store = await device.openStore('T.app', { firstSync: 'timestamps' });
  store.set('volume', real(1));
  store.batch(({ set, remove }) => { set('a', [1, 2n, new Date(), real(3)]); remove('b'); });
  const point: Point = { x: 1, y: 2 };
  store.set('point', point);
  store.set('points', { all: [point], by: new Uint8Array(2) });
  // @ts-expect-error A store does not hold this.
  store.set('map', new Map());
  // @ts-expect-error Nor this, within something else.
  store.set('f', { f: () => 1 });
  // @ts-expect-error Nor this.
  store.set('symbol', Symbol('a'));
  store.set('none', null);
  store.setConflictPolicy('note', 'custom', (earlier, later) => [earlier.value, later.value]);
  const hear = ({ reason, keys }: ChangeEvent): void => console.log(reason, keys);
  store.addEventListener('change', hear, { once: true });
  store.removeEventListener('change', hear);
  store.addEventListener('change', (event) => console.log(event.keys.length));
  const { signal } = new AbortController();
  for await (const { keys } of store.changes({ signal })) if (keys.length > 1) break;
  const stop = store.subscribe('volume', (value) => console.log(value), { signal });
  stop();
  await (await openStore({ identifier: 'T.app' })).close();
  try { store.set('b', 1); } catch (error) {
    const codes: ErrorCode[] = ['quota-bytes', 'closed'];
    if (error instanceof UbiquityError && (codes as string[]).includes(error.code)) return error.keys;
  }
  const volume = store.get('volume');
  return typeof volume === 'number' ? volume.toFixed(1) : volume;
}

interface Settings { theme: 'dark' | 'light'; volume: number; points: Point[]; any: Value }

export async function typed(): Promise<number> {
  const store = await openStore<Settings>({ home: 'data', identifier: 'T.app' });
  store.set('theme', 'dark');
  store.set('volume', real(1));
  store.set('points', [{ x: 1, y: real(2) }]);
  store.set('any', [1, real(2)]);
  // @ts-expect-error No such theme.
  store.set('theme', 'blue');
  // @ts-expect-error No such key.
  store.get('thene');
  // @ts-expect-error A label is a text.
  store.set('points', [{ x: 1, y: 2, label: 3 }]);
  const points = store.get('points');
  // @ts-expect-error What is read is frozen.
  points?.push({ x: 1, y: 2 });
  store.set('points', [...points ?? [], { x: 1, y: 2 }]);
  store.batch(({ get, set }) => set('volume', (get('volume') ?? 0) + 1));
  store.subscribe('theme', (theme: 'dark' | 'light' | undefined) => theme);
  for (const key of store.keys()) if (key === 'any') store.remove(key);
  const [version] = await store.history('points');
  store.revert([['points', version.value]]);
  store.revert((await store.valuesAt(new Date())).values);
  return (store.get('volume') ?? 0) + (points?.[0].x ?? 0);
}

type Members<Declared> = { [Name in keyof Declared]: unknown };
type Made = Awaited<ReturnType<typeof node.openDevice>>;
export const hasDevice = (made: Made): Members<ReturnType<typeof openDevice> extends Promise<infer D>
  ? D : never> => made;
export const hasStore = (made: Awaited<ReturnType<typeof node.openStore>>): Members<Store> => made;
