// SPDX-License-Identifier: Apache-2.0

/**
 * A device: the sign-in that all stores of a home share, on a platform with a disk. index.d.ts says what its
 * members are for.
 */

import { checkedList } from './exact.js';
import { inClear, knownOf, keyringOf, newState, owned, signedIn, signedOut, withKeys, withSealed } from './account.js';
import { isCredential, isLoopback, request, serverAddress } from './http.js';
import { frontOf, handOver, isKeyCode, keysOf, newCode, repeat, sealingOf, withFront } from './keys.js';
import { Pool } from './pool.js';
import { Store } from './store.js';
import { UbiquityError, WireError } from './values.js';

const document = 'account';
/** The longest that a sign-in request can be approved. */
const requestMilliseconds = 660_000;
const date = (milliseconds) => (Number(milliseconds) ? new Date(Number(milliseconds)) : null);

/** @param {Folder} folder @param {() => Promise<WebAssembly.Module>} compile @param {import('./pool.js').Slots} [slots] */
export async function openDeviceIn(folder, compile, slots = undefined) {
  try { return await Device.open(folder, compile, slots); } catch (error) {
    await folder.close();
    throw error;
  }
}

/**
 * A store with a device of its own, which is closed with it.
 * @param {Device} device @param {{identifier?: string}} options
 */
export async function openStoreOf(device, { identifier, ...options }) {
  try {
    return Object.assign(await device.openStore(identifier, options), { ownsDevice: true });
  } catch (error) {
    await device.close();
    throw error;
  }
}

export class Device {
  /** @type {Set<Store>} */
  openStores = new Set();
  state = newState();
  /** Keys that are not on the disk, by account: of this tab, and of others that are open. @type {Record<string, any>} */
  unkept = {};
  isClosed = false;
  requests = new AbortController();
  /** @type {Promise<void> | null} */
  closing = null;
  /** The connections, from the first store on. @type {Pool | null} */
  pool = null;

  /**
   * Use `openDevice`.
   * @param {Folder} folder @param {() => Promise<WebAssembly.Module>} compile @param {import('./pool.js').Slots} [slots]
   */
  constructor(folder, compile, slots = undefined) {
    this.folder = folder;
    this.compile = compile;
    this.slots = slots;
  }

  /** @param {Folder} folder @param {() => Promise<WebAssembly.Module>} compile @param {import('./pool.js').Slots} [slots] */
  static async open(folder, compile, slots) {
    const device = new Device(folder, compile, slots);
    await device.read();
    // A sign-out that was cut off has left what no account has any more.
    await folder.removeUnowned(owned);
    folder.onMessage((message) => device.hear(message));
    folder.post('unkept keys');
    return device;
  }

  /** Nothing of the credential. */
  toJSON() { return { account: this.account }; }
  [Symbol.for('nodejs.util.inspect.custom')]() { return this.toJSON(); }

  async read() { this.state = this.withUnkept(await this.folder.readAccount() ?? newState()); }

  withUnkept(state) {
    return Object.entries(this.unkept).reduce((all, [account, keyring]) => withKeys(all, { account }, keyring), state);
  }

  /** What another tab says. */
  async hear(message) {
    if (message === 'unkept keys') {
      if (Object.keys(this.unkept).length) this.folder.post({ unkept: this.unkept });
      return;
    }
    if (message?.unkept) this.unkept = { ...this.unkept, ...message.unkept };
    else if (message !== document) return;
    try {
      await this.read();
      await this.tellStores();
    } catch { /* The next message, or a reload, finds the same. */ }
  }

  get account() {
    if (!this.state.signedIn) return null;
    const { account, accountName, server, device, deviceName } = this.state.signedIn;
    return { id: account, name: accountName, server, deviceID: device, deviceName, isSealed: this.known(account).isSealed };
  }

  /** Opens a store. @param {string} identifier Such as `TEAMID.com.example.app`. */
  async openStore(identifier, options = {}) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(identifier)) {
      throw new UbiquityError('identifier', `"${identifier}" is not a store's identifier: 1 to 255 `
        + 'letters, digits, dots, hyphens and underscores');
    }
    const module = await this.compile();
    if ([...this.openStores].some((store) => store.identifier === identifier)) {
      throw new UbiquityError('open', `the store ${identifier} is open already`);
    }
    this.checkOpen();
    this.pool ??= new Pool(module, this.slots);
    const store = new Store(this, identifier, options, module);
    this.openStores.add(store);
    try { await store.start(); } catch (error) {
      this.openStores.delete(store);
      throw error;
    }
    return store;
  }

  /** The state is on disk before anything follows it. @param {(state: any) => any} change */
  async adopt(change) {
    await this.saveStores();
    this.state = this.withUnkept(await this.folder.changeAccount((state) => change(state ?? newState())));
    this.folder.post(document);
    await this.tellStores();
  }

  /** What is open is on the disk before another account is; but not a store that can only be read. */
  async saveStores() {
    for (const { shell, identifier } of this.openStores) {
      if (!shell.recovery.isOver && !await shell.synchronize()) {
        throw new UbiquityError('storage', `the store ${identifier} cannot be saved`);
      }
    }
    this.checkOpen();
  }

  async tellStores() { for (const store of this.openStores) await store.followAccount(); }

  // Signing in and out

  /**
   * Signs in with a code from the operator, or from another device, or with an identity provider's token.
   * With the code of an empty server's log, `accountName` is the name of its first account.
   */
  async signIn({ server = undefined, code = undefined, accountName = undefined, identityToken = '',
    deviceName = 'browser', allowsPlainHTTP = false, allowsUnsealed = false, isWanted = undefined }) {
    const keyCode = isKeyCode(code) ? code : '';
    if (keyCode) {
      const front = await frontOf(this, keyCode);
      const end = front.indexOf('#');
      [server, code] = [server ?? front.slice(0, Math.max(end, 0)), front.slice(end + 1)];
    }
    // The part after the semicolon is the server's key, which this platform cannot check.
    if (code?.includes?.(';')) {
      throw new UbiquityError('refused', 'the link carries the server\'s key, which cannot be checked here; '
        + 'sign in at a server whose certificate the system trusts, by the code alone');
    }
    const token = String(identityToken).trim();
    if (token && !isCredential(token)) {
      throw new UbiquityError('refused', 'an identity token has visible characters of ASCII only, and no spaces');
    }
    const terms = { server: serverAddress(server, allowsPlainHTTP), deviceName, allowsPlainHTTP, allowsUnsealed,
      identityToken: token, isWanted, keyCode };
    await this.prepare();
    return this.complete(token ? {} : { code, accountName }, terms);
  }

  /** A code works once: an engine that is not there, or a disk that cannot have the sign-in, is found before. */
  async prepare() {
    await this.compile();
    this.folder.persist?.();
    await this.saveStores();
    await this.folder.changeAccount((state) => state ?? newState());
  }

  async complete(secret, terms) {
    const { server, deviceName, allowsPlainHTTP, identityToken = '', isWanted, keyCode, allowsUnsealed } = terms;
    const { signal = this.requests.signal, pause = 0, end = 0 } = terms;
    const answer = await repeat(() => request({ server, credential: identityToken }, ['sign-in'],
      { method: 'POST', body: { ...secret, deviceName }, signal }), 'sign-in-pending', pause, end, signal);
    const { account, accountName = '', credential } = answer ?? {};
    if (typeof account !== 'string' || !isCredential(credential)) {
      throw new UbiquityError('unreachable', `${server} is not a Ubiquity server`);
    }
    const device = checkedDevice(answer.device);
    const now = { server, allowsPlainHTTP, account, accountName, device, deviceName, credential };
    let old = null;
    try {
      if (isWanted && !await isWanted(accountName)) {
        throw new UbiquityError('declined', 'nobody was signed in; the code is used up');
      }
      const decide = await sealingOf(this, keyCode, now, signal);
      await this.read();
      const { doubt } = decide(this.known(account));
      if (doubt && !(typeof allowsUnsealed === 'function' ? await allowsUnsealed(doubt) : allowsUnsealed)) throw notSealed(doubt);
      await this.adopt((state) => {
        old = state.signedIn;
        const sealing = decide(knownOf(this.withUnkept(state), account));
        if (sealing.doubt && !doubt) throw notSealed(sealing.doubt);
        if (sealing.doubt) {
          delete this.unkept[account];
          return inClear(signedIn(state, now), account);
        }
        if (sealing.keyring && !this.unkept[account]) return withKeys(signedIn(state, now), now, sealing.keyring);
        return sealing.isSealed ? withSealed(signedIn(state, now), account) : signedIn(state, now);
      });
    } catch (error) {
      await revoke({ server, device, credential });
      throw error;
    }
    if (old) await revoke(old);
    return this.account;
  }

  /** What this device knows of an account's keys. @param {string} account @returns {Known} */
  known(account) { return knownOf(this.state, account); }

  /** A store has heard that its account is sealed. The others follow. @param {string} account */
  async noteSealed(account) {
    if (this.known(account).isSealed) return;
    this.state = this.withUnkept(await this.folder.changeAccount((state) => withSealed(state ?? newState(), account)));
    this.folder.post(document);
    for (const { shell } of this.openStores) shell.report({ do: 'accountChanged' });
  }

  async requestSignIn({ server, deviceName = 'browser', allowsPlainHTTP = false, allowsUnsealed = false, withSecret = true,
    ...wanted }) {
    const address = serverAddress(server, allowsPlainHTTP);
    const answer = await request({ server: address }, ['sign-in-requests'],
      { method: 'POST', body: { deviceName, ...rights(wanted) } });
    const userCode = answer?.userCode;
    const pause = Math.min(Math.max(Number(answer?.intervalSeconds) || 1, 1), 60) * 1_000;
    const end = Date.now() + requestMilliseconds;
    const link = `${address}#${userCode}`;
    const code = withSecret ? withFront(link, await newCode(this)) : link;
    /** @param {{signal?: AbortSignal}} options */
    const account = async ({ signal = undefined } = {}) => {
      await this.prepare();
      return this.complete({ request: answer.request }, { server: address, deviceName, allowsPlainHTTP, allowsUnsealed,
        keyCode: withSecret ? code : '', pause, end, signal: this.until(signal) });
    };
    return { userCode: String(userCode), link, code, expires: date(answer?.expiresMilliseconds), account };
  }

  /**
   * Signs out: the values stay, unless `wipes`. The server is asked to revoke the credential; if it cannot be
   * reached, the device is signed out all the same.
   */
  async signOut({ wipes = false } = {}) {
    let account = null;
    await this.adopt((state) => {
      account = state.signedIn;
      return account ? signedOut(state, wipes) : state;
    });
    if (!account) return;
    if (wipes) {
      this.unkept = {};
      await this.read();
      await this.folder.removeUnowned(owned);
    }
    await revoke(account);
  }

  async erase() {
    // What cannot be saved goes all the same.
    for (const store of [...this.openStores]) {
      store.ownsDevice = false;
      await store.close().catch(() => {});
    }
    let account = null;
    this.unkept = {};
    // From here on, nothing belongs to anybody, so that the next start removes what this one does not.
    await this.adopt((state) => {
      account = state.signedIn;
      return signedOut({ ...state, folders: {} }, true);
    });
    // At once: when the credential is gone from the disk, nobody can revoke it any more.
    const revoked = account ? revoke(account) : null;
    this.isClosed = true;
    this.requests.abort();
    await this.folder.erase();
    await revoked;
  }

  // The keys of a sealed account

  async unlockCode() {
    const { device } = this.checkedAccount();
    // A device that is confined to some stores must not ask for the keys of all.
    return newCode(this, checkedList(await this.ask(['devices', device]), 'stores').map(String));
  }

  /** @param {string} code @param {{signal?: AbortSignal, isKept?: boolean}} options */
  async unlock(code, { signal = undefined, isKept = true } = {}) {
    const account = this.checkedAccount();
    const join = await keysOf(this, String(code), account, this.until(signal));
    await this.adopt((state) => {
      if (state.signedIn?.account !== account.account) throw signedOutError();
      const keyring = join(keyringOf(this.withUnkept(state), account));
      if (isKept) return withKeys(state, account, keyring);
      this.unkept = { ...this.unkept, [account.account]: keyring };
      return withSealed(state, account.account);
    });
    if (!isKept) this.folder.post({ unkept: this.unkept });
  }

  /** The keys of the account, if it is sealed and this device has them. */
  get keyring() { return this.state.signedIn ? keyringOf(this.state, this.state.signedIn) : undefined; }

  async handOver(code) {
    const account = this.checkedAccount();
    await handOver(this, String(code), account, this.known(account.account));
  }

  /** @param {AbortSignal | undefined} signal @returns {AbortSignal} */
  until(signal) {
    return /** @type {any} */ (AbortSignal).any([this.requests.signal, ...(signal ? [signal] : [])]);
  }

  // The person's devices

  /** @returns {SignedIn} */
  checkedAccount() {
    const account = this.state.signedIn;
    if (!account) throw signedOutError();
    return account;
  }

  /** @param {SignedIn} account */
  async askAs(account, segments, options = {}) {
    try { return await request(account, segments, { signal: this.requests.signal, ...options }); } catch (error) {
      this.checkOpen();
      throw error;
    }
  }

  checkOpen() { if (this.isClosed) throw new UbiquityError('closed', 'the device is closed'); }

  async ask(segments, options = {}) { return this.askAs(this.checkedAccount(), segments, options); }

  async pair(wanted = {}) {
    const answer = await this.ask(['codes'], { method: 'POST', body: rights(wanted) });
    let server = this.state.signedIn?.server ?? '';
    // Others need the address that the server says, where this device uses one that only its machine can.
    if (answer.server && isLoopback(server)) server = serverAddress(String(answer.server), true);
    const pin = /^sha256\/\/[A-Za-z0-9+/]{43}=$/.test(answer.pin) ? answer.pin : null;
    const code = String(answer.code);
    const link = `${server}#${code}${pin ? `;${pin}` : ''}`;
    const account = this.checkedAccount();
    const whole = withFront(link, await newCode(this));
    const isSealed = await handOver(this, whole, account, this.known(account.account), { stores: wanted.stores, isOwn: true });
    return { code, server, pin, link, wholeCode: isSealed ? whole : link, expires: date(answer.expiresMilliseconds) };
  }

  /** The device that shows a code. It may be a stranger's: ask the person. @param {string} code */
  async waitingDevice(code) {
    // With a secret, it has the link in front of it, and perhaps the server's key behind that.
    const front = isKeyCode(code) ? await frontOf(this, code) : code;
    const userCode = isKeyCode(code) ? front.split('#').at(-1).split(';')[0] : code;
    const answer = await this.ask(['sign-in-requests', userCode]);
    return { userCode, code, name: String(answer.deviceName ?? ''), address: String(answer.address ?? ''),
      stores: answer.stores ?? [], validForSeconds: Number(answer.credentialSeconds ?? 0),
      expires: date(answer.expiresMilliseconds) };
  }

  async approve({ userCode, code = '', ...wanted }) {
    const account = this.checkedAccount();
    // The new device looks for it as soon as it is approved.
    if (isKeyCode(code)) await handOver(this, code, account, this.known(account.account), { stores: wanted.stores });
    await this.ask(['sign-in-requests', userCode, 'approval'], { method: 'POST', body: rights(wanted) });
  }

  async deny({ userCode }) { await this.ask(['sign-in-requests', userCode], { method: 'DELETE' }); }

  async devices() {
    return checkedList(await this.ask(['devices']), 'devices').map((one) => this.described(one));
  }

  described(device) {
    if (typeof device?.id !== 'string') throw new WireError('there is no device');
    return { id: device.id, name: device.name ?? '', signedIn: date(device.createdMilliseconds),
      lastSeen: date(device.seenMilliseconds), expires: date(device.expiresMilliseconds),
      stores: device.stores ?? null, version: device.version ?? '',
      clockAheadMilliseconds: device.clockMilliseconds ? Number(device.clockAheadMilliseconds ?? 0) : null,
      isThisDevice: device.id === this.state.signedIn?.device };
  }

  async stores() {
    return checkedList(await this.ask(['stores']), 'stores').map(({ identifier, keys, bytes, appName }) =>
      ({ identifier: String(identifier), appName: appName ? String(appName) : null, keys: Number(keys ?? 0),
        bytes: Number(bytes ?? 0) }));
  }

  /**
   * Which devices have a store's changes, as the server knows it. `waits`: this device has changes that the
   * server does not know.
   */
  async delivery(identifier, query = {}, waits = false) {
    const answer = await this.ask(['stores', identifier, 'devices'], { query });
    const devices = checkedList(answer, 'deliveries').map(({ device, hasStore, behind, isCurrent }) => ({
      ...this.described(device), hasStore: hasStore === true, behind: Number(behind ?? 0),
      isCurrent: isCurrent === true && (!waits || device.id === this.account?.deviceID),
    }));
    return { devices, isComplete: devices.every((one) => one.isCurrent || !one.hasStore) };
  }

  async renameDevice(id, name) {
    return this.described(await this.ask(['devices', id], { method: 'PATCH', body: { name } }));
  }

  async signOutDevice(id) { await this.ask(['devices', id], { method: 'DELETE' }); }

  close() {
    this.closing ??= this.finish();
    return this.closing;
  }

  /** Everything is closed, whatever cannot be saved. */
  async finish() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.requests.abort();
    const closing = await Promise.allSettled([...this.openStores].map((store) => {
      store.ownsDevice = false;
      return store.close();
    }));
    await this.folder.close();
    const failed = closing.find(({ status }) => status === 'rejected');
    if (failed) throw /** @type {PromiseRejectedResult} */ (failed).reason;
  }
}

const signedOutError = () => new UbiquityError('unauthorized', 'this device is not signed in');

/** @param {string} doubt */
const notSealed = (doubt) => new UbiquityError('notSealed', `${doubt}: nobody was signed in, and the code is used up`);

function checkedDevice(json) {
  if (typeof json === 'string' && /^[0-9a-fA-F]{16}$/.test(json)) return json.toLowerCase();
  throw new WireError('a device is not 16 hexadecimal digits');
}

/** If the server is away, the device can be revoked from another one. */
const revoke = (account) =>
  request(account, ['devices', account.device], { method: 'DELETE' }).catch(() => {});

/** @param {{stores?: string[], validForSeconds?: number}} wanted */
const rights = ({ stores, validForSeconds }) => ({
  ...(stores?.length ? { stores } : {}),
  ...(validForSeconds ? { credentialSeconds: String(validForSeconds) } : {}),
});
