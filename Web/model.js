// SPDX-License-Identifier: Apache-2.0

/**
 * The page's knowledge: this browser as a device of an account, the store that is open, and the names
 * of stores and devices.
 */

import { openDevice, UbiquityError } from './client/browser.js';
import { fromWire } from './client/values.js';

const notesKey = 'ubiquity page';
/** Stores whose deliveries are asked for. */
const deliveriesMax = 50;

/** The page's own storage: the names of an account, shown while there is no server. */
function readNotes(account) {
    const none = { account, stores: [], devices: [], store: null };
    try {
        const kept = JSON.parse(localStorage.getItem(notesKey) ?? '{}');
        return kept.account === account ? { ...none, ...kept } : none;
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
    /** The last opening of a store. */
    opening = Promise.resolve();

    static async open() {
        const model = new Model();
        model.device = await openDevice({ home: 'page' });
        model.notes = readNotes(model.account?.id);
        return model;
    }

    get account() { return this.device.account; }

    /** @private */
    note(changes) {
        Object.assign(this.notes, changes);
        try {
            localStorage.setItem(notesKey, JSON.stringify(this.notes));
        } catch { /* Without these names, the page is only less helpful offline. */ }
    }

    tell(name) { this.dispatchEvent(new Event(name)); }

    // Stores

    /** Asks for the account's stores and devices; both stay as they were if the server is away. */
    async refreshNames() {
        const stores = this.device.stores().then((stores) => {
            const names = stores.map(({ identifier }) => identifier);
            const own = this.notes.store && !names.includes(this.notes.store) ? [this.notes.store] : [];
            this.note({ stores: [...names, ...own].sort() });
            this.tell('stores');
        });
        const devices = this.device.devices().then((devices) => {
            this.note({ devices: devices.map(({ id, name }) => [id, name]) });
            this.tell('devices');
        });
        await Promise.allSettled([stores, devices]);
    }

    /** Opens a store in place of the one before; of several at once, the last one stays. */
    openStore(identifier) {
        const opening = this.opening.then(() => this.replaceStore(identifier));
        this.opening = opening.catch(() => {});
        return opening;
    }

    /** @private */
    async replaceStore(identifier) {
        if (this.store?.identifier === identifier) return;
        const old = this.store;
        this.store = null;
        await old?.close();
        const store = await this.device.openStore(identifier);
        this.store = store;
        const stores = [...new Set([...this.notes.stores, identifier])].sort();
        this.note({ store: identifier, stores });
        store.addEventListener('status', () => this.tell('status'));
        store.addEventListener('change', (event) => {
            this.dispatchEvent(Object.assign(new Event('change'), { keys: event.keys, reason: event.reason }));
        });
        this.tell('stores');
    }

    get status() { return this.store?.status ?? null; }
    keys() { return this.store?.keys() ?? []; }

    /** The value of a key in the protocol's form, which tells all types apart; null for none. */
    value(key) { return this.store?.exact(key) ?? null; }

    /** A key's share of the store's bytes. */
    bytes(key) { return this.store.bytes(key); }

    /**
     * Writes several keys as one transaction; null removes. A key that merges is changed by the
     * difference. Returns the values from before.
     * @param {Map<string, any>} values
     */
    write(values) {
        const before = new Map([...values.keys()].map((key) => [key, this.value(key)]));
        this.store.revert(new Map([...values].map(([key, wire]) => [key, wire ? fromWire(wire) : null])));
        this.dispatchEvent(Object.assign(new Event('change'), { keys: [...values.keys()], reason: 'localChange' }));
        return before;
    }

    /** The last write of a key: its device and its date; null if none is known. */
    author(key) { return this.store?.lastWrite(key) ?? null; }

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
        this.note({ devices: devices.map(({ id, name }) => [id, name]) });
        const behind = new Map();
        await Promise.all(stores.slice(0, deliveriesMax).map(async ({ identifier }) => {
            const { devices: having } = await this.device.delivery(identifier);
            for (const one of having.filter(({ hasStore }) => hasStore)) behind.set(one.id, (behind.get(one.id) ?? 0) + one.behind);
        }));
        return devices.map((device) => ({ ...device, behind: behind.get(device.id) ?? null }));
    }

    // Signing in and out

    /**
     * With the code of an empty server's log, `accountName` is the name of its first account.
     * @param {{code: string, accountName?: string} | {identityToken: string}} proof
     */
    async signIn(proof, deviceName) {
        await this.device.signIn({ ...here(), ...proof, deviceName });
        this.notes = readNotes(this.account.id);
    }

    /** Asks for an approval; `approved` resolves when the browser is signed in. */
    async requestSignIn(deviceName) {
        const { userCode, link, account } = await this.device.requestSignIn({ ...here(), deviceName });
        return { userCode, link, approved: async (signal) => {
            await account({ signal });
            this.notes = readNotes(this.account.id);
        } };
    }

    /** Signs out, and removes all that the page keeps in this browser. */
    async signOut() {
        this.store = null;
        await this.device.erase();
        localStorage.removeItem(notesKey);
    }
}

/** The page's own server. Over plain HTTP, it came that way already. */
const here = () => ({ server: location.origin, allowsPlainHTTP: location.protocol === 'http:' });

/** The configuration that the server gives everybody; empty if it does not answer. */
export async function readConfig() {
    try {
        return await (await fetch('/v1/config', { headers: { Accept: 'application/json' }, cache: 'no-store' })).json();
    } catch { return {}; }
}

/** A failure as a sentence for people. */
export function sentenceOf(error) {
    const text = String(error?.message ?? error);
    const isAway = error instanceof UbiquityError && ['unreachable', 'timedOut'].includes(error.code);
    if (isAway) return 'The server does not answer. Try again when it can be reached.';
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}
