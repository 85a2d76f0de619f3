# SPDX-License-Identifier: Apache-2.0

"""The page for people in a browser, by clicks and keys, beside the command line."""

import gzip
import http.server
import json
import pathlib
import plistlib
import re
import shutil
import tempfile
import threading
import unittest

from selenium.webdriver.common.keys import Keys

from provider import Provider
from proxy import Proxy
from stage import BROWSER, KIND, STORE, Accessible, Browser, Device, PageTest, Server, run


class Files(PageTest):
    def paths(self, text):
        """Of all files that a page names."""
        return ["/" + path for path in re.findall(r'(?:href|src)="([^"/][^"]+)"', text)]

    def test_the_files_come_with_a_strict_policy_and_are_not_sent_twice(self):
        page = self.server.get("/")
        text = page.read().decode()
        paths = self.paths(text)
        self.assertTrue(any(path.endswith("/main.js") for path in paths))
        self.assertNotRegex(text, r"https?:|style=|<script>|\son[a-z]+=")
        for path in ["/", *paths]:
            with self.subTest(path):
                answer = self.server.get(path)
                headers = answer.headers
                self.assertEqual(answer.status, 200)
                policy = headers["Content-Security-Policy"]
                for rule in ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval';", "form-action 'none'", "base-uri 'none'",
                             "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types worker"]:
                    self.assertIn(rule, policy)
                self.assertEqual(policy.count("unsafe"), 1)
                self.assertEqual(headers["Referrer-Policy"], "no-referrer")
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Cross-Origin-Opener-Policy"], "same-origin")
                self.assertIn("no-cache" if path in ("/", "/loading.js") else "immutable", headers["Cache-Control"])
                again = self.server.get(path, **{"If-None-Match": f'"other", {headers["ETag"]}'})
                self.assertEqual((again.status, again.read()), (304, b""))
                self.assertEqual(self.server.get(path, **{"If-None-Match": '"other"'}).status, 200)
        self.assertEqual(self.server.get("/app/nothing.js").status, 404)

    def test_the_whole_page_is_small_and_the_same_by_gzip(self):
        paths = ["/", *self.paths(self.server.get("/").read().decode())]
        sent = 0
        for path in set(paths):
            plain, short = self.server.get(path), self.server.get(path, **{"Accept-Encoding": "gzip"})
            self.assertEqual(short.headers["Content-Encoding"], "gzip")
            body = short.read()
            self.assertEqual(gzip.decompress(body), plain.read())
            sent += len(body) + len(str(short.headers))
        self.assertLess(sent, 150_000)

    def test_the_page_works_below_a_path_and_keeps_to_it(self):
        device = self.account()
        device("set", "theme", "dark")
        proxy = Proxy(self.server, "/keys")
        self.addCleanup(proxy.close)
        address = proxy.url
        browser = self.browser().open(f"{address}/#{self.server.code(self.name, False)}")
        browser.click(".button", "Sign in")
        browser.click("dialog .button", "Sign in")
        browser.store()
        browser.shows("theme", "dark")
        device("set", "theme", "light")
        browser.shows("theme", "light")
        browser.driver.refresh()
        browser.shows("theme", "light")
        self.assertEqual(browser.driver.current_url.split("#")[0], f"{address}/")
        kept = browser.run("return indexedDB.databases()")
        self.assertEqual([one["name"] for one in kept], ["ubiquity page/keys"])
        browser.open(f"{address}/operator").says("Operator")

    def test_a_new_version_of_the_page_says_so_and_is_there_after_a_reload(self):
        self.account()
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        browser = self.browser().open(proxy.url)
        browser.works_offline()
        proxy.version = {self.version(): "0123456789"}
        browser.run("return navigator.serviceWorker.ready.then((one) => one.update()).then(() => true)")
        browser.says("There is a new version of this page.", ".toast")
        browser.click(".toast button", "Reload")
        browser.wait(lambda: "0123456789" in browser.run("return document.querySelector('link')?.href ?? ''"), "the new one")
        kept = browser.run("return caches.keys()")
        self.assertEqual(len(kept), 1)
        self.assertIn("0123456789", kept[0])

    def test_a_page_whose_files_are_on_another_node_says_so_and_loads_again_so_often(self):
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        proxy.version = {self.version(): "0123456789"}
        proxy.lacks = "0123456789"
        # It complains of what is missing.
        browser = Browser().open(proxy.url)
        self.addCleanup(browser.driver.quit)
        browser.says("A part of this page is missing", "[role=alert]")
        browser.says("Load the page again in a while.", "[role=alert]")
        self.assertEqual(proxy.pages, 4)
        proxy.lacks = None
        browser.driver.refresh()
        browser.find("input.code")
        self.assertEqual(browser.run("return sessionStorage.length"), 0)
        # By itself, if the other node has them soon.
        proxy.lacks = "0123456789"
        browser.open(f"{proxy.url}/operator").says("The page is loaded again in a moment.", "[role=alert]")
        proxy.lacks = None
        browser.find("input[type=password]")

    def test_signing_in_says_that_the_engine_is_missing_and_uses_no_code_up(self):
        device = self.account()
        device("set", "theme", "dark")
        device("sync")
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        proxy.lacks = "engine-"
        # It complains of what is missing.
        browser = Browser()
        self.addCleanup(browser.driver.quit)
        code = self.server.code(self.name, False)
        browser.open(f"{proxy.url}/#{code}")
        browser.click("form .button.main", "Sign in")
        browser.says("ngine of the store cannot be loaded", "form")
        proxy.lacks = None
        browser.driver.refresh()
        browser.sign_in(proxy, code)
        browser.shows("theme", "dark")

    def test_a_page_that_is_kept_goes_on_while_nodes_have_several_versions(self):
        self.account()
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        browser = self.browser().open(proxy.url)
        browser.works_offline()
        update = "return navigator.serviceWorker.ready.then((one) => one.update()).then(() => true, () => false)"
        kept = browser.run("return caches.keys()")
        # The new page and its worker, from one node; but another one does not have its files.
        proxy.version, proxy.lacks = {self.version(): "0123456789"}, "0123456789/client"
        for _ in range(2):
            browser.driver.refresh()
            browser.find("input.code")
            browser.run(update)
            browser.wait(lambda: browser.run("return navigator.serviceWorker.getRegistration().then((one) => !one.installing)"), "no decision")
            self.assertEqual(browser.run("return caches.keys()"), kept)
        self.assertIn(self.version(), browser.run("return document.querySelector('link').href"))
        # And the other way round: the worker of the new version, but the page of the old one.
        proxy.lacks, proxy.oldPage = None, True
        browser.run(update)
        browser.wait(lambda: browser.run("return navigator.serviceWorker.getRegistration().then((one) => !one.installing)"), "no decision")
        self.assertEqual(browser.run("return caches.keys()"), kept)
        proxy.oldPage = False
        browser.run(update)
        browser.says("There is a new version of this page.", ".toast")
        browser.click(".toast button", "Reload")
        browser.wait(lambda: "0123456789" in browser.run("return document.querySelector('link')?.href ?? ''"), "the new one")

    def version(self):
        return re.search(r'app/(\w+)/main', self.server.get("/").read().decode())[1]

    def test_a_server_can_do_without_the_page(self):
        server = Server(tempfile.mkdtemp(dir=self.folder), "--no-web")
        self.addCleanup(server.close)
        self.assertEqual([server.get(path).status for path in ["/", "/operator", "/v1/config"]], [404, 404, 200])


class SigningIn(PageTest):
    def test_a_wrong_code_is_explained_and_a_right_one_signs_in(self):
        device = self.account()
        device("set", "theme", "dark")
        browser = self.browser().open(self.server.url)
        browser.type("input.code", "2222", "22222222", Keys.ENTER)
        browser.says("The code is wrong, has already been used, or has expired.", ".problem")
        # Without hyphens, in lower case, and by keys alone.
        code = self.server.code(self.name, False).replace("-", "").lower()
        browser.type("input.code", code, Keys.TAB)
        self.assertEqual(browser.find("input.code").get_attribute("value"), "-".join(re.findall("....", code.upper())))
        browser.press(Keys.CONTROL, "a")
        browser.press("kitchen", Keys.ENTER)
        browser.shows("theme", "dark")
        self.assertIn("kitchen", device("device", "list"))

    def test_a_link_signs_in_and_leaves_no_code_in_the_address_bar(self):
        device = self.account()
        link = json.loads(device("pair", "--json"))["link"]
        browser = self.browser().open(link)
        browser.click("form .button.main", "Sign in")
        browser.click("dialog .button", "Sign in")
        browser.find(".shell")
        self.assertEqual(browser.driver.current_url, self.server.url + "/")
        # A second link is not used up by somebody who is signed in.
        code = json.loads(device("pair", "--json"))["code"]
        browser.run("location.hash = arguments[0]", code)
        browser.says("The code was not used", "#toasts")
        self.assertEqual(browser.driver.current_url, self.server.url + "/")
        Device(self.folder, self.server, code, "second")

    def test_a_link_is_taken_by_a_tab_that_is_open_already(self):
        device = self.account()
        browser = self.browser().open(self.server.url)
        browser.find("input.code")
        link = json.loads(device("pair", "--json"))["link"]
        request = self.server.post("/v1/sign-in-requests", {"deviceName": "tv"})
        browser.open(f"{self.server.url}/#{request['userCode']}").says("A device waits for your approval.")
        browser.open(link)
        code = link.partition("#")[2]
        browser.wait(lambda: browser.find("input.code").get_attribute("value") == code, "the code")
        self.assertEqual(browser.driver.current_url, self.server.url + "/")
        browser.click("form .button.main", "Sign in")
        browser.click("dialog .button", "Sign in")
        browser.find(".shell")

    def test_another_device_approves_the_browser(self):
        device = self.account()
        device("set", "theme", "dark")
        browser = self.browser().open(self.server.url)
        browser.click(".button", "Approve on another device")
        code = browser.find(".code.shown").text
        browser.find("svg.qr")
        browser.says(f"ubiquity approve {code}")
        device("approve", code, "--yes")
        browser.shows("theme", "dark")

    def test_a_denied_browser_may_try_again(self):
        device = self.account()
        browser = self.browser().open(self.server.url)
        browser.click(".button", "Approve on another device")
        device("approve", browser.find(".code.shown").text, "--deny")
        browser.find(".problem:not(:empty)")
        browser.find("input.code")

    def test_signing_out_leaves_nothing_in_the_browser(self):
        device, browser = self.stage()
        self.assertIn(f"{BROWSER} on", device("device", "list"))
        tab = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        browser.open(self.server.url).shows("theme", "dark")
        browser.driver.switch_to.window(tab)
        browser.click(".side footer .button", "Sign out")
        browser.click("dialog .button", "Sign out")
        browser.find("input.code")
        self.assertNotIn(f"{BROWSER} on", device("device", "list"))
        # The other tab follows.
        browser.driver.switch_to.window(next(one for one in browser.driver.window_handles if one != tab))
        browser.find("input.code")
        self.assertEqual(browser.run("return JSON.stringify(localStorage)"), "{}")
        self.assertEqual(browser.run("return document.cookie"), "")
        left = browser.driver.execute_async_script("""
            const [done] = arguments;
            indexedDB.databases().then(async (all) => {
                let rows = [];
                for (const { name } of all) {
                    const open = indexedDB.open(name);
                    await new Promise((resolve) => { open.onsuccess = open.onerror = resolve; });
                    for (const table of open.result.objectStoreNames) {
                        const all = open.result.transaction(table).objectStore(table).getAll();
                        await new Promise((resolve) => { all.onsuccess = resolve; });
                        rows = rows.concat(all.result);
                    }
                    open.result.close();
                }
                done(JSON.stringify(rows, (_, value) => (value instanceof Uint8Array
                    ? String.fromCharCode(...value) : value)));
            });""")
        for secret in ["ubd_", "dark", self.name]:
            self.assertNotIn(secret, left)


class IdentityProvider(PageTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="ubiquity-provider-")
        cls.addClassCleanup(shutil.rmtree, folder, True)
        cls.provider = Provider(folder)
        cls.addClassCleanup(cls.provider.close)
        cls.options = cls.provider.options
        super().setUpClass()

    def setUp(self):
        self.provider.answers, self.provider.tells, self.provider.back = {}, {}, {}
        self.button = "Sign in with " + self.provider.issuer.partition("//")[2]

    def test_a_person_signs_in_with_the_provider_and_nothing_is_left_of_it(self):
        browser = self.browser().open(self.server.url)
        browser.type("input:not(.code)", "kitchen")
        browser.click(".button", self.button)
        browser.find(".shell")
        self.assertEqual(browser.driver.current_url, self.server.url + "/")
        self.assertEqual(browser.run("return sessionStorage.length"), 0)
        asked = self.provider.requests[-1]
        self.assertIsNone(asked["referrer"])
        self.assertEqual(asked["redirect_uri"], self.server.url + "/")
        browser.says("grace", ".who")
        browser.says("kitchen", ".who")
        # The same person, in another browser; nothing of the first sign-in occurs again.
        other = self.browser().open(self.server.url)
        other.click(".button", self.button)
        other.says("grace", ".who")
        again = self.provider.requests[-1]
        for name in ["state", "nonce", "code_challenge"]:
            self.assertNotEqual(asked[name], again[name])
        # A used answer is of no use, and the signed-in page stays.
        other.open(f"{self.server.url}/?code=1&state={again['state']}")
        other.says("This sign-in was not begun in this tab", "#toasts")
        other.says("grace", ".who")

    def test_an_answer_that_this_tab_did_not_ask_for_is_refused(self):
        browser = self.browser().open(self.server.url + "/?code=stolen&state=guessed")
        browser.says("This sign-in was not begun in this tab", ".problem")
        self.assertEqual(browser.driver.current_url, self.server.url + "/")
        for back, tells, answers, sentence in [
            ({"state": "other"}, {}, {}, "This sign-in was not begun in this tab"),
            ({"iss": "https://evil.example"}, {}, {}, "Another identity provider has answered."),
            ({"error": "access_denied"}, {}, {}, "you, or the provider, said no"),
            ({"code": "other"}, {}, {}, "The identity provider says: invalid_grant"),
            ({}, {"issuer": "https://evil.example"}, {}, "says that it is another one"),
            ({}, {"token_endpoint": "https://evil.example/"}, {}, "gives tokens at another address"),
            ({}, {"authorization_endpoint": "javascript:alert(1)"}, {}, "is not an address by HTTPS"),
            ({}, {}, {"nonce": "other"}, "is not for this sign-in"),
            ({}, {}, {"aud": "other"}, "another audience"),
            ({}, {}, {"exp": 5}, "expired"),
        ]:
            with self.subTest(sentence):
                self.provider.back, self.provider.tells, self.provider.answers = back, tells, answers
                browser.open(self.server.url)
                browser.click(".button", self.button)
                browser.says(sentence, ".problem")
                self.assertEqual(browser.run("return sessionStorage.length"), 0)
        self.setUp()
        browser.click(".button", self.button)
        browser.find(".shell")

    def test_the_page_may_send_requests_to_the_provider_and_nowhere_else(self):
        policy = self.server.get("/").headers["Content-Security-Policy"]
        self.assertIn(f"connect-src 'self' {self.provider.issuer};", policy)
        self.assertIn("form-action 'none';", policy)

    def test_who_was_signed_out_signs_in_again_with_the_provider(self):
        browser = self.browser().open(self.server.url)
        browser.click(".button", self.button)
        browser.find(".shell")
        browser.store()
        account = browser.find(".who strong").text
        for device in json.loads(run("device", "list", "--account", account, "--data", self.server.data, "--json")):
            run("device", "revoke", device["id"], "--account", account, "--data", self.server.data, "--yes")
        browser.click(".note .button", "Sign in again")
        browser.click("dialog .button", self.button)
        browser.says("Up to date", ".head .status")


class Data(PageTest):
    def test_changes_of_other_devices_appear_at_once_and_edits_reach_them(self):
        device, browser = self.stage(("theme", "dark"), ("volume", "--integer", "5"))
        device("set", "volume", "--integer", "6")
        browser.shows("volume", "6")
        browser.says("volume was changed by laptop.", "#announcer")
        self.assertEqual(browser.value("theme"), "dark")
        device("set", "new", "here")
        browser.shows("new", "here")
        device("remove", "new")
        browser.wait(lambda: browser.row("new") is None, "new is still there")
        # In place: by the keyboard alone.
        browser.in_row("volume", ".key").send_keys(Keys.TAB)
        browser.press(Keys.ENTER)
        browser.press("seven", Keys.ENTER)
        self.assertFalse(browser.run("return document.activeElement.checkValidity()"))
        browser.press(Keys.CONTROL, "a")
        browser.press("7", Keys.ENTER)
        browser.shows("volume", "7")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("volume"), {"integer": "7"})
        # Escape leaves it as it is.
        browser.press(Keys.ENTER)
        browser.press("8", Keys.ESCAPE)
        browser.shows("volume", "7")

    def test_two_browsers_and_two_tabs_see_the_same(self):
        device, one = self.stage(("on", "--bool", "true"))
        other = self.signed_in().store()
        one.in_row("on", ".switch").click()
        other.shows("on", False)
        one.driver.switch_to.new_window("tab")
        one.open(self.server.url).shows("on", False)
        # A tab that has not the connection.
        one.in_row("on", ".switch").click()
        other.shows("on", True)
        self.assertEqual(device.value("on"), {"boolean": True})
        other.in_row("on", ".switch").click()
        one.shows("on", False)

    def test_every_type_has_its_control(self):
        device, browser = self.stage()

        def add(key, kind, *keys):
            browser.click(".tools .button", "Add a key")
            browser.type("dialog form > .field input", key)
            browser.run("""const choice = document.querySelector('dialog select');
                choice.value = arguments[0]; choice.dispatchEvent(new Event('change'));""", kind)
            if keys:
                browser.type("dialog .control input, dialog .control textarea", *keys)
            browser.click("dialog footer .button", "Add")
            browser.gone("dialog")

        add("text", "string", "two\nlines ", "é")
        add("big", "integer", "18446744073709551615")
        add("half", "real", "0.5")
        add("bytes", "data", "00 ff 10")
        browser.click(".tools .button", "Add a key")
        browser.type("dialog form > .field input", "yes")
        browser.run("""const choice = document.querySelector('dialog select');
            choice.value = 'boolean'; choice.dispatchEvent(new Event('change'));""")
        browser.click("dialog .control .switch")
        browser.click("dialog footer .button", "Add")
        browser.gone("dialog")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("text"), {"string": "two\nlines é"})
        self.assertEqual(device.value("big"), {"unsigned": "18446744073709551615"})
        self.assertEqual(device.value("half"), {"real": 0.5})
        self.assertEqual(device.value("bytes"), {"data": "AP8Q"})
        self.assertEqual(device.value("yes"), {"boolean": True})

        # What nobody touches stays exactly as it was.
        for key, *value in [("cr", "a\r\nb"), ("when", "--date", "2026-11-21T10:00:00.25Z"), ("one", "--real", "1")]:
            device("set", key, *value)
            browser.wait(lambda: browser.row(key), key)
            was = device.value(key)
            browser.sheet(key)
            browser.click("dialog footer .button", "Save")
            browser.gone("dialog")
            self.assertEqual(device.value(key), was)
        browser.sheet("when")
        browser.run("""const input = document.querySelector('dialog input');
            input.value = '2026-11-22T10:00'; input.dispatchEvent(new Event('input'));""")
        browser.click("dialog footer .button", "Save")
        browser.gone("dialog")
        browser.wait(lambda: "22 Nov 2026" in (browser.value("when") or ""), "the date")

    def test_a_nested_value_is_edited_as_a_tree(self):
        device = self.account()
        device.put("recent", {"files": ["a", "b"], "open": True})
        browser = self.signed_in().store()
        browser.sheet("recent")
        browser.click("dialog .tree .toggle", "List: [“a”, “b”]")
        browser.click("dialog .tree .tree .toggle", "Text: b")
        browser.type("dialog .tree .tree textarea", "B")
        browser.click("dialog .tree .tree .symbol", "Remove")
        browser.click("dialog .button", "Add an entry")
        browser.press("size", Keys.TAB)
        self.assertEqual(len(browser.all("dialog .tree .name")), 3)
        browser.click("dialog footer .button", "Save")
        browser.gone("dialog")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("recent"), {"dictionary": {"entries": [
            {"key": "files", "value": {"array": {"values": [{"string": "B"}]}}},
            {"key": "open", "value": {"boolean": True}}, {"key": "size", "value": {"string": ""}}]}})

    def test_keys_are_found_removed_together_and_brought_back(self):
        device, browser = self.stage(*[(f"key {number}", f"value {number % 3}") for number in range(9)])
        browser.press("/")
        browser.press("value 1")
        browser.wait(lambda: len(browser.all(".keys > li")) == 3, "three keys")
        browser.type(".search input", Keys.DELETE)
        browser.wait(lambda: len(browser.all(".keys > li")) == 9, "nine keys")
        for key in ["key 2", "key 4"]:
            browser.in_row(key, "input").click()
        browser.click(".tools .button", "Remove")
        browser.wait(lambda: len(browser.all(".keys > li")) == 7, "seven keys")
        browser.says("Up to date", ".head .status")
        self.assertIsNone(device.value("key 2"))
        browser.click(".toast button", "Undo")
        browser.shows("key 2", "value 2")
        # By keys: down to the next one, and away with it.
        browser.in_row("key 0", ".key").send_keys(Keys.ARROW_DOWN)
        browser.press(Keys.DELETE)
        browser.wait(lambda: browser.row("key 1") is None, "key 1 is still there")
        browser.says("Up to date", ".head .status")
        self.assertIsNone(device.value("key 1"))
        self.assertEqual(device.value("key 4"), {"string": "value 1"})

    def test_keys_are_sorted_and_found_by_what_is_deep_in_a_value(self):
        device = self.account()
        for key, value in [("b", 1), ("a", "x" * 3_000 + "needle"), ("c", True)]:
            device.put(key, value)
        device.put("d", {"inner": [{"deep": "Needle"}]})
        browser = self.signed_in().store()
        browser.shows("b", "1")
        shown = lambda: [one.text for one in browser.all(".keys .key")]
        browser.wait(lambda: shown() == ["a", "b", "c", "d"], "by key")
        browser.click(".columns .kind")
        browser.wait(lambda: shown() == ["d", "b", "a", "c"], "by type: dictionary, integer, text, yes or no")
        device.put("b", 2)
        browser.click(".columns .date")
        browser.wait(lambda: shown()[0] == "b", "the newest first")
        browser.click(".columns .date")
        browser.wait(lambda: shown()[-1] == "b", "the newest last")
        browser.type(".search input", "needle")
        browser.wait(lambda: sorted(shown()) == ["a", "d"], "both needles")

    def test_the_focus_stays_where_somebody_works(self):
        device, browser = self.stage(("first", "1"), ("second", "2"))

        def focus(selector):
            browser.wait(lambda: browser.run("return document.activeElement.matches(arguments[0])", selector),
                         f"the focus is not at {selector}")
        browser.sheet("first")
        browser.type("dialog textarea", "changed")
        browser.click("dialog footer .button", "Save")
        browser.gone("dialog")
        focus("[data-row] .key")
        browser.press(Keys.ENTER)
        browser.click(".timeline .button", "Undo")
        browser.says("this browser set it to 1", ".timeline .current")
        focus(".timeline .button")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        focus("[data-row] .key")
        browser.in_row("second", "input").click()
        browser.click(".tools .button", "Clear")
        focus(".tools .button")
        browser.sheet("second")
        browser.click("dialog footer .button", "Remove")
        browser.gone("dialog")
        focus(".tools .button")
        browser.click(".toast:last-child button", "Undo")
        browser.shows("second", "2")
        focus("#main")
        browser.click(".tools .button", "Go back in time")
        browser.find(".moment")
        focus("#main")
        browser.run("location.hash = '#/devices'")
        browser.click(".devices .button", "Rename laptop")
        browser.press("old one", Keys.ENTER)
        browser.find(".devices h2", "old one")
        focus("[aria-label='Rename old one']")

    def test_a_thousand_keys_are_drawn_as_they_are_scrolled_to(self):
        device = self.account()
        path = pathlib.Path(self.folder, "many.json")
        path.write_text(json.dumps({f"key {number:04}": number for number in range(1_000)}))
        device("import", str(path))
        browser = self.signed_in().store()
        browser.shows("key 0000", "0")
        self.assertLess(len(browser.all(".keys > li")), 500)
        browser.wait(lambda: browser.run("""window.scrollTo(0, document.body.scrollHeight);
            return document.querySelectorAll('.keys > li').length""") == 1_000, "all of them")

    def test_what_is_newer_is_not_replaced_unseen(self):
        device, browser = self.stage()
        browser.edit("theme", "mine", ends=False)
        device("set", "theme", "theirs")
        browser.wait(lambda: browser.run("return document.querySelector('.when')") and device.value("theme"), "sent")
        browser.says("Up to date", ".head .status")
        browser.wait(lambda: self.heard(browser, "theme was changed by laptop."), "the change")
        browser.press(Keys.ENTER)
        browser.says("laptop has set theme meanwhile to theirs.", "dialog")
        browser.click("dialog .button", "Cancel")
        # What was typed is still there, and may be given up.
        browser.gone("dialog")
        self.assertEqual(browser.in_row("theme", ".value input").get_attribute("value"), "mine")
        browser.press(Keys.ENTER)
        browser.click("dialog .button", "Cancel")
        browser.gone("dialog")
        browser.press(Keys.ESCAPE)
        browser.shows("theme", "theirs")
        browser.edit("theme", "mine")
        browser.shows("theme", "mine")
        # By keys, from the list; and what came after it is not undone unseen.
        browser.press(Keys.CONTROL, "z")
        browser.shows("theme", "theirs")
        browser.press(Keys.CONTROL, "z")
        browser.says("There is nothing to undo.", ".toast")
        browser.edit("theme", "again mine")
        browser.shows("theme", "again mine")
        browser.says("Up to date", ".head .status")
        device("sync")
        device("set", "theme", "newer")
        browser.shows("theme", "newer")
        browser.press(Keys.CONTROL, "z")
        browser.says("laptop has set theme meanwhile to newer.", "dialog")
        browser.click("dialog .button", "Replace")
        browser.shows("theme", "theirs")

    def test_what_cannot_be_saved_stays_as_it_was_typed(self):
        device, browser = self.stage(("theme", "dark"), ("volume", "--real", "5"))
        run("account", "limits", self.name, "--store-bytes", "40", "--data", self.server.data)
        browser.says("of 40 bytes", ".usage")
        leaves = "return window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
        self.assertTrue(browser.run(leaves))
        for key, text, why in [("volume", "12,500", "Write 12500, or 12.500"), ("theme", "x" * 50, "theme: ")]:
            with self.subTest(key):
                browser.edit(key, text)
                browser.wait(lambda: why in browser.run("return document.activeElement.validationMessage ?? ''"), "why not")
                self.assertFalse(browser.run(leaves))
                # Somebody goes elsewhere.
                browser.run("document.activeElement.blur()")
                browser.says(f"“{key}” is not saved. {why}", "#toasts")
                self.assertEqual(browser.in_row(key, ".value input").get_attribute("value"), text)
                browser.in_row(key, ".value input").send_keys(Keys.ESCAPE)
                browser.in_row(key, ".edit")
                self.assertTrue(browser.run(leaves))
        browser.edit("volume", "12,5")
        browser.shows("volume", "12.5")
        # In the sheet, too, whatever types somebody looks at in between.
        browser.sheet("theme")
        browser.type("dialog textarea", "typed")
        self.assertFalse(browser.run(leaves))
        for kind in ["integer", "string"]:
            browser.run("""const choice = document.querySelector('dialog select');
                choice.value = arguments[0]; choice.dispatchEvent(new Event('change'));""", kind)
        self.assertEqual(browser.find("dialog textarea").get_attribute("value"), "typed")
        browser.click("dialog footer .button", "Save")
        browser.shows("theme", "typed")
        browser.says("“theme” saved.", "#toasts")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("theme"), {"string": "typed"})

    def test_what_can_be_done_with_chosen_keys_stays_in_sight(self):
        _, browser = self.stage(*[(f"key {number:02}", "x") for number in range(30)])
        for width, height in [(390, 844), (1280, 500)]:
            with self.subTest(width=width):
                browser.window(width, height)
                box = browser.in_row("key 29", "input")
                browser.run("arguments[0].scrollIntoView({ block: 'center' })", box)
                box.click()
                browser.says("1 selected", ".tools")
                place = browser.run("""const { x, y, right, bottom } = document.querySelector('.tools .danger').getBoundingClientRect();
                    return [x >= 0, y >= 0, right <= innerWidth, bottom <= innerHeight]""")
                self.assertEqual(place, [True] * 4)
                browser.click(".tools .button", "Clear")
        browser.in_row("key 29", "input").click()
        browser.click(".tools .button", "Remove")
        browser.wait(lambda: browser.row("key 29") is None, "key 29 is still there")

    def heard(self, browser, text):
        return browser.run("return document.getElementById('announcer').textContent") == text

    def test_what_somebody_else_changes_under_an_open_editor_is_said(self):
        device, browser = self.stage()
        browser.sheet("theme")
        browser.type("dialog textarea", "mine")
        device("set", "theme", "theirs")
        browser.says("laptop changed this meanwhile to theirs.", "dialog .note")
        browser.click("dialog .button", "Take over the new value")
        self.assertEqual(browser.find("dialog textarea").get_attribute("value"), "theirs")
        # What nobody has touched follows by itself.
        device("set", "theme", "later")
        browser.wait(lambda: browser.find("dialog textarea").get_attribute("value") == "later", "the new value")

    def test_what_is_too_large_is_refused_with_a_sentence(self):
        device, browser = self.stage()
        browser.click(".tools .button", "Add a key")
        browser.type("dialog form > .field input", "k" * 65)
        browser.click("dialog footer .button", "Add")
        browser.find("dialog .problem:not(:empty)")
        # What was typed does not vanish by a slip of the finger.
        browser.press(Keys.ESCAPE)
        browser.click("dialog.box .button", "Cancel")
        browser.press(Keys.ESCAPE)
        browser.click("dialog.box .button", "Discard")
        browser.gone("dialog")
        run("account", "limits", self.name, "--keys", "2", "--data", self.server.data)
        browser.says("of 2", ".usage")
        for key in ["second", "third"]:
            browser.click(".tools .button", "Add a key")
            browser.type("dialog form > .field input", key)
            browser.click("dialog footer .button", "Add")
        browser.find("dialog .problem:not(:empty)")
        self.assertIsNone(device.value("third"))

    def test_an_export_can_be_imported_after_a_look_at_it(self):
        device = self.account()
        device("set", "theme", "dark")
        device("set", "volume", "--integer", "5")
        downloads = tempfile.mkdtemp(dir=self.folder)
        browser = self.signed_in(downloads=downloads).store()
        browser.click(".menu summary")
        browser.click(".menu .button", "Export as JSON")
        path = pathlib.Path(downloads) / f"{STORE}.json"
        # A browser may make it before it has what belongs in it.
        browser.wait(lambda: path.exists() and path.stat().st_size, "the file")
        values = json.loads(path.read_text())
        self.assertEqual(values, json.loads(device("export", "--exact")))
        browser.click(".menu summary")
        browser.click(".menu .button", "Export as a property list")
        browser.wait(path.with_suffix(".plist").exists, "the property list")
        self.assertEqual(plistlib.loads(path.with_suffix(".plist").read_bytes()), {"theme": "dark", "volume": 5})
        values |= {"theme": {"string": "light"}, "more": {"real": 1}, "__proto__": {"string": "odd"}}
        path.write_text(json.dumps(values))
        browser.click(".menu summary")
        browser.click(".menu .button", "Import a file")
        browser.find("body > input[type=file]").send_keys(str(path))
        browser.says("1 key would be overwritten, 2 keys added. 1 key in the file is equal already.", "dialog")
        browser.says("dark → light", "dialog .changes")
        browser.click("dialog .button", "Import 3 keys")
        browser.shows("theme", "light")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("more"), {"real": 1})
        self.assertEqual(device.value("__proto__"), {"string": "odd"})
        # A key whose value is none does not keep the others away.
        path.write_text('{"theme": null, "added": 1}')
        browser.click(".menu summary")
        browser.click(".menu .button", "Import a file")
        browser.find("body > input[type=file]").send_keys(str(path))
        browser.says("1 key cannot be imported, and is skipped", "dialog")
        browser.click("dialog .note summary")
        browser.says("theme: The value of theme is not one", "dialog .note")
        browser.click("dialog .button", "Import 1 key")
        browser.shows("added", "1")
        browser.shows("theme", "light")

    def test_property_lists_and_accounts_are_imported(self):
        device, browser = self.stage(("theme", "dark"), ("volume", "--integer", "5"))
        account = pathlib.Path(self.folder, "export.json")
        device("account", "export", "--output", str(account), "--force")
        device("set", "theme", "light")
        device("remove", "volume")
        browser.shows("theme", "light")
        browser.click(".menu summary")
        browser.click(".menu .button", "Import a file")
        browser.find("body > input[type=file]").send_keys(str(account))
        browser.says("1 key would be overwritten, 1 key added.", "dialog")
        browser.click("dialog .button", "Import 2 keys")
        browser.shows("volume", "5")
        # Dropped, in both formats.
        for number, form in enumerate([plistlib.FMT_XML, plistlib.FMT_BINARY]):
            data = plistlib.dumps({"theme": f"dropped {number}", "__proto__": [number]}, fmt=form)
            browser.run("""const transfer = new DataTransfer();
                transfer.items.add(new File([new Uint8Array(arguments[0])], 'a.plist'));
                for (const type of ['dragover', 'drop']) {
                    document.querySelector('.view').dispatchEvent(new DragEvent(type, { dataTransfer: transfer, cancelable: true, bubbles: true }));
                }""", list(data))
            browser.says(f"→ dropped {number}", "dialog .changes")
            browser.click("dialog .button", "Import 2 keys")
            browser.shows("theme", f"dropped {number}")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("__proto__"), {"array": {"values": [{"integer": "1"}]}})

    def test_a_treemap_shows_what_takes_the_space_and_leads_there_by_keys(self):
        device, browser = self.stage(("a.large", "x" * 900), ("a.medium", "x" * 90), ("small", "x" * 10))
        browser.click(".usage .button", "Storage use")
        labels = [one.get_attribute("aria-label") for one in browser.all("dialog .treemap g")]
        self.assertEqual(labels, ["a.large: 900 bytes, 90 percent", "a.medium: 90 bytes, 9 percent", "small: 10 bytes, 1 percent"])
        browser.press(Keys.TAB)
        browser.press(Keys.ARROW_RIGHT)
        browser.press(Keys.ARROW_DOWN)
        browser.press(Keys.ARROW_LEFT)
        browser.press(Keys.ENTER)
        browser.says("a.medium", "dialog.sheet h2")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog.sheet")
        browser.run("""const choice = document.querySelector('dialog select');
            choice.value = 'keys'; choice.dispatchEvent(new Event('change'));""")
        self.assertEqual([one.get_attribute("aria-label") for one in browser.all("dialog .treemap g")],
                         ["a.: 2 keys, 67 percent", "small: 1 key, 33 percent"])

    def test_hostile_values_are_shown_as_text(self):
        device = self.account()
        script = "<script>window.pwned = 1</script>"
        image = '"><img src=x onerror="window.pwned = 2">'
        for key, value in [(script, script), (image, image), ("__proto__", "own"), ("constructor", "own"),
                           ("direction", "abc\u202etxt.exe"), ("control", "a\x1b[31mb\x07c"),
                           ("arabic", "مرحبا"), ("javascript:pwned=3", "javascript:window.pwned=3")]:
            device("set", key, value)
        deep = "x"
        for _ in range(200):
            deep = [deep]
        device.put("nested", {"__proto__": {"pwned": 4}, script: deep, "toString": [image]})
        device.put("long", "<b>long</b> " * 80_000)
        device("device", "rename", json.loads(device("device", "list", "--json"))[0]["id"], image)
        browser = self.signed_in().store()
        browser.shows(script, script)
        browser.shows(image, image)
        browser.shows("__proto__", "own")
        browser.shows("direction", "abc‹202E›txt.exe")
        browser.shows("control", "a‹001B›[31mb‹0007›c")
        browser.shows("arabic", "مرحبا")
        self.assertLess(len(browser.value("long")), 200)
        browser.sheet("long")
        browser.says("The first 2,000 characters of 960,000.", "dialog")
        self.assertLess(browser.run("return document.documentElement.outerHTML.length"), 100_000)
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.sheet("nested")
        while toggles := browser.all("dialog .toggle[aria-expanded=false]"):
            browser.run("for (const one of arguments[0]) one.click()", toggles)
            if len(browser.all("dialog .toggle")) > 60:
                break
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.run("location.hash = '#/devices'")
        browser.find(".devices h2", image)
        self.assertEqual(browser.run("return [window.pwned, ({}).pwned, document.images.length, "
                                     "document.querySelectorAll('b, dialog script').length]"), [None, None, 0, 0])

    def test_ten_thousand_keys_in_one_value_are_shown_in_parts(self):
        device = self.account()
        device.put("wide", {f"outer {i}": {f"inner {j}": j for j in range(100)} for i in range(100)})
        browser = self.signed_in().store()
        browser.wait(lambda: (browser.value("wide") or "").startswith("{outer 0: {…}, "), "the preview")
        browser.sheet("wide")
        browser.wait(lambda: len(browser.all("dialog .tree > li")) == 100, "a hundred entries")
        self.assertLess(browser.run("return document.querySelectorAll('*').length"), 3_000)
        browser.run("document.querySelector('dialog .tree .toggle').click()")
        browser.wait(lambda: browser.run("return document.querySelectorAll('dialog .tree .tree > li').length") == 100, "its entries")
        browser.run("""const name = document.querySelector('dialog .tree .tree input.name');
            name.value = 'renamed'; name.dispatchEvent(new Event('input'));""")
        browser.click("dialog footer .button", "Save")
        browser.gone("dialog")
        browser.says("Up to date", ".head .status")
        entries = device.value("wide")["dictionary"]["entries"]
        self.assertEqual([one["key"] for one in entries[0]["value"]["dictionary"]["entries"]][-1], "renamed")

    def test_a_store_that_does_not_exist_begins_with_its_first_key(self):
        self.account()
        browser = self.signed_in()
        browser.says("Nothing here yet")
        browser.click("main .button", "Open a store")
        browser.press("new.store", Keys.ENTER)
        browser.says("This store is empty")
        browser.click(".tools .button", "Add a key")
        browser.press("first", Keys.ENTER)
        browser.shows("first", "empty")
        browser.says("Up to date", ".head .status")
        browser.driver.refresh()
        browser.shows("first", "empty")


class AnotherOrigin(PageTest):
    def test_a_page_elsewhere_can_neither_frame_this_one_nor_read_what_the_server_answers(self):
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{site.server_port}"
        friendly = Server(tempfile.mkdtemp(dir=self.folder), "--allowed-origin", origin)
        self.addCleanup(friendly.close)
        browser = Browser().open(origin)
        self.addCleanup(browser.driver.quit)
        for server, known in [(self.server, "not allowed"), (friendly, 200)]:
            answer = browser.driver.execute_async_script("""const [url, done] = arguments;
                fetch(url + '/v1/config').then(({ status }) => done(status), () => done('not allowed'));""", server.url)
            self.assertEqual(answer, known)
            framed = browser.driver.execute_async_script("""const [url, done] = arguments;
                const frame = document.createElement('iframe');
                frame.onload = () => { try { done(frame.contentDocument?.title ?? 'not readable'); } catch { done('not readable'); } };
                frame.src = url;
                document.body.append(frame);""", server.url)
            self.assertEqual(framed, "not readable")
        if KIND == "chromium":
            self.assertTrue(any("frame-ancestors" in one for one in browser.complaints()), browser.complaints())


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another origin."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Elsewhere</title>")

    def log_message(self, *_):
        pass


class Trouble(PageTest):
    def test_the_page_works_while_the_server_is_away(self):
        device, browser = self.stage()
        self.server.kill()
        browser.says("Not connected", ".head .status")
        browser.says("Not connected: no server answers", ".note")
        browser.edit("theme", "written offline")
        browser.shows("theme", "written offline")
        browser.says("Not connected, 1 change waits", ".head .status")
        browser.sheet("theme")
        browser.says("Waits to be sent", ".timeline")
        browser.says("The server does not answer.", ".timeline")
        browser.press(Keys.ESCAPE)
        self.server.start()
        browser.says("Up to date", ".head .status")
        browser.gone(".note")
        self.assertEqual(device.value("theme"), {"string": "written offline"})
        device("set", "theme", "and live again")
        browser.shows("theme", "and live again")

    def test_the_page_opens_without_the_server_and_can_be_installed(self):
        device, browser = self.stage()
        browser.works_offline()
        if KIND == "chromium":
            self.assertEqual(browser.driver.execute_cdp_cmd("Page.getInstallabilityErrors", {}), {"installabilityErrors": []})
            self.assertEqual(browser.driver.execute_cdp_cmd("Page.getAppManifest", {})["errors"], [])
        self.server.kill()
        browser.driver.refresh()
        browser.shows("theme", "dark")
        browser.edit("theme", "written offline")
        browser.says("Not connected, 1 change waits", ".head .status")
        browser.driver.refresh()
        browser.shows("theme", "written offline")
        self.server.start()
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("theme"), {"string": "written offline"})

    def test_a_page_that_cannot_be_kept_at_once_is_kept_later(self):
        self.account()
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        # The worker itself, and then the page that it keeps.
        proxy.refused = {("/worker.js", "serviceworker"), ("/", "empty")}
        browser = self.browser().open(proxy.url)
        browser.works_offline()
        self.assertEqual(proxy.refused, set())
        if KIND == "chromium":
            self.assertTrue(any("429" in one for one in browser.complaints()))

    def test_a_page_that_is_kept_outlives_a_proxy_that_answers_for_its_server_and_ends_with_its_servers_page(self):
        self.account()
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        browser = self.browser().open(proxy.url)
        browser.works_offline()
        kept = "return Promise.all([caches.keys(), navigator.serviceWorker.getRegistrations()]).then((all) => all.map(({ length }) => length))"
        for proxy.status in [404, 410, 503]:
            with self.subTest(proxy.status):
                browser.run("return navigator.serviceWorker.ready.then((one) => one.update()).catch(() => {}).then(() => true)")
                browser.driver.refresh()
                browser.find("input.code")
                self.assertEqual(browser.run(kept), [1, 1])
        proxy.status = None
        without = Server(tempfile.mkdtemp(dir=self.folder), "--no-web")
        self.addCleanup(without.close)
        proxy.behind = without.url.removeprefix("http://")
        browser.driver.refresh()
        browser.says("not-found")
        # Whoever answers now answers the browser.
        proxy.status = 404
        browser.driver.refresh()
        browser.says("Error code: 404")
        self.assertEqual(browser.run(kept), [0, 0])

    def test_a_full_disk_is_no_saved_change(self):
        device, browser = self.stage()
        # As browsers do it: what puts something is aborted, with an error that has a name alone.
        browser.run("""window.isFull = true;
            const [{ put }, { commit }] = [IDBObjectStore.prototype, IDBTransaction.prototype];
            IDBTransaction.prototype.commit = function () { if (!this.isAborted) commit.call(this); };
            IDBObjectStore.prototype.put = function (...terms) {
                const { transaction } = this;
                if (window.isFull && !transaction.isAborted) {
                    transaction.isAborted = true;
                    Object.defineProperty(transaction, 'error', { value: new DOMException('', 'QuotaExceededError') });
                    queueMicrotask(() => transaction.abort());
                }
                return put.apply(this, terms);
            };""")
        leaves = "return window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
        self.assertTrue(browser.run(leaves))
        browser.edit("theme", "light")
        browser.says("Your change is not saved yet", "#toasts")
        browser.says("This browser cannot save", ".head .status")
        browser.says("What you changed last is in this tab only: keep it open.", ".note")
        self.assertNotIn("save. .", browser.find(".note").text)
        self.assertFalse(browser.run(leaves))
        browser.sheet("theme")
        browser.says("Not saved yet", ".timeline .waiting")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        self.assertEqual(device.value("theme"), {"string": "dark"})
        self.assertNotIn("saved.", browser.find("#toasts").text)
        browser.click(".side footer .button", "Sign out")
        browser.says(f"{STORE}: 1 change", "dialog li")
        browser.click("dialog .button", "Cancel")
        browser.run("window.isFull = false")
        browser.says("Up to date", ".head .status")
        browser.gone(".note")
        self.assertTrue(browser.run(leaves))
        self.assertEqual(device.value("theme"), {"string": "light"})
        browser.driver.refresh()
        browser.shows("theme", "light")

    def test_why_it_does_not_sync_is_said_in_the_servers_words(self):
        server = Server(tempfile.mkdtemp(dir=self.folder), "--apps", "registered")
        self.addCleanup(server.close)
        run("app", "register", STORE, "--data", server.data)
        browser = self.browser().sign_in(server, server.code("ann"))
        browser.store()
        browser.run("location.hash = '#/data/TEAMID.com.example.other'")
        browser.says("Not connected", ".head .status")
        browser.says("is not registered", ".note")
        browser.run("location.hash = arguments[0]", f"#/data/{STORE}")
        browser.says("Up to date", ".head .status")
        if KIND != "chromium":
            return  # Only Chromium's debugger takes the network away.
        network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.driver.execute_cdp_cmd("Network.enable", {})
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **network})
        server.kill()
        browser.says("Offline", ".head .status")
        browser.says("You are offline.", ".note")
        server.start()
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **network})
        browser.says("Up to date", ".head .status")

    def test_a_browser_that_was_signed_out_says_so_and_may_return(self):
        device, browser = self.stage()
        own = next(one["id"] for one in json.loads(device("device", "list", "--json")) if BROWSER in one["name"])
        device("device", "revoke", own, "--yes")
        browser.says("This browser was signed out.", ".note")
        browser.shows("theme", "dark")
        device("set", "theme", "while away")
        browser.click(".note .button", "Sign in again")
        browser.type("dialog input.code", self.server.code(self.name, False), Keys.ENTER)
        browser.gone("dialog")
        browser.shows("theme", "while away")
        browser.says("Up to date", ".head .status")
        # By a link, too.
        own = next(one["id"] for one in json.loads(device("device", "list", "--json")) if BROWSER in one["name"])
        device("device", "revoke", own, "--yes")
        browser.says("This browser was signed out.", ".note")
        browser.run("location.hash = arguments[0]", self.server.code(self.name, False))
        browser.click("dialog form .button.main", "Sign in")
        browser.click("dialog footer .button", "Sign in")
        browser.gone("dialog")
        browser.says("Up to date", ".head .status")

    def test_what_the_server_refuses_is_said_and_taken_back(self):
        device, browser = self.stage()
        self.server.kill()
        browser.says("Not connected", ".head .status")
        browser.click(".tools .button", "Add a key")
        browser.type("dialog form > .field input", "second", Keys.ENTER)
        browser.says("Not connected, 1 change waits", ".head .status")
        self.server.operate("account", "limits", self.name, "--keys", "1")
        self.server.start()
        browser.says("The server refused 1 change", ".note")
        browser.wait(lambda: browser.row("second") is None, "second is still there")
        browser.click(".note summary")
        browser.says("second", ".note li")
        browser.click(".note .button", "Dismiss")
        browser.gone(".note")
        self.assertIsNone(device.value("second"))

    def test_a_credential_that_expires_is_said_to_have_expired(self):
        device = self.account()
        device("set", "theme", "dark")
        browser = self.browser().open(self.server.url)
        browser.click(".button", "Approve on another device")
        code = browser.find(".code.shown").text
        operator = pathlib.Path(self.server.data, "operator-credential").read_text().strip()
        self.server.post(f"/v1/sign-in-requests/{code}/approval",
                         {"account": self.name, "credentialSeconds": "10"}, operator)
        browser.shows("theme", "dark")
        browser.says("This browser was signed out.", ".note")
        browser.says("expired", ".note")


class Unsent(PageTest):
    """Edits of stores that are not shown any more."""

    def setUp(self):
        # Of a test that failed.
        if self.server.process.poll() is not None:
            self.server.start()

    def edit(self, browser, value, key="theme"):
        browser.edit(key, value)
        browser.shows(key, value)

    def show(self, browser, store):
        browser.run("location.hash = '#/data/' + arguments[0]", store)
        browser.find(".head h1", store)

    def away(self, *others):
        """A browser that knows stores, and that the server does not answer."""
        device, browser = self.stage()
        for name in others:
            device("set", "theme", "dark", "--store", name)
            browser.store(name)
            browser.shows("theme", "dark")
        browser.store()
        self.server.kill()
        self.addCleanup(self.setUp)
        browser.says("Not connected", ".head .status")
        return device, browser

    def comes(self, device, value, store=STORE):
        """Waits until another device has it."""
        def has():
            device("sync", "--store", store, check=False)
            return device("get", "theme", "--store", store, check=False) == value
        Browser.wait(self.window, has, f"{store} has no {value}")

    def test_an_edit_is_sent_though_another_store_is_shown(self):
        device, self.window = self.away("other.store")
        browser = self.window
        self.edit(browser, "written offline")
        browser.says("Not connected, 1 change waits", ".head .status")
        self.show(browser, "other.store")
        browser.says("Not connected, 1 change waits in another store", ".head .status")
        self.edit(browser, "here too")
        browser.says("Not connected, 2 changes wait, 1 in another store", ".head .status")
        self.server.start()
        self.comes(device, "written offline")
        self.comes(device, "here too", "other.store")
        browser.says("Up to date", ".head .status")
        # Shown again, it goes on as before.
        browser.store()
        browser.shows("theme", "written offline")
        self.edit(browser, "once more")
        self.comes(device, "once more")

    def test_an_edit_is_sent_when_the_page_is_opened_again(self):
        device, self.window = self.away("other.store")
        browser = self.window
        self.edit(browser, "written offline")
        self.show(browser, "other.store")
        browser.open("about:blank")
        self.server.start()
        browser.open(self.server.url)
        browser.find(".head h1", "other.store")
        self.comes(device, "written offline")

    def test_an_edit_of_a_tab_that_was_closed_is_sent_by_another_one(self):
        device, self.window = self.stage()
        browser = self.window
        tab = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        other = browser.driver.current_window_handle
        browser.open(self.server.url).store("other.store")
        browser.driver.switch_to.window(tab)
        self.server.kill()
        self.addCleanup(self.setUp)
        browser.says("Not connected", ".head .status")
        self.edit(browser, "written offline")
        browser.driver.close()
        browser.driver.switch_to.window(other)
        browser.says("Not connected, 1 change waits in another store", ".head .status")
        self.server.start()
        self.comes(device, "written offline")
        browser.says("Up to date", ".head .status")

    def test_edits_of_more_stores_than_a_browser_has_connections_are_sent(self):
        names = [f"other.store{number}" for number in range(8)]
        device, self.window = self.away(*names)
        browser = self.window
        for name in names:
            self.show(browser, name)
            self.edit(browser, f"of {name}")
        self.show(browser, STORE)
        browser.says("Not connected, 8 changes wait in other stores", ".head .status")
        self.server.start()
        for name in names:
            self.comes(device, f"of {name}", name)
        browser.says("Up to date", ".head .status")
        device("set", "theme", "live again")
        browser.shows("theme", "live again")

    def test_signing_out_names_all_that_would_be_lost(self):
        _, browser = self.away("other.store")
        self.edit(browser, "written offline")
        self.show(browser, "other.store")
        self.edit(browser, "here too")
        browser.click(".side footer .button", "Sign out")
        browser.says("2 changes that could not be sent yet will be lost", "dialog")
        for name in [STORE, "other.store"]:
            browser.says(f"{name}: 1 change", "dialog li")
        browser.click("dialog .button", "Cancel")
        browser.gone("dialog")

    def test_what_the_server_refuses_of_a_store_that_is_not_shown_is_said(self):
        device, self.window = self.away("other.store")
        browser = self.window
        browser.click(".tools .button", "Add a key")
        browser.type("dialog form > .field input", "second", Keys.ENTER)
        browser.says("Not connected, 1 change waits", ".head .status")
        self.show(browser, "other.store")
        self.server.operate("account", "limits", self.name, "--keys", "1")
        self.server.start()
        browser.says(f"The server refused a change in {STORE}.", "#toasts")
        browser.says("Up to date", ".head .status")

    def test_nothing_that_belongs_to_one_store_is_written_to_another(self):
        device, browser = self.stage()
        device("set", "theme", "theirs", "--store", "other.store")
        browser.store("other.store")
        browser.store()
        self.edit(browser, "light")
        self.show(browser, "other.store")
        browser.shows("theme", "theirs")
        # The message of the store before is still there.
        browser.click("#toasts button", "Undo")
        browser.says(f"Open {STORE} again", "#toasts")
        self.assertEqual(browser.value("theme"), "theirs")
        # Somebody types, and goes back by a key of the browser.
        browser.edit("theme", "typed", ends=False)
        self.show(browser, STORE)
        browser.shows("theme", "light")
        browser.says("Up to date", ".head .status")
        device("sync", "--store", "other.store")
        self.assertEqual(device("get", "theme", "--store", "other.store"), "typed")
        self.assertEqual(device.value("theme"), {"string": "light"})
        # A dialog of one store over another one.
        browser.sheet("theme")
        browser.type("dialog .control input, dialog .control textarea", "in the sheet")
        self.show(browser, "other.store")
        browser.click("dialog footer .button", "Save")
        browser.says(f"Open {STORE} again", "dialog")
        self.assertEqual(browser.value("theme"), "typed")


class Links(PageTest):
    """A link may be a stranger's."""

    def test_a_link_does_not_approve_a_device_by_one_key(self):
        _, browser = self.stage()
        request = self.server.post("/v1/sign-in-requests", {"deviceName": "mallory"})
        code = request["userCode"]
        browser.run("location.hash = arguments[0]", code.replace("-", "").lower())
        browser.says("mallory at", "dialog")
        browser.says(code, "dialog .code.shown")
        approve = browser.find("dialog .button", "Approve")
        self.assertFalse(approve.is_enabled())
        self.assertEqual(browser.run("return document.activeElement.textContent"), "Deny")
        browser.type("dialog input.code", "0000")
        self.assertFalse(approve.is_enabled())
        browser.press(Keys.ENTER)
        self.assertEqual(self.answer(request), "sign-in-pending")
        browser.find("dialog .button", "Deny").send_keys(Keys.ENTER)
        browser.gone("dialog")
        self.assertEqual(self.answer(request), "sign-in-denied")

    def test_a_link_approves_a_device_whose_code_is_typed(self):
        _, browser = self.stage()
        request = self.server.post("/v1/sign-in-requests", {"deviceName": "tv"})
        browser.run("location.hash = arguments[0]", request["userCode"])
        browser.says("tv at", "dialog")
        browser.type("dialog input.code", request["userCode"][-4:].lower(), Keys.ENTER)
        browser.gone("dialog")
        self.assertEqual(self.answer(request), self.name)

    def answer(self, request):
        answer = self.server.post("/v1/sign-in", {"request": request["request"], "deviceName": "tv"})
        return answer.get("accountName", answer.get("code"))

    def test_a_link_says_into_whose_account_it_leads(self):
        device = self.account()
        link = json.loads(device("pair", "--json"))["link"]
        browser = self.browser().open(link)
        browser.find("form .button.main", "Sign in")
        browser.press(Keys.ENTER)
        browser.says(f"the account of {self.name}", "dialog")
        # One more key does not go on.
        browser.press(Keys.ENTER)
        browser.gone("dialog")
        browser.says("Nobody was signed in; the code is used up.", ".problem")
        self.assertNotIn(BROWSER, device("device", "list"))
        browser.driver.refresh()
        browser.find("input.code")
        # A code that somebody types is theirs.
        browser.type("input.code", self.server.code(self.name, False), Keys.ENTER)
        browser.says(self.name, ".who")


class Accessibility(Accessible, PageTest):
    def test_of_signing_in(self):
        device = self.account()
        browser = self.browser().open(self.server.url)
        browser.find("input.code")
        self.check(browser, "sign in")
        browser.type("input.code", "222222222222", Keys.ENTER)
        browser.find(".problem:not(:empty)")
        self.check(browser, "a problem")
        browser.click(".button", "Approve on another device")
        code = browser.find(".code.shown").text
        self.check(browser, "a code")
        device("approve", code, "--yes")
        browser.says("Nothing here yet")
        self.check(browser, "no store")

    def test_of_data(self):
        device, browser = self.stage(("theme", "dark"), ("volume", "--integer", "5"), ("on", "--bool", "true"), ("half", "--real", "0.5"),
                                     ("when", "--date", "2026-11-21T10:00:00Z"), ("bytes", "--data", "AP8Q"))
        device.put("recent", {"files": ["a", "b"], "open": True})
        browser.find("[data-row] .key", "recent")
        self.check(browser, "keys")
        browser.click("[data-row] input[type=checkbox]")
        self.check(browser, "selected")
        browser.click(".tools .button", "Clear")
        for key in ["theme", "on", "half", "when", "bytes", "recent"]:
            browser.sheet(key)
            browser.find(".timeline .current")
            for toggle in browser.all("dialog .toggle"):
                toggle.click()
            self.check(browser, key)
            browser.press(Keys.ESCAPE)
            browser.gone("dialog")
        browser.click(".menu summary")
        self.check(browser, "the menu")
        browser.click(".menu .button", "Import a file")
        path = pathlib.Path(self.folder, "faulty.json")
        path.write_text('{"theme": null, "added": 1, "volume": 6}')
        browser.find("body > input[type=file]").send_keys(str(path))
        browser.click("dialog .note summary")
        self.check(browser, "an import")
        browser.click("dialog .button", "Import 2 keys")
        browser.find(".toast")
        self.check(browser, "a message")
        browser.type(".search input", "nothing like this")
        browser.says("No key or value contains this text.")
        self.check(browser, "nothing found")
        browser.type(".search input", Keys.DELETE)
        browser.window(390, 844)
        browser.click(".brand .symbol")
        self.assertEqual(browser.barriers(), [])
        # Whoever goes elsewhere has done with it.
        browser.click(".tabs a", "Devices")
        browser.find("h1", "Devices")
        self.assertEqual(browser.find(".brand .symbol").get_attribute("aria-expanded"), "false")
        browser.click(".tabs a", "Data")
        browser.window(1280, 900)
        browser.click(".usage .button", "Storage use")
        browser.find("dialog .treemap g")
        self.check(browser, "space")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.click(".tools .button", "Add a key")
        self.check(browser, "a new key")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.run("location.hash = arguments[0]", f"#/back/{STORE}")
        browser.find(".moment")
        self.check(browser, "going back")
        browser.click(".moment .button", "1 hour ago")
        browser.find(".changes li")
        self.check(browser, "what differs")
        run("app", "register", STORE, "--name", "Cloudy", "--data", self.server.data)
        self.addCleanup(run, "app", "remove", STORE, "--data", self.server.data)
        browser.driver.refresh()
        browser.find(".stores strong", "Cloudy")
        self.check(browser, "an app with a name")

    def test_of_devices(self):
        _, browser = self.stage()
        browser.run("location.hash = '#/devices'")
        browser.find(".devices h2", "laptop")
        self.check(browser, "devices")
        browser.click(".devices .button", "Rename laptop")
        self.check(browser, "a new name")
        browser.press(Keys.ESCAPE)
        browser.click(".head .button", "Add a device")
        browser.find("dialog .code.shown")
        self.check(browser, "a code")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        request = self.server.post("/v1/sign-in-requests", {"deviceName": "tv"})
        browser.run("location.hash = arguments[0]", request["userCode"])
        browser.says("tv at", "dialog")
        self.check(browser, "an approval by a link")

    def test_of_trouble(self):
        _, browser = self.stage()
        self.server.kill()
        browser.says("Not connected: no server answers", ".note")
        self.check(browser, "offline")
        browser.in_row("theme", ".edit").click()
        browser.press("written offline", Keys.ENTER)
        browser.opens(lambda: browser.click(".side footer .button", "Sign out"), "dialog")
        browser.says("will be lost", "dialog")
        self.check(browser, "signing out")
        self.server.start()


class GoingBack(PageTest):
    def test_a_key_has_a_history_and_goes_back(self):
        device, browser = self.stage(("theme", "first"), ("theme", "second"))
        browser.sheet("theme")
        browser.says("laptop set it to second", ".timeline .current")
        browser.says("laptop set it to first", ".timeline .replaced")
        browser.click(".timeline .button", "Undo")
        browser.says("this browser set it to first", ".timeline .current")
        browser.wait(lambda: len(browser.all(".timeline li")) == 3, "three versions")
        self.assertEqual(device.value("theme"), {"string": "first"})
        browser.click(".timeline .button", "Restore")
        browser.says("this browser set it to second", ".timeline .current")
        self.assertEqual(device.value("theme"), {"string": "second"})
        device("remove", "theme")
        browser.says("laptop removed it", ".timeline .current")
        browser.click(".timeline .button", "Undo")
        browser.says("this browser set it to second", ".timeline .current")
        self.assertEqual(device.value("theme"), {"string": "second"})
        # Somebody presses a button in the moment in which something newer comes.
        browser.run("window.pressed = document.querySelector('.timeline .replaced .button')")
        device("set", "theme", "newer")
        browser.says("laptop set it to newer", ".timeline .current")
        browser.run("window.pressed.click()")
        browser.says("laptop has set theme meanwhile to newer.", "dialog")
        browser.click("dialog.box .button", "Cancel")
        browser.gone("dialog.box")
        self.assertEqual(device.value("theme"), {"string": "newer"})
        browser.run("window.pressed.click()")
        browser.click("dialog.box .button", "Replace")
        browser.says("this browser set it to first", ".timeline .current")
        self.assertEqual(device.value("theme"), {"string": "first"})

    def test_the_store_goes_back_after_a_look_at_what_differs(self):
        device, browser = self.stage(("theme", "dark"), ("volume", "--integer", "5"))
        before = browser.run("return Date.now()")
        # The picture of a moment has whole seconds.
        browser.wait(lambda: browser.run("return Date.now()") > before + 2_000, "two seconds")
        device("set", "theme", "light")
        device("remove", "volume")
        device("set", "more", "x")
        browser.shows("more", "x")
        browser.click(".tools .button", "Go back in time")
        browser.run("""const input = document.querySelector('.moment input');
            const date = new Date(arguments[0] + 1000);
            input.value = new Date(date - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);""", before)
        browser.click(".moment .button", "Show")
        browser.says("3 keys differ", "main")
        for text in ["light → dark", "absent → 5", "x → removed"]:
            browser.says(text, ".changes")
        browser.click("input[aria-label='Set back more']")
        # A key that is gone has a history, which brings it back.
        browser.click("main .symbol", "History of volume")
        browser.says("laptop removed it", ".timeline .current")
        browser.click(".timeline .button", "Undo")
        browser.says("this browser set it to 5", ".timeline .current")
        self.assertEqual(device.value("volume"), {"integer": "5"})
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        # What has changed since the look is not replaced unseen.
        device("set", "theme", "newest")
        browser.click("main .symbol", "History of theme")
        browser.says("laptop set it to newest", ".timeline .current")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.click("main .button.main", "Set back 2 keys")
        browser.says("2 keys have changed meanwhile", "dialog")
        browser.click("dialog .button", "Replace")
        browser.says("2 keys set back.", "#toasts")
        browser.says("1 key differs", "main")
        self.assertEqual(device.value("theme"), {"string": "dark"})
        self.assertEqual(device.value("volume"), {"integer": "5"})
        self.assertEqual(device.value("more"), {"string": "x"})


class Devices(PageTest):
    def test_devices_are_listed_renamed_and_signed_out(self):
        device, browser = self.stage()
        browser.run("location.hash = '#/devices'")
        browser.find(".devices h2", "laptop")
        browser.says("Up to date", ".devices")
        browser.says("This browser", ".devices")
        # As the browser itself says, not "Mozilla/5.0".
        version = browser.run("return /(Chrome|Firefox)[/][0-9.]+/.exec(navigator.userAgent)[0]")
        browser.says(re.sub(r"(\.0)+$", "", version.replace("/", " ")), ".devices")
        self.assertIn(version, device("device", "list"))
        browser.click(".devices .button", "Rename laptop")
        browser.press("old one", Keys.ENTER)
        browser.find(".devices h2", "old one")
        self.assertIn("old one", device("device", "list"))
        browser.click(".devices .button", "Sign out old one")
        browser.click("dialog .button", "Sign out")
        browser.gone(".devices h2", "old one")
        self.assertIn("Sign in again", device("status"))

    def test_a_code_from_the_page_signs_in_another_device(self):
        _, browser = self.stage()
        browser.run("location.hash = '#/devices'")
        browser.click(".head .button", "Add a device")
        code = browser.find("dialog .code.shown").text
        browser.find("dialog svg.qr")
        other = Device(self.folder, self.server, code, "phone")
        self.assertEqual(other.value("theme"), {"string": "dark"})
        browser.press(Keys.ESCAPE)
        browser.find(".devices h2", "phone")

    def test_the_page_approves_and_denies_devices_that_wait(self):
        _, browser = self.stage()
        browser.run("location.hash = '#/devices'")
        for choice in ["Approve", "Deny"]:
            request = self.server.post("/v1/sign-in-requests", {"deviceName": "tv"})
            browser.click(".head .button", "Add a device")
            browser.type("dialog .waits input", request["userCode"], Keys.ENTER)
            browser.says("tv at", "dialog")
            browser.click("dialog .button", choice)
            browser.gone("dialog")
            answer = self.server.post("/v1/sign-in", {"request": request["request"], "deviceName": "tv"})
            self.assertEqual(answer.get("accountName", answer.get("code")),
                             self.name if choice == "Approve" else "sign-in-denied")


if __name__ == "__main__":
    unittest.main()
