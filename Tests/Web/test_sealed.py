# SPDX-License-Identifier: Apache-2.0

"""The page in a sealed account: it is locked until a person unlocks it."""

import base64
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import unittest
import urllib.request

from selenium.webdriver.common.keys import Keys

from stage import BROWSER, DEADLINE, PROGRAM, STORE, Accessible, PageTest, answered

repository = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(repository / "Clients/Python/tests"))

import test_sealing as sealing  # noqa: E402


class Sealed(Accessible, PageTest):
    def sealed(self):
        """A device with the key of an account that it has sealed."""
        device = self.account()
        file = pathlib.Path(device.home, "account.json")
        state = json.loads(file.read_text())
        self.signed_in_as, key, recovery = state["signedIn"], secrets.token_bytes(32), secrets.token_bytes(20)
        self.keys, self.recovery = {"1": base64.b64encode(key).decode()}, sealing.typed(recovery)
        check = sealing.check(key, 1)
        wrap = sealing.recovery({"recoveryKey": recovery.hex(), "keys": self.keys})
        self.put("sealing", {"generation": 1, "check": base64.b64encode(check).decode(),
                             "recovery": base64.b64encode(wrap).decode()})
        file.write_text(json.dumps(state | {"keyrings": {self.signed_in_as["account"]: self.keys}}))
        return device

    def put(self, path, body):
        headers = {"Authorization": f"Bearer {self.signed_in_as['credential']}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server.url}/v1/{path}", json.dumps(body).encode(), headers, method="PUT")
        self.assertEqual(answered(request).status, 204)

    def hand_over(self, code):
        """What a device with the key does that has read the code."""
        digits = [sealing.DIGITS.index(digit) for digit in code.split(";")[1].replace("-", "")[:26]]
        number = 0
        for digit in digits:
            number = number << 5 | digit
        secret = (number >> 2).to_bytes(16, "big")
        self.assertEqual(sealing.typed(secret), code.split(";")[1])
        account = self.signed_in_as["account"]
        name = sealing.hkdf(secret, sealing.fields("ubiquity handover name 1", account), 1)[0][:16].hex()
        box = sealing.handover({"secret": secret.hex(), "account": account, "keys": self.keys})
        self.put(f"handovers/{name}", {"box": base64.b64encode(box).decode()})

    def locked(self):
        """A browser that shows what it can of a sealed store."""
        device = self.sealed()
        device("set", "theme", "dark")
        device("set", "signature", "Warm regards, " * 30)
        device("sync")
        browser = self.signed_in()
        browser.run("location.hash = '#/data/' + arguments[0]", STORE)
        browser.says("Locked", ".head .status")
        browser.shows("theme", "sealed")
        return device, browser

    def ask(self, browser):
        """Unlocks as far as the code, past what it trusts."""
        browser.click(".note .button", "Unlock")
        browser.says("Whoever controls this server could send you a page that reads your values. "
                     "A device with the app does not have that risk.", "dialog")
        browser.click("dialog .button", "Unlock this browser")
        return browser.find("dialog .code.shown").text

    def test_a_locked_browser_shows_names_and_sizes_and_the_recovery_key_unlocks_it(self):
        device, browser = self.locked()
        self.assertNotIn("regards", browser.text)
        self.assertNotIn("dark", browser.text)
        row = browser.row("signature").text
        self.assertRegex(row, r"\d{3} bytes")
        self.assertIn("laptop", row)
        self.check(browser, "locked")
        self.ask(browser)
        self.check(browser, "the code")
        browser.type("dialog form input", "7KQ2-M9XD")
        browser.click("dialog form .button", "Unlock")
        browser.says("neither a code with keys nor a recovery key", "dialog .problem")
        browser.type("dialog form input", self.recovery.lower())
        browser.press(Keys.ENTER)
        browser.shows("theme", "dark")
        browser.edit("theme", "light")
        browser.says("Up to date", ".head .status")
        self.assertEqual(device.value("theme"), {"string": "light"})
        # The key stays in this browser.
        browser.run("location.reload()")
        browser.shows("theme", "light")

    def test_another_device_unlocks_a_browser_by_its_code(self):
        device, browser = self.locked()
        self.hand_over(self.ask(browser))
        browser.shows("theme", "dark")
        browser.gone("dialog")

    def unlocked(self):
        device, browser = self.locked()
        self.ask(browser)
        browser.type("dialog form input", self.recovery, Keys.ENTER)
        browser.shows("theme", "dark")
        browser.gone("dialog")
        return device, browser

    def reads(self, browser, code):
        """Reads a code that another device shows."""
        browser.run("location.hash = '#/devices'")
        browser.click(".head .button", "Add a device")
        browser.find("dialog .code.shown")
        browser.type("dialog form input.code", code, Keys.ENTER)

    def test_an_unlocked_browser_gives_the_key_to_another_one(self):
        _, browser = self.unlocked()
        other = self.signed_in()
        other.run("location.hash = '#/data/' + arguments[0]", STORE)
        code = self.ask(other)
        self.reads(browser, code)
        browser.says("Give it the key only if you hold that device in your hands", "dialog")
        browser.says("Whoever controls this server could send you a page that reads your values.", "dialog")
        self.check(browser, "giving the key")
        browser.click("dialog .button", "Give it the key")
        browser.says("The device has the key in a moment.")
        other.shows("theme", "dark")
        self.reads(browser, code[:-1])
        browser.click("dialog .button", "Give it the key")
        browser.says("mistyped", ".toast")

    def test_an_approval_by_the_whole_code_brings_the_key(self):
        _, browser = self.unlocked()
        home = pathlib.Path(self.folder, "approved")
        command = [PROGRAM, "sign-in", "--server", self.server.url, "--home", home, "--device-name", "phone", "--json"]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={"PATH": os.environ["PATH"], "HOME": self.folder})
        self.addCleanup(waiting.kill)
        code = next(found[0] for line in waiting.stderr if (found := re.search("ubiquity:http[^' ]*;[0-9A-Z-]+", line)))
        user_code = re.search("#([0-9A-Z-]+);", code)[1]
        # The short one brings none, and says so.
        self.reads(browser, user_code)
        browser.says("these eight characters bring no key", "dialog")
        browser.click("dialog .symbol", "Close")
        browser.gone("dialog")
        self.reads(browser, code)
        browser.says("It also gets the key of your sealed account.", "dialog")
        browser.says("Whoever controls this server could send you a page that reads your values.", "dialog")
        self.assertEqual(browser.find("dialog .code.shown").text, user_code)
        self.check(browser, "approving with the key")
        browser.click("dialog .button", "Approve")
        browser.says("phone may sign in. It gets the key.")
        output, _ = waiting.communicate(timeout=DEADLINE)
        self.assertTrue(json.loads(output)["hasKey"])

    def test_an_account_that_is_not_sealed_is_asked_about_where_a_sealed_one_was(self):
        device, browser = self.unlocked()
        own = next(one["id"] for one in json.loads(device("device", "list", "--json")) if BROWSER in one["name"])
        device("device", "revoke", own, "--yes")
        browser.says("This browser was signed out.", ".note")
        # The server makes another account up, and says that it is the person's.
        self.account()
        browser.click(".note .button", "Sign in again")

        def sign_in():
            browser.type("dialog input.code", self.server.code(self.name, False), Keys.ENTER)
            browser.says("This browser has had a sealed account at this server.", "dialog")

        sign_in()
        self.check(browser, "not sealed")
        browser.click("dialog .button", "Cancel")
        browser.says("The account is not sealed, although this device has had a sealed one at this server", "dialog .problem")
        browser.shows("theme", "dark")
        sign_in()
        browser.wait(lambda: len(browser.all("dialog")) == 2, "no question")
        browser.all("dialog")[1].find_element("css selector", ".button.danger").click()
        browser.says("Nothing here yet", "main")

    def test_a_person_can_leave_it_locked(self):
        _, browser = self.locked()
        browser.click(".note .button", "Unlock")
        browser.click("dialog .button", "Cancel")
        browser.gone("dialog")
        browser.run("location.hash = '#/devices'")
        browser.find(".devices h2", "laptop")
        browser.run("location.hash = '#/back/' + arguments[0]", STORE)
        browser.says("Locked", ".head .status")

    def test_a_code_with_a_secret_signs_in_and_the_page_takes_no_keys(self):
        self.sealed()
        browser = self.browser().open(self.server.url)
        browser.find("form input.code")
        code = self.server.code(self.name, False)
        secret = sealing.typed(secrets.token_bytes(16))
        browser.run("""
            const clipboardData = new DataTransfer();
            clipboardData.setData('text', arguments[0]);
            document.querySelector('form input.code').dispatchEvent(
                new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));""",
                    f"ubiquity:{self.server.url}#{code};{secret}")
        browser.click("form .button.main", "Sign in")
        browser.find(".shell")
        browser.run("location.hash = '#/data/' + arguments[0]", STORE)
        browser.says("Locked", ".head .status")

    def test_an_account_that_is_sealed_while_the_page_is_open_locks_it(self):
        device = self.account()
        browser = self.signed_in()
        browser.run("location.hash = '#/data/' + arguments[0]", STORE)
        browser.says("Up to date", ".head .status")
        signed_in_as = json.loads(pathlib.Path(device.home, "account.json").read_text())["signedIn"]
        self.signed_in_as = signed_in_as
        self.put("sealing", {"generation": 1, "check": base64.b64encode(bytes(32)).decode()})
        browser.says("Locked", ".head .status")
        browser.says("This store is empty.")


if __name__ == "__main__":
    unittest.main()
