// SPDX-License-Identifier: Apache-2.0

/**
 * Before all else, and no module, so that it is there when others are not: while the nodes of a server get another
 * version, the page may come from one, and its files be asked of another, which does not have them.
 */

(() => {
    const kept = 'ubiquity loading';
    const attemptsMax = 4;
    let attempts = 0;

    function loadAgain() {
        if (attempts) return;
        attempts = attemptsMax;
        try {
            const next = Number(sessionStorage.getItem(kept)) + 1;
            sessionStorage.setItem(kept, String(next));
            attempts = next;
        } catch { /* Without a count, there would be no end. */ }
        if (attempts < attemptsMax) setTimeout(() => location.reload(), 500 * 2 ** attempts);
    }

    function explain() {
        const text = document.createElement('p');
        text.className = 'plain';
        text.setAttribute('role', 'alert');
        text.textContent = 'A part of this page is missing: the server may be getting another version. '
            + (attempts < attemptsMax ? 'The page is loaded again in a moment.' : 'Load the page again in a while.');
        document.getElementById('app').replaceChildren(text);
    }

    document.addEventListener('error', ({ target }) => {
        const isScript = target instanceof HTMLScriptElement;
        if (isScript || (target instanceof HTMLLinkElement && target.rel === 'stylesheet')) loadAgain();
        // Without a style, the page can be used.
        if (isScript) explain();
    }, true);
    document.addEventListener('load', ({ target }) => {
        if (target.type !== 'module' || attempts) return;
        try { sessionStorage.removeItem(kept); } catch { /* Nothing is there. */ }
    }, true);
})();
