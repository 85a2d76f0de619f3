// SPDX-License-Identifier: Apache-2.0

/** The server, as the operator asks it. */

const kept = 'ubiquity operator';
/** A server that does not answer for this long is away. */
const timeoutMilliseconds = 30_000;

/**
 * The credential is in the tab's own storage, which other tabs do not see, except for duplicates of this one,
 * and which ends with the tab; nowhere else in the browser. Errors are sentences for people.
 */
export class OperatorServer extends EventTarget {
    get credential() { return sessionStorage.getItem(kept); }

    /** @throws {Error} if it is not the operator's. */
    async signIn(credential) {
        if (!/^[\x21-\x7e]+$/.test(credential)) throw new Error('This is not the operator’s credential.');
        await this.get(['apps'], {}, credential);
        sessionStorage.setItem(kept, credential);
    }

    signOut() {
        sessionStorage.removeItem(kept);
        this.dispatchEvent(new Event('signout'));
    }

    get(path, query = {}, credential = undefined) { return this.ask('GET', path, { query, credential }); }
    post(path, body) { return this.ask('POST', path, { body }); }
    put(path, body) { return this.ask('PUT', path, { body }); }
    delete(path) { return this.ask('DELETE', path); }

    /** The answer's message; text for the metrics; nothing without a body. */
    async ask(method, path, { query = {}, body = undefined, credential = this.credential } = {}) {
        // Browsers take these for steps in a path.
        if (path.some((part) => part === '.' || part === '..')) {
            throw new Error('No browser can ask for this name. Use the command “ubiquity account”.');
        }
        const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ''));
        const address = `v1/${path.map(encodeURIComponent).join('/')}${search.size ? `?${search}` : ''}`;
        const headers = { Authorization: `Bearer ${credential}`, Accept: path[0] === 'metrics' ? '*/*' : 'application/json' };
        if (body !== undefined) headers['Content-Type'] = 'application/json';
        let answer;
        let text;
        try {
            answer = await fetch(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body),
                credentials: 'omit', cache: 'no-store', signal: AbortSignal.timeout(timeoutMilliseconds) });
            text = await answer.text();
        } catch { throw new Error('The server does not answer. Try again when it can be reached.'); }
        if (answer.ok) return answer.headers.get('Content-Type')?.startsWith('application/json') ? JSON.parse(text) : text;
        let problem = null;
        try { problem = JSON.parse(text); } catch { /* A proxy's own page. */ }
        // A proxy's no is none to the credential.
        if ([401, 403].includes(answer.status) && String(problem?.type).startsWith('urn:ubiquity:problem:')) {
            if (this.credential === credential) this.signOut();
            throw new Error('This is not the operator’s credential.');
        }
        throw new Error(String(problem?.detail || problem?.title || `The server answered with the status ${answer.status}.`));
    }

    /** The account with exactly this name; null for none. */
    async accountNamed(name) {
        let after = null;
        for (;;) {
            const { accounts = [] } = await this.get(['accounts'], { search: name, after });
            const found = accounts.find((account) => account.name === name);
            if (found || !accounts.length) return found ?? null;
            after = accounts.at(-1).name;
        }
    }
}
