// SPDX-License-Identifier: Apache-2.0

/**
 * The page's knowledge: this browser as a device of an account, the store that is shown, what others have that is
 * not sent, and the names of stores and devices.
 */

import { openDevice, unsentStores, UbiquityError } from './client/browser.js';
import { checkedList, compareText, fromWire } from './client/exact.js';
import { ownAddress, shownName } from './text.js';

/** Of several servers on one host, each has its own. */
const home = () => `page${new URL('.', location.href).pathname.slice(0, -1)}`;
const notesKey = () => `ubiquity ${home()}`;
/** Stores whose deliveries are asked for. */
const deliveriesMax = 50;
/** How long a save, and the sending of a store that is not shown, may take. */
const saveMilliseconds = 10_000;
const sendMilliseconds = 60_000;
/** When stores are tried again that could not be sent, and the disk is read for what other tabs have left. */
const retryMilliseconds = 15_000;
const lookMilliseconds = 300_000;

/** The result of a promise; false if it takes too long. */
const within = (milliseconds, promise) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds, false);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
});

/** Devices with names that tell them apart: of several with one name, each has the beginning of its ID, too. */
export function distinct(devices) {
    const isShared = (name) => devices.filter((one) => one.name === name).length > 1;
    return devices.map((device) => (isShared(device.name)
        ? { ...device, name: `${device.name} (${device.id.slice(0, 8)})` } : device));
}

/** The page's own storage: the names of an account, shown while there is no server. */
function readNotes(account) {
    const none = { account, stores: [], apps: [], devices: [], store: null };
    try {
        const kept = JSON.parse(localStorage.getItem(notesKey()) ?? '{}');
        if (kept.account === account) return { ...none, ...kept };
        // Of an account that was here before.
        localStorage.removeItem(notesKey());
        return none;
    } catch { return none; }
}

const systems = [[/Android/, 'Android'], [/iPhone/, 'iPhone'], [/iPad/, 'iPad'], [/Windows/, 'Windows'],
    [/Mac OS X/, 'Mac'], [/CrOS/, 'Chromebook'], [/Linux/, 'Linux']];
const browsers = [[/Edg\//, 'Edge'], [/OPR\//, 'Opera'], [/Firefox\//, 'Firefox'], [/Chrome\//, 'Chrome'],
    [/Safari\//, 'Safari']];

/** Such as "Firefox on Linux". */
export function browserName() {
    const find = (list, other) => list.find(([pattern]) => pattern.test(navigator.userAgent))?.[1] ?? other;
    return `${find(browsers, 'Browser')} on ${find(systems, 'a device')}`;
}

export class Model extends EventTarget {
    store = null;
    /** The last opening or closing of a store. */
    opening = Promise.resolve();
    /** The stores that are not shown and have unsent changes, with the number of their keys. @type {Map<string, number>} */
    others = new Map();
    /** The writes of the store that is shown which the server has refused. */
    refused = [];
    /** So many writes were made here, and the disk has the first so many of them. */
    written = 0;
    saved = 0;
    /** Whether the disk has refused something, and nobody has asked since whether it has it by now. */
    isRefused = false;
    /** The store that was locked when it was last connected. */
    locked = null;
    /** The store that is open to be sent. */
    sending = null;
    isSending = false;

    static async open() {
        const model = new Model();
        model.device = await openDevice({ home: home() });
        model.notes = readNotes(model.account?.id);
        return model;
    }

    get account() { return this.device.account; }

    /** @private */
    note(changes) {
        Object.assign(this.notes, changes);
        try {
            localStorage.setItem(notesKey(), JSON.stringify(this.notes));
        } catch { /* Without these names, the page is only less helpful offline. */ }
    }

    tell(name) { this.dispatchEvent(new Event(name)); }

    // Stores

    /** Asks for the account's stores and devices; both stay as they were if the server is away. */
    async refreshNames() {
        const stores = this.device.stores().then((stores) => {
            const names = stores.map(({ identifier }) => identifier);
            const own = this.notes.store && !names.includes(this.notes.store) ? [this.notes.store] : [];
            const apps = stores.filter(({ appName }) => appName).map(({ identifier, appName }) => [identifier, appName]);
            this.note({ stores: [...names, ...own].sort(), apps });
            this.tell('stores');
        });
        const devices = this.device.devices().then((devices) => {
            this.note({ devices: distinct(devices).map(({ id, name }) => [id, name]) });
            this.tell('devices');
        });
        await Promise.allSettled([stores, devices]);
    }

    /** Stores are opened and closed one after another. @private */
    inTurn(act) {
        const turn = this.opening.then(act);
        this.opening = turn.catch(() => {});
        return turn;
    }

    /**
     * Opens a store in place of the one before, whose changes are on the disk then; of several at once, the last
     * one stays.
     */
    openStore(identifier) { return this.inTurn(() => this.replaceStore(identifier)); }

    /** @private */
    async replaceStore(identifier) {
        if (this.store?.identifier === identifier) return;
        const old = this.store;
        if (old && !await within(saveMilliseconds, old.synchronize())) {
            throw new Error(`What you changed in ${this.storeName(old.identifier)} cannot be saved in this browser. The store stays open`);
        }
        this.store = null;
        this.saved = this.written;
        this.listening?.abort();
        if (old !== this.sending) await old?.close();
        const isOpen = this.sending?.identifier === identifier;
        const store = isOpen ? this.sending : await this.device.openStore(identifier);
        this.store = store;
        this.refused = [];
        this.others.delete(identifier);
        this.listening = new AbortController();
        const { signal } = this.listening;
        const stores = [...new Set([...this.notes.stores, identifier])].sort();
        this.note({ store: identifier, stores });
        store.addEventListener('status', () => {
            // The client tries the disk again and again.
            if (this.isRefused && store.status.diskError === null) this.save();
            this.tell('status');
        }, { signal });
        store.addEventListener('problem', ({ detail }) => this.dispatchEvent(Object.assign(new Event('problem'), { detail })), { signal });
        store.addEventListener('change', (event) => {
            if (event.reason === 'quotaViolation') this.readRefused();
            this.dispatchEvent(Object.assign(new Event('change'), { keys: event.keys, reason: event.reason }));
        }, { signal });
        this.tell('stores');
        await this.readRefused();
    }

    /** @private */
    async readRefused() {
        const { store } = this;
        const refused = await store.refusedWrites().catch(() => []);
        if (store !== this.store) return;
        this.refused = refused;
        this.tell('status');
    }

    async forgetRefused() {
        await this.store.forgetRefusedWrites();
        await this.readRefused();
    }

    // Stores that are not shown

    /**
     * Sends what stores have that are not shown: those of before, of other tabs, and of pages that were closed. One
     * at a time, as each has a connection, and browsers open six.
     */
    async sendOthers() {
        clearTimeout(this.timer);
        // What is wrong with the disk, the store that is shown says.
        await this.look().catch(() => {});
        if (this.isSending) return;
        const tried = new Set();
        const next = () => [...this.others.keys()].find((identifier) => !tried.has(identifier));
        this.isSending = true;
        for (let identifier = next(); identifier; identifier = next()) {
            tried.add(identifier);
            // One that is damaged, or refused, does not keep the next one away.
            await this.send(identifier).catch(() => {});
            await this.look().catch(() => {});
        }
        this.isSending = false;
        if (!this.account) return;
        this.timer = setTimeout(() => this.sendOthers(), this.others.size ? retryMilliseconds : lookMilliseconds);
    }

    /** Looks on the disk, which knows what all tabs have kept. @private */
    async look() {
        if (!this.account) return;
        const kept = (await unsentStores(this.device)).filter(({ isOwn, identifier }) =>
            isOwn && identifier !== this.store?.identifier);
        this.others = new Map(kept.map(({ identifier, keys }) => [identifier, keys]));
        this.tell('status');
    }

    /** @private */
    async send(identifier) {
        const store = await this.inTurn(async () => {
            if (!this.account || this.store?.identifier === identifier) return null;
            this.sending = await this.device.openStore(identifier);
            return this.sending;
        });
        if (!store) return;
        const { length } = await store.refusedWrites();
        await within(sendMilliseconds, store.synchronizeNow()).catch(() => {});
        await this.inTurn(async () => {
            this.sending = null;
            if (this.store === store) return;
            if ((await store.refusedWrites()).length > length) {
                this.dispatchEvent(Object.assign(new Event('refused'), { identifier }));
            }
            await store.close();
        });
    }

    /** What would be lost with this browser's disk, by stores. @returns {Promise<{identifier: string, keys: number, isOwn: boolean}[]>} */
    async unsent() {
        const { store } = this;
        if (store) await within(saveMilliseconds, store.synchronize());
        const kept = await unsentStores(this.device);
        const waiting = store?.status.pendingKeys.length ?? 0;
        if (!waiting) return kept;
        // What the disk refuses is lost too.
        const others = kept.filter(({ isOwn, identifier }) => !isOwn || identifier !== store.identifier);
        return [...others, { identifier: store.identifier, keys: waiting, isOwn: true }];
    }

    get status() { return this.store?.status ?? null; }

    /** Whether the account is sealed, and this browser does not have its key; as last known, while there is no connection. */
    get isLocked() {
        const connection = this.status?.connection;
        if (connection === 'locked') this.locked = this.store;
        else if (!['connecting', 'waiting'].includes(connection)) this.locked = null;
        return this.store !== null && this.locked === this.store;
    }

    /** Whether the account is sealed, and this browser has its keys. */
    get hasKeys() { return this.device.keyring !== undefined; }

    /** What can be seen of the shown store's keys without the account's key, in the order of the keys. */
    async sealedKeys() {
        const { identifier } = this.store;
        const mark = await this.device.ask(['sealing']);
        const whole = await this.device.ask(['stores', identifier, 'whole'], { query: { generation: Number(mark?.generation) || 0 } });
        const keys = new Map();
        for (const { key, value, device, milliseconds } of checkedList(whole, 'records')) {
            if (!value) continue;
            const box = value.sealed?.box;
            const size = typeof box === 'string' ? Math.floor(box.length * 3 / 4) : 0;
            const date = new Date(Number(milliseconds));
            const known = keys.get(key) ?? { key: String(key), isSealed: true, size: 0, deviceID: null, date: new Date(0) };
            known.size += size;
            if (!value.sealed) known.isSealed = false;
            if (date >= known.date) Object.assign(known, { date, deviceID: /^0*$/.test(device) ? null : device });
            keys.set(key, known);
        }
        return [...keys.values()].sort((a, b) => compareText(a.key, b.key));
    }

    keys() { return this.store?.keys() ?? []; }

    /** The value of a key in the protocol's form, which tells all types apart; null for none. */
    value(key) { return this.store?.exact(key) ?? null; }

    /** A key's share of the store's bytes. */
    bytes(key) { return this.store.bytes(key); }

    /**
     * Writes several keys as one transaction; null removes. A key that merges is changed by the
     * difference. Returns the values from before.
     * @param {Map<string, any>} values @param {string} identifier The store that they are meant for.
     */
    write(values, identifier) {
        if (this.store?.identifier !== identifier) {
            throw new Error(`Open ${this.storeName(identifier)} again to change it: another store is shown now`);
        }
        const before = new Map([...values.keys()].map((key) => [key, this.value(key)]));
        this.store.revert(new Map([...values].map(([key, wire]) => [key, wire ? fromWire(wire) : null])));
        this.written += 1;
        this.dispatchEvent(Object.assign(new Event('change'), { keys: [...values.keys()], reason: 'localChange' }));
        return before;
    }

    /** Whether something that was written here is not on the disk. */
    get isUnsaved() { return this.saved < this.written; }

    /** Waits until all that was written is on the disk; false if it cannot be saved now. @returns {Promise<boolean>} */
    async save() {
        const { store, written } = this;
        this.isRefused = false;
        const isSaved = await store.synchronize();
        if (!isSaved) this.isRefused = true;
        else if (this.saved < written) {
            this.saved = written;
            this.tell('status');
        }
        return isSaved;
    }

    /** The last write of a key: its device and its date; null if none is known. */
    author(key) { return this.store?.lastWrite(key) ?? null; }

    /** What people call a store: the name of its app, if the server has one. */
    storeName(identifier) {
        const name = new Map(this.notes.apps).get(identifier);
        if (!name) return identifier;
        const isShared = this.notes.apps.filter(([, one]) => one === name).length > 1;
        return isShared ? `${shownName(name)} (${identifier})` : shownName(name);
    }

    /** The name of a device, for people. */
    deviceName(id) {
        if (id === this.account?.deviceID) return 'this browser';
        // Written before a sign-in, or by the server's bookkeeping.
        if (id === null) return 'this account';
        return new Map(this.notes.devices).get(id) ?? 'a former device';
    }

    // Devices

    /** All devices, each with how far it is behind. */
    async devices() {
        const [devices, stores] = await Promise.all([this.device.devices(), this.device.stores()]);
        this.note({ devices: distinct(devices).map(({ id, name }) => [id, name]) });
        const behind = new Map();
        await Promise.all(stores.slice(0, deliveriesMax).map(async ({ identifier }) => {
            const { devices: having } = await this.device.delivery(identifier);
            for (const one of having.filter(({ hasStore }) => hasStore)) behind.set(one.id, (behind.get(one.id) ?? 0) + one.behind);
        }));
        return distinct(devices).map((device, i) =>
            ({ ...device, ownName: devices[i].name, behind: behind.get(device.id) ?? null }));
    }

    // Signing in and out

    /**
     * With the code of an empty server's log, `accountName` is the name of its first account. `isWanted` is asked
     * with the account's name, before anything here is its own; `allowsUnsealed`, where this browser has had a sealed
     * account, and this one is not.
     * @param {{allowsUnsealed?: () => Promise<boolean>} & ({code: string, accountName?: string,
     *     isWanted?: (name: string) => Promise<boolean>} | {identityToken: string})} proof
     */
    async signIn(proof, deviceName) {
        await this.device.signIn({ ...here(), ...proof, deviceName });
        this.notes = readNotes(this.account.id);
    }

    /**
     * Asks for an approval; `approved` resolves when the browser is signed in. The page does not show the code that would
     * bring the keys of a sealed account: it is locked at first, and says whom it trusts before it takes them.
     */
    async requestSignIn(options, deviceName) {
        const { userCode, link, account } = await this.device.requestSignIn({ ...here(), ...options, deviceName, withSecret: false });
        return { userCode, link, approved: async (signal) => {
            await account({ signal });
            this.notes = readNotes(this.account.id);
        } };
    }

    /** Signs out, and removes all that the page keeps in this browser. */
    async signOut() {
        this.store = null;
        this.saved = this.written;
        this.listening?.abort();
        clearTimeout(this.timer);
        await this.inTurn(() => this.device.erase());
        localStorage.removeItem(notesKey());
    }
}

/** The page's own server. Over plain HTTP, it came that way already. */
const here = () => ({ server: ownAddress(), allowsPlainHTTP: location.protocol === 'http:' });

/** The configuration that the server gives everybody; empty if it does not answer. */
export async function readConfig() {
    try {
        return await (await fetch('v1/config', { headers: { Accept: 'application/json' }, cache: 'no-store' })).json();
    } catch { return {}; }
}

/** A failure as a sentence for people. A name at its beginning, such as a key or an address, stays as it is. */
export function sentenceOf(error, names = []) {
    // Some of a browser's own errors have a name alone.
    const text = String(error?.message || error || 'The reason is not known');
    const isAway = error instanceof UbiquityError && ['unreachable', 'timedOut'].includes(error.code);
    if (isAway) return 'The server does not answer. Try again when it can be reached.';
    const isWord = /^[a-z]+(?=[\s,.!?]|$)(?!\.\S)/.test(text) && !names.some((name) => text.startsWith(name));
    return `${isWord ? text.charAt(0).toUpperCase() : text.charAt(0)}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}
