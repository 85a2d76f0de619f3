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

async function install() {
    const cache = await caches.open(cacheName);
    await cache.addAll(files);
    const page = await fetch('.', { cache: 'no-cache' });
    // In between, the server may have been updated: then there will be another worker.
    if (!page.ok || !(await page.clone().text()).includes(`"${version}/`)) throw new Error('another version');
    await cache.put('.', page);
    await skipWaiting();
}

async function activate() {
    const isOld = (name) => name.startsWith(`ubiquity ${registration.scope} `) && name !== cacheName;
    for (const name of (await caches.keys()).filter(isOld)) await caches.delete(name);
    await clients.claim();
}

async function end() {
    await caches.delete(cacheName);
    await registration.unregister();
}

/** The page as the server has it, or as it was last. */
async function open(request) {
    const kept = await caches.match('.', { cacheName });
    const timeout = kept ? { signal: AbortSignal.timeout(patienceMilliseconds) } : {};
    try {
        const page = await fetch(request, timeout);
        // The server has no page any more.
        if ([404, 410].includes(page.status)) await end();
        // A proxy may answer for a server that is away; or the server is busy.
        return kept && (page.status >= 500 || [421, 429].includes(page.status)) ? kept : page;
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
