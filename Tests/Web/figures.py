# SPDX-License-Identifier: Apache-2.0

"""Measures the page for docs/BENCHMARKS.md: `scripts/test-web PROGRAM --figures`, with a release build."""

import gzip
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import unittest

from stage import STORE, Browser, PageTest

ROUNDS = int(os.environ.get("WEB_ROUNDS", 5))
SECONDS = int(os.environ.get("WEB_SECONDS", 20))
KEYS, CHANGES = 1_024, 50

CLIENT = pathlib.Path(__file__).resolve().parent.parent.parent / "Clients/JavaScript/src/node.js"
# A device that fills the store, and changes a key each 20 ms for as long as its input is open.
WRITER = f"""
import {{ openDevice }} from {json.dumps(CLIENT.as_uri())};
const [home, server, code, changes] = process.argv.slice(1);
const device = await openDevice({{ home }});
await device.signIn({{ server, code, deviceName: 'writer' }});
const store = await device.openStore({json.dumps(STORE)});
await store.initialSync();
store.batch(() => {{ for (let i = 0; i < {KEYS}; i += 1) store.set(`key ${{String(i).padStart(4, '0')}}`, `value ${{i}}`); }});
await store.synchronizeNow();
console.log('ready');
let count = 0;
process.stdin.once('data', () => {{
    const began = performance.now();
    setInterval(() => {{
        // As many as are due, however late the timer is.
        for (; count < (performance.now() - began) / 1_000 * changes; count += 1) {{
            store.set(`key ${{String(count * 37 % {KEYS}).padStart(4, '0')}}`, `change ${{count}}`);
        }}
    }}, 5);
}});
process.stdin.once('end', () => {{ console.log(count); process.exit(0); }});
"""

# Before anything of the page: when something can be seen, and how the frames follow each other.
WATCH = """
window.seen = {};
new MutationObserver(() => {
    for (const [name, selector] of [['form', 'input.code'], ['keys', '.keys > li']]) {
        if (name in window.seen || !document.querySelector(selector)) continue;
        window.seen[name] = null;
        // The frame that shows it has been made when the next one begins.
        requestAnimationFrame(() => requestAnimationFrame(() => { window.seen[name] = performance.now(); }));
    }
}).observe(document, { childList: true, subtree: true });
"""
FRAMES = """
window.gaps = [];
window.changed = 0;
let last = performance.now();
const next = (now) => { window.gaps.push(now - last); last = now; window.timer = requestAnimationFrame(next); };
requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); });
new MutationObserver((records) => {
    window.changed += new Set(records.map(({ target }) => target).filter((one) => one.matches?.('.keys > li'))).size;
}).observe(document.querySelector('.keys'), { childList: true, subtree: true });
"""


def unpacked(answer):
    """The body as it is, of a file that may be sent by gzip only, whatever is asked for."""
    body = answer.read()
    return gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body


def say(name, values, unit, digits=0):
    text = [f"{one:,.{digits}f}" for one in (statistics.median(values), min(values), max(values))]
    print(f"| {name} | {text[0]} ({text[1]}-{text[2]}) {unit} |", flush=True)


class Figures(PageTest):
    options = ("--pushes-per-second", "1000000")

    def first(self, browser, name):
        browser.driver.get("about:blank")
        browser.open(self.server.url)
        return browser.wait(lambda: browser.run("return window.seen?.[arguments[0]]", name), name)

    def test_figures(self):
        links = re.findall(r'(?:href|src)="([^"#:]+)"', self.server.get("/").read().decode())
        paths = ["/", "/v1/config", *("/" + link.removeprefix("./").lstrip("/") for link in links)]
        # The engine is fetched by a script.
        engine = {found.group().decode() for path in paths for found in [re.search(rb"engine-\w+\.wasm", self.server.get(path).read())] if found}
        for name, files in [("The page’s {} files, without the operator’s and the engine", set(paths)),
                            ("The engine", {f"/app/{name}" for name in engine})]:
            plain = sum(len(unpacked(self.server.get(path))) for path in files)
            gzipped, sent = (sum(len(self.server.get(path, **{"Accept-Encoding": how}).read()) for path in files)
                             for how in ["gzip", "gzip, br"])
            print(f"| {name.format(len(files))} | {plain:,} bytes; {gzipped:,} by gzip, {sent:,} as browsers are sent it |")

        self.name = "ann"
        code = self.server.code("ann")
        first = []
        for _ in range(ROUNDS):
            # A profile of its own: nothing is cached.
            browser = Browser()
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            first.append(self.first(browser, "form"))
            browser.driver.quit()
        say("First view of a new browser: the form to sign in", first, "ms")

        writer = subprocess.Popen(["node", "--input-type=module", "-e", WRITER, tempfile.mkdtemp(dir=self.folder), self.server.url, code, str(CHANGES)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(writer.kill)
        self.assertEqual(writer.stdout.readline(), "ready\n")
        browser = self.signed_in()
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        browser.store()
        browser.wait(lambda: browser.all(".keys > li"), "the keys")
        say(f"First view of a signed-in browser: {KEYS:,} keys", [self.first(browser, "keys") for _ in range(ROUNDS)], "ms")

        browser.store()
        browser.wait(lambda: browser.all(".keys > li"), "the keys")
        browser.run(FRAMES)
        writer.stdin.write("go\n")
        writer.stdin.flush()
        began = browser.run("return performance.now()")
        browser.wait(lambda: browser.run("return performance.now()") > began + SECONDS * 1_000, "the time")
        gaps, changed = browser.run("cancelAnimationFrame(window.timer); return [window.gaps, window.changed]")
        writer.stdin.close()
        made = int(writer.stdout.readline())
        gaps.sort()
        missed = sum(max(0, round(gap * 60 / 1_000) - 1) for gap in gaps)
        print(f"| {KEYS:,} keys, those in view shown, {made / SECONDS:.0f} changes a second by another device, for {SECONDS} s: rows drawn anew | {changed:,} |")
        print(f"| Frames: number; missed at 60 a second | {len(gaps):,}; {missed:,} ({missed / (len(gaps) + missed):.1%}) |")
        print(f"| Between two frames: p50, p99, longest | {gaps[len(gaps) // 2]:.1f}, {gaps[len(gaps) * 99 // 100]:.1f}, {gaps[-1]:.1f} ms |")


if __name__ == "__main__":
    unittest.main()
