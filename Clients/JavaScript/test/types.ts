// SPDX-License-Identifier: Apache-2.0

// Checked with `tsc --strict`: what an app writes compiles, and the sources have what is declared.
import { Real, Store, Value, openDevice, openStore, real } from '../index';
import * as node from '../src/node.js';

export async function app(): Promise<Value | undefined> {
  const device = await openDevice({ home: 'data' });
  const store: Store = await device.openStore('T.app', { firstSync: 'timestamps' });
  store.set('volume', real(1));
  store.batch(({ set, remove }) => { set('a', [1, 2n, new Date()]); remove('b'); });
  store.setConflictPolicy('note', 'custom', (earlier, later) => [earlier.value, later.value]);
  store.addEventListener('change', ({ reason, keys }) => console.log(reason, keys));
  for await (const { keys } of store.changes()) if (keys.length > 1) break;
  await (await openStore({ home: 'other', identifier: 'T.app' })).close();
  const volume = store.get('volume');
  return volume instanceof Real ? volume.value : volume;
}

type Members<Declared> = { [Name in keyof Declared]: unknown };
type Made = Awaited<ReturnType<typeof node.openDevice>>;
export const hasDevice = (made: Made): Members<ReturnType<typeof openDevice> extends Promise<infer D>
  ? D : never> => made;
export const hasStore = (made: Awaited<ReturnType<typeof node.openStore>>): Members<Store> => made;
