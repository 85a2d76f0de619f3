// SPDX-License-Identifier: Apache-2.0

/**
 * Signing in with an identity provider: the authorization code flow of OpenID Connect, with PKCE
 * (RFC 7636), for a client without a secret. The page sends the person to the provider; the provider
 * sends them back with a code; the page exchanges it for a token, and the token for its credential.
 */

import { ownAddress } from './text.js';

/** Where a tab keeps what it began. */
const place = 'ubiquity identity';
const answerBytesMax = 65_536;
const beganMilliseconds = 600_000;

export class IdentityError extends Error {}
const fail = (sentence) => { throw new IdentityError(sentence); };

/** The provider that the server's configuration names; null if it names none. @returns {{issuer: string, client: string} | null} */
export const providerOf = (config) => {
    const { issuer, client } = config?.identityProvider ?? {};
    return typeof issuer === 'string' && typeof client === 'string' && URL.canParse(issuer) ? { issuer, client } : null;
};

/** The provider's name for people. */
export const providerName = ({ issuer }) => new URL(issuer).host;

/** The provider's configuration, with addresses that are safe to use. @throws {IdentityError} */
export function checkedEndpoints(json, issuer) {
    // Otherwise one provider could pass on what is for another (RFC 8414, section 3.3).
    if (json?.issuer !== issuer) fail('The identity provider says that it is another one.');
    const [authorize, token] = ['authorization_endpoint', 'token_endpoint'].map((name) => {
        const text = json[name];
        const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : null;
        const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && ['localhost', '127.0.0.1'].includes(url.hostname));
        if (!isSafe || url.hash) fail(`The identity provider’s ${name} is not an address by HTTPS.`);
        return url;
    });
    if (token.origin !== new URL(issuer).origin) fail('The identity provider gives tokens at another address than its own.');
    return { authorize: authorize.href, token: token.href };
}

/** The address to send the person to. */
export function requestAddress(authorize, { client, back, state, nonce, challenge }) {
    const url = new URL(authorize);
    for (const [name, value] of Object.entries({
        response_type: 'code', client_id: client, redirect_uri: back, scope: 'openid profile', state, nonce,
        code_challenge: challenge, code_challenge_method: 'S256',
    })) url.searchParams.set(name, value);
    return url.href;
}

/**
 * The code of an answer to what this tab began. `kept` is what it kept, null if it began nothing.
 * @throws {IdentityError}
 */
export function codeOf(query, kept, now) {
    if (!kept || query.get('state') !== kept.state || !(now >= kept.began && now - kept.began < beganMilliseconds)) {
        fail('This sign-in was not begun in this tab, or too long ago. Begin again.');
    }
    // Who answers (RFC 9207).
    if (query.has('iss') && query.get('iss') !== kept.issuer) fail('Another identity provider has answered.');
    if (query.has('error')) {
        const text = query.get('error') === 'access_denied' ? 'you, or the provider, said no' : query.get('error_description') || query.get('error');
        fail(`The identity provider did not sign you in: ${text.slice(0, 200)}`);
    }
    return query.get('code') || fail('The identity provider sent no code.');
}

/**
 * The token of an answer, if it was made for what this tab began. Its signature is the server's concern.
 * @throws {IdentityError}
 */
export function tokenOf(json, nonce) {
    const token = json?.id_token;
    try {
        const claims = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
        if (claims.nonce === nonce) return token;
    } catch { /* Not a token. */ }
    return fail('The identity provider’s token is not for this sign-in.');
}

const base64URL = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
const random = (count) => base64URL(crypto.getRandomValues(new Uint8Array(count)));

/** The challenge by which a verifier is announced (RFC 7636). */
export const challengeOf = async (verifier) =>
    base64URL(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));

/** An answer of the server or the provider in JSON, of which only so much is read. */
async function ask(address, options = {}) {
    const response = await fetch(address, { credentials: 'omit', redirect: 'error', cache: 'no-store',
        signal: AbortSignal.timeout(30_000), ...options }).catch(() => fail(`The server at ${new URL(address).host} does not answer.`));
    const [decoder, reader] = [new TextDecoder(), response.body.getReader()];
    let text = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text += decoder.decode(part.value, { stream: true });
        if (text.length > answerBytesMax) {
            await reader.cancel();
            fail('The answer is too large.');
        }
    }
    let json = null;
    try { json = JSON.parse(text); } catch { /* Said below. */ }
    if (!response.ok || !json) fail(`The identity provider says: ${String(json?.error_description ?? json?.error ?? response.status).slice(0, 200)}`);
    return json;
}

/** The address that the provider sends people back to. */
const back = () => `${ownAddress()}/`;

/** Leaves the page for the provider. @throws {IdentityError} */
export async function begin({ issuer, client }, deviceName) {
    const endpoints = checkedEndpoints(await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`), issuer);
    const [state, nonce, verifier] = [random(16), random(16), random(32)];
    // For this tab only, and until it ends.
    sessionStorage.setItem(place, JSON.stringify({ issuer, client, deviceName, state, nonce, verifier, token: endpoints.token, began: Date.now() }));
    location.assign(requestAddress(endpoints.authorize, { client, back: back(), state, nonce, challenge: await challengeOf(verifier) }));
}

/** The provider's answer that is in the address, which is taken out of there; null if there is none. */
export function takeAnswer() {
    const query = new URLSearchParams(location.search);
    if (!query.has('state') || !(query.has('code') || query.has('error'))) return null;
    history.replaceState(null, '', location.pathname);
    const kept = JSON.parse(sessionStorage.getItem(place) ?? 'null');
    sessionStorage.removeItem(place);
    return { query, kept };
}

/** Exchanges the answer for a token. @returns {Promise<{token: string, deviceName: string}>} @throws {IdentityError} */
export async function finish({ query, kept }) {
    const code = codeOf(query, kept, Date.now());
    const answer = await ask(kept.token, { method: 'POST', body: new URLSearchParams({
        grant_type: 'authorization_code', code, redirect_uri: back(), client_id: kept.client, code_verifier: kept.verifier }) });
    return { token: tokenOf(answer, kept.nonce), deviceName: kept.deviceName };
}
