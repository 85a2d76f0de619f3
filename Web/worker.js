// SPDX-License-Identifier: Apache-2.0

/**
 * The service worker: with it, the page opens without the server. It keeps the page's own files, all of one
 * version, and nothing of an account. `scripts/embed-page` writes the list.
 */

/** The folder of this version, and the addresses in it, from this script's. */
const version = '';
const files = [];

const cacheName = `ubiquity ${registration.scope} ${version}`;
/** How long the server may take before the page that is kept is shown. */
const patienceMilliseconds = 3_000;

/** Which version's page it is: this one's, another one's, or none, such as a proxy's own. */
async function versionOf(page) {
    const [, found] = page.ok ? /"(app\/\w+)\/main\.js"/.exec(await page.clone().text()) ?? [] : [];
    return found ?? null;
}

/** All or nothing: of a server's nodes, some may not have this version yet, or not any more. */
async function install() {
    const cache = await caches.open(cacheName);
    try {
        await cache.addAll(files.map((file) => new Request(file, { cache: 'reload' })));
        const page = await fetch('.', { cache: 'reload' });
        if (await versionOf(page) !== version) throw new Error('another version');
        await cache.put('.', page);
    } catch (error) {
        await caches.delete(cacheName);
        throw error;
    }
    await skipWaiting();
}

async function activate() {
    const isOld = (name) => name.startsWith(`ubiquity ${registration.scope} `) && name !== cacheName;
    for (const name of (await caches.keys()).filter(isOld)) await caches.delete(name);
    await clients.claim();
}

/** Whether the server says that it has no page. What stands before it may answer 404 too, but not in its words. */
async function isWithoutPage(answer) {
    if (answer.status !== 404) return false;
    const problem = await answer.clone().json().catch(() => null);
    return problem?.type === 'urn:ubiquity:problem:not-found';
}

/** The server has no page any more, so that none is kept. */
async function end() {
    await caches.delete(cacheName);
    await registration.unregister();
}

/**
 * The page as the server has it, or as it was last: without the server, and until another version is there with all
 * of its files, which another worker says.
 */
async function open(request) {
    const kept = await caches.match('.', { cacheName });
    const timeout = kept ? { signal: AbortSignal.timeout(patienceMilliseconds) } : {};
    try {
        const page = await fetch(request, timeout);
        if (await isWithoutPage(page)) {
            await end();
            return page;
        }
        // A proxy may answer for a server that is away; or the server is busy.
        if (page.status >= 500 || [404, 410, 421, 429].includes(page.status)) return kept ?? page;
        return ![null, version].includes(await versionOf(page)) ? kept ?? page : page;
    } catch (error) {
        if (kept) return kept;
        throw error;
    }
}

addEventListener('install', (event) => event.waitUntil(install()));
addEventListener('activate', (event) => event.waitUntil(activate()));
addEventListener('fetch', (event) => {
    const { request } = event;
    const address = request.url.split(/[?#]/)[0];
    if (request.method !== 'GET') return;
    if (address === registration.scope && request.mode === 'navigate') event.respondWith(open(request));
    else if (files.some((file) => new URL(file, registration.scope).href === address)) {
        event.respondWith(caches.match(request, { cacheName }).then((kept) => kept ?? fetch(request)));
    }
});
