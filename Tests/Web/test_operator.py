# SPDX-License-Identifier: Apache-2.0

"""The operator's page and the first run of an empty server in a browser, on both databases."""

import json
import pathlib
import re
import tempfile
import unittest
import urllib.parse

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from node import Balancer, Database, Node
from proxy import Proxy
from stage import Accessible, Device, PageTest

hostile = '<script>document.title = "bad"</script><img src=x onerror=alert(1)>'
hebrew = "שלום (abc) 123"


class OperatorTest(PageTest):
    """With the operator's credential."""

    database = None

    @classmethod
    def make_server(cls):
        early = cls.database and cls.database.credential()
        server = Node(cls.folder, database=cls.database)
        cls.credential = early or server.credential
        return server

    def make(self, name, devices=("laptop",)):
        """Devices of a new account."""
        code = self.server.post("/v1/accounts", {"name": name}, self.credential)["code"]
        made = []
        for device in devices:
            made.append(Device(self.folder, self.server, code, device))
            code = self.new_code(name)
        return made

    def new_code(self, name):
        return self.server.post(f"/v1/accounts/{urllib.parse.quote(name, safe='')}/codes", {}, self.credential)["code"]

    def ask(self, path):
        return json.loads(self.server.get(path, Authorization=f"Bearer {self.credential}").read())

    def operator(self, view="overview"):
        browser = self.browser().open(f"{self.server.url}/operator#/{view}")
        browser.type("input[type=password]", self.credential, Keys.ENTER)
        browser.find(".shell")
        return browser

    def row(self, browser, name):
        """The row of an account, by the name that it shows; None without one."""
        return next((one for one in browser.all(".open") if one.find_element(By.TAG_NAME, "strong").text == name), None)

    def shown_code(self, browser):
        """The code in a dialog, once the dialog is open."""
        return browser.wait(lambda: browser.find("dialog .code.shown").text, "a code")

    def sheet(self, browser, name):
        # A search may draw the list anew at any time.
        browser.opens(lambda: browser.wait(lambda: self.row(browser, name), name).click(), "dialog.sheet h2", name)


class Actions:
    """What an operator does; run on each kind of database."""

    def test_only_the_operators_credential_signs_in_and_only_this_tab_keeps_it(self):
        device = self.make("signs-in")[0]
        browser = self.browser().open(self.server.url + "/operator")
        browser.type("input[type=password]", "ubo_wrong-wrong-wrong-wrong", Keys.ENTER)
        browser.says("This is not the operator’s credential.", ".problem")
        browser.type("input[type=password]", "שלום", Keys.ENTER)
        browser.says("This is not the operator’s credential.", ".problem")
        secret = re.search(r"ubd_[\w-]+", "".join(
            path.read_text(errors="replace") for path in pathlib.Path(device.home).rglob("*") if path.is_file()))
        self.assertIsNotNone(secret)
        browser.type("input[type=password]", secret[0], Keys.ENTER)
        browser.says("This is not the operator’s credential.", ".problem")
        self.assertEqual(browser.run("return sessionStorage.length"), 0)
        browser.type("input[type=password]", self.credential, Keys.ENTER)
        browser.find(".shell")
        browser.driver.refresh()
        browser.find(".shell")
        self.assertEqual(browser.run("return JSON.stringify(localStorage) + document.cookie"), "{}")
        self.assertNotIn("ubo_", browser.driver.current_url)
        tab = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        browser.open(self.server.url + "/operator").find("input[type=password]")
        browser.driver.switch_to.window(tab)
        browser.click(".side footer .button", "Sign out")
        browser.find("input[type=password]")
        self.assertEqual(browser.run("return sessionStorage.length"), 0)
        browser.driver.refresh()
        browser.find("input[type=password]")

    def test_an_account_is_made_found_and_signs_a_device_in(self):
        browser = self.operator("accounts")
        browser.click(".button.main", "Create an account")
        browser.find("dialog input")
        browser.press("made@example.com", Keys.ENTER)
        code = self.shown_code(browser)
        browser.find("dialog svg.qr")
        browser.click("dialog .button", "Done")
        browser.wait(lambda: self.row(browser, "made@example.com"), "the new account")
        browser.click(".button.main", "Create an account")
        browser.find("dialog input")
        browser.press("made@example.com", Keys.ENTER)
        browser.says("already exists", "dialog .note.bad")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        Device(self.folder, self.server, code, "first")
        browser.type("input[type=search]", "made@")
        browser.wait(lambda: [one.text for one in browser.all(".rows strong")] == ["made@example.com"], "one account")
        self.sheet(browser, "made@example.com")
        browser.find(".devices strong", "first")
        browser.click("dialog .button", "Code for a new device")
        code = self.shown_code(browser)
        browser.click("dialog .button", "Done")
        Device(self.folder, self.server, code, "second")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.type("input[type=search]", "nobody-is-called-this")
        browser.says("No account’s name contains this.")

    def test_many_accounts_are_shown_page_by_page(self):
        for number in range(53):
            self.server.post("/v1/accounts", {"name": f"many-{number:02}"}, self.credential)
        browser = self.operator("accounts")
        browser.type("input[type=search]", "many-")
        # Until what was typed is asked, nothing continues the list before it.
        browser.wait(lambda: len(browser.all(".rows[aria-busy=false] > li")) == 50, "a page")
        browser.click(".foot .button", "More accounts")
        browser.wait(lambda: len(browser.all(".rows[aria-busy=false] > li")) == 53, "all")
        browser.gone(".foot .button")
        names = [one.text for one in browser.all(".rows strong")]
        self.assertEqual(names, [f"many-{number:02}" for number in range(53)])

    def test_a_device_is_signed_out_and_an_account_deleted_after_a_question_that_says_what_is_lost(self):
        laptop, phone = self.make("leaves", ("laptop", "phone"))
        for key in ["a", "b", "c"]:
            laptop("set", key, "value")
        laptop("sync")
        browser = self.operator("accounts")
        browser.type("input[type=search]", "leaves")
        self.sheet(browser, "leaves")
        browser.says("1 store: 3 keys", "dialog summary")
        browser.click("dialog .button", "Sign out phone")
        browser.says("What is on its disk already stays there.", "dialog.box")
        browser.click("dialog.box .button", "Sign out")
        browser.gone(".devices strong", "phone")
        with self.assertRaises(AssertionError):
            phone("sync")
        self.assertEqual([one["name"] for one in self.ask("/v1/accounts/leaves/devices")["devices"]], ["laptop"])
        browser.click("dialog .button", "Delete the account")
        browser.says("1 store (3 keys,", "dialog.box")
        browser.says("1 device will be signed out.", "dialog.box")
        browser.click("dialog.box .button", "Cancel")
        browser.gone("dialog.box")
        self.assertEqual(len(self.ask("/v1/accounts?search=leaves")["accounts"]), 1)
        browser.click("dialog .button", "Delete the account")
        browser.click("dialog.box .button", "Delete for good")
        browser.says("leaves was deleted.", "#toasts")
        browser.says("No account’s name contains this.")
        self.assertEqual(self.ask("/v1/accounts?search=leaves"), {})

    def test_limits_of_an_account_are_set_and_taken_back(self):
        self.make("limited", ())
        browser = self.operator("accounts")
        browser.type("input[type=search]", "limited")
        self.sheet(browser, "limited")
        browser.wait(lambda: browser.find(".limits button").is_enabled(), "the limits are read")
        keys, days = browser.all(".limits input")[1:3]
        keys.send_keys("2")
        days.send_keys("7", Keys.ENTER)
        browser.says("Saved.", ".limits")
        self.assertEqual(self.ask("/v1/accounts/limited/limits"), {"keysMax": "2", "historyDays": "7"})
        # What was typed does not vanish by a slip of the finger.
        keys.send_keys("0", Keys.ESCAPE)
        browser.click("dialog.box .button", "Cancel")
        browser.gone("dialog.box")
        browser.wait(lambda: keys.get_attribute("value") == "20", "what was typed")
        keys.clear()
        keys.send_keys("2", Keys.ESCAPE)
        browser.gone("dialog")
        self.sheet(browser, "limited")
        browser.wait(lambda: browser.all(".limits input")[1].get_attribute("value") == "2", "the limit is shown")
        browser.all(".limits input")[1].clear()
        browser.click(".limits button", "Save limits")
        # "Saved." may be there from before.
        browser.wait(lambda: self.ask("/v1/accounts/limited/limits") == {"historyDays": "7"}, "the limit is taken back")

    def test_apps_are_registered_and_unregistered(self):
        browser = self.operator("apps")
        browser.says("Any app may have stores on this server")
        browser.type("main input", "TEAMID.com.example.one", Keys.ENTER)
        browser.find(".rows strong", "TEAMID.com.example.one")
        self.assertEqual([one["identifier"] for one in self.ask("/v1/apps")["apps"]], ["TEAMID.com.example.one"])
        # Again, with a name for people, which the account's own page and the account's stores have, too.
        device = self.make("apps")[0]
        device("set", "theme", "dark", "--store", "TEAMID.com.example.one")
        browser.type("main input", "TEAMID.com.example.one", Keys.TAB)
        browser.press("Cloudy", Keys.ENTER)
        browser.find(".rows strong", "Cloudy")
        browser.says("TEAMID.com.example.one · registered", ".rows")
        self.assertIn("Cloudy", device("store", "list"))
        self.assertRegex(device("status", "--store", "TEAMID.com.example.one"), r"App +Cloudy")
        self.assertEqual([one["app"] for one in json.loads(device("store", "list", "--json"))], ["Cloudy"])
        browser.run("location.hash = '#/accounts'")
        self.sheet(browser, "apps")
        browser.click("dialog summary")
        browser.says("Cloudy TEAMID.com.example.one", "dialog .lines")
        person = self.browser().sign_in(self.server, self.new_code("apps"))
        person.find(".stores strong", "Cloudy")
        person.find(".stores a span", "TEAMID.com.example.one")
        person.wait(lambda: person.find(".head h1").text.split("\n") == ["Cloudy", "TEAMID.com.example.one"], "its name")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.run("location.hash = '#/apps'")
        browser.click(".button", "Unregister TEAMID.com.example.one")
        browser.click("dialog .button", "Unregister")
        browser.says("No app is registered.")
        self.assertNotIn("apps", self.ask("/v1/apps"))

    def test_the_audit_log_is_filtered_by_action_and_by_account_even_a_deleted_one(self):
        self.make("audited")
        self.make("other")
        account = self.ask("/v1/accounts?search=audited")["accounts"][0]["id"]
        browser = self.operator("audit")
        browser.find(".log li")

        def entries():
            return [one.text for one in browser.all(".log > li")]
        browser.find("main select").send_keys("Device signed in")
        browser.wait(lambda: entries() and all("Device signed in" in one for one in entries()), "sign-ins only")
        self.assertTrue(any("other" in one for one in entries()))
        browser.type("main input", "audited", Keys.ENTER)
        browser.wait(lambda: len(entries()) == 1 and "audited" in entries()[0], "the account's sign-in")
        browser.type("main input", "nobody", Keys.ENTER)
        browser.says("There is no account with this name.", ".note.bad")
        self.server.delete("/v1/accounts/audited", self.credential)
        browser.find("main select").send_keys("Everything")
        browser.type("main input", account.upper(), Keys.ENTER)
        browser.wait(lambda: entries() and "Account deleted" in entries()[0] and all(account in one for one in entries()),
                     "what happened to the deleted account")

    def test_hostile_names_are_text(self):
        self.make(hostile[:128], (hostile[:100], f"evil\u202e{hebrew}"))
        self.make(hebrew, ())
        browser = self.operator("accounts")
        browser.wait(lambda: self.row(browser, hebrew), "a name from right to left")
        browser.type("input[type=search]", "<script>")
        self.sheet(browser, hostile[:128])
        browser.find(".devices strong", hostile[:100])
        self.assertTrue(any(hebrew in one.text for one in browser.all(".devices strong")))
        # Nothing turns the rest of the page around.
        self.assertNotIn("\u202e", browser.run("return document.body.textContent"))
        browser.click("dialog .button", "Delete the account")
        browser.find("dialog.box h2", f"Delete {hostile[:128]}?")
        browser.click("dialog.box .button", "Delete for good")
        browser.says("was deleted.", "#toasts")
        browser.run("location.hash = '#/audit'")
        browser.find(".log li")
        self.assertEqual(browser.run("return document.querySelectorAll('#app script, #app img').length"), 0)
        self.assertIn("Operator", browser.driver.title)

    def test_the_charts_follow_the_server_and_say_when_it_is_away(self):
        device = self.make("charts")[0]
        browser = self.operator()
        browser.says("Ready", ".head .status")

        def figure(title):
            """What the chart says to those who cannot see it."""
            return next((one.get_attribute("aria-label") for one in browser.all(".plot svg")
                         if (one.get_attribute("aria-label") or "").startswith(title)), "")
        number = 0
        peaks = set()

        def pushed():
            nonlocal number
            number += 1
            device("set", "count", str(number))
            device("sync")
            peaks.update(re.findall(r"now ([\d.]+)", figure("Pushes a second")))
            return any(float(one) > 0 for one in peaks) and "99% within" in figure("Time to answer")
        browser.wait(pushed, "pushes in the chart")
        self.assertRegex(figure("Memory"), r"now \d+(\.\d)? MB")
        self.assertRegex(figure("Database"), r"now \d+(\.\d)? [kM]B")
        self.assertRegex(figure("Subscribers"), r"now \d+")
        self.assertTrue(browser.run("return [...document.querySelectorAll('.curve')].some((one) => one.getAttribute('d').includes('L'))"))
        browser.says("Ready", ".nodes .status")
        self.server.kill()
        browser.says("No answer", ".head .status")
        self.server.start()
        browser.says("Ready", ".head .status")

    def test_the_overview_of_a_new_server_says_what_it_will_show_and_what_it_has(self):
        server = Node(tempfile.mkdtemp(dir=self.folder))
        self.addCleanup(server.close)
        browser = self.browser().open(f"{server.url}/operator")
        browser.type("input[type=password]", server.credential, Keys.ENTER)
        browser.says("There is no account yet.", ".card")
        browser.says("No device has asked for a store in this time.", ".chart")
        # Once there is a second answer, everything else has a figure, and each scale ends at a whole number.
        browser.wait(lambda: sum("–" in one.text for one in browser.all(".chart .now")) == 1, "figures")
        ends = [one.text for one in browser.all(".chart .scale span:first-child")]
        self.assertTrue(all(re.fullmatch(r"[125]0*( ms| [kMG]?B| bytes)?", one) for one in ends), ends)
        browser.click("main a", "Create the first one")
        browser.find("h1", "Accounts")
        server.code("first")
        browser.run("location.hash = '#/overview'")
        browser.says("no device yet", ".card")

    def test_a_renewed_credential_ends_the_page(self):
        browser = self.operator("accounts")
        if self.database:
            type(self).credential = self.database.credential()
        else:
            self.server.kill()
            type(self).credential = "ubo_renewed-renewed-renewed-1234"
            pathlib.Path(self.server.data, "operator-credential").write_text(self.credential)
            self.server.start()
        browser.wait(lambda: self.server.get("/v1/apps", Authorization=f"Bearer {self.credential}").status == 200, "the new one")
        browser.type("input[type=search]", "anything")
        browser.find("input[type=password]")
        self.assertEqual(browser.run("return sessionStorage.length"), 0)
        browser.type("input[type=password]", self.credential, Keys.ENTER)
        browser.find(".shell")

    def test_a_proxys_no_does_not_sign_out(self):
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        browser = self.browser().open(f"{proxy.url}/operator#/accounts")
        browser.type("input[type=password]", self.credential, Keys.ENTER)
        browser.find("h1", "Accounts")
        for proxy.status in [401, 403]:
            browser.type("input[type=search]", str(proxy.status))
            browser.says(f"The server answered with the status {proxy.status}.", "[role=alert]")
        proxy.status = None
        browser.type("input[type=search]", "nobody")
        browser.says("No account’s name contains this.")

    def test_an_empty_server_shows_what_to_do_and_its_logs_link_makes_the_first_account_once(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        database = Database() if self.database else None
        if database:
            self.addCleanup(database.close)
        server = Node(folder, database=database)
        self.addCleanup(lambda: server.close())
        browser = self.browser().open(server.url)
        browser.says("This server has no account yet.")
        browser.type("input.code", "2222", "22222222", Keys.TAB)
        browser.press("ann", Keys.ENTER)
        browser.says("The code is wrong, has already been used, or has expired.", ".problem")
        browser = self.browser().open(server.link)
        browser.says("From the link that you opened.")
        self.assertEqual(browser.driver.current_url, server.url + "/")
        # The cursor is where the name belongs.
        browser.wait(lambda: browser.run("return document.activeElement.autocomplete") == "username", "the name's field")
        browser.press("  ", Keys.ENTER)
        self.assertEqual(browser.run("return document.activeElement.validationMessage"), "Enter a name: spaces alone are none.")
        browser.type("input[autocomplete=username]", hebrew, Keys.ENTER)
        # Three steps to go on with: the codes are good, and no phone can use this address.
        browser.find("h1", "Your account is ready")
        browser.says("ubiquity sign-in --server", ".steps")
        browser.find(".steps .qr")
        self.assertTrue(browser.run("""return [...document.querySelectorAll('.steps .command')].every((one) =>
            one.getBoundingClientRect().right <= one.closest('.card').getBoundingClientRect().right)"""))
        browser.says("cannot use this code", ".note")
        third = Device(folder, server, re.search(r"--code (\S+)", browser.text)[1], "third")
        third("sync", check=False)
        browser.click(".steps .button", "Copy")
        browser.says("Copied.", ".toast")
        browser.click(".button", "Open my data")
        browser.says(hebrew, ".who")
        # A first value of another device is seen without a reload.
        browser.find("h1", "Nothing here yet")
        third("set", "first", "value")
        browser.says("first", "main")
        browser.run("location.hash = '#/devices'")
        browser.find("h1", "Devices")
        browser.find(".badge", "This browser")
        self.assertNotIn(server.link.split("#")[1], browser.run("return JSON.stringify(localStorage) + location.href + document.referrer"))
        browser.click(".button.main", "Add a device")
        code = self.shown_code(browser)
        second = Device(folder, server, code, "second")
        second("set", "theme", "dark")
        second("sync")
        late = self.browser().open(server.link)
        late.click("form .button.main", "Sign in")
        late.says("The code is wrong, has already been used, or has expired.", ".problem")
        before = server.link
        server.kill()
        server.start()
        self.assertEqual(server.link, before)


class OnAFolder(Accessible, Actions, OperatorTest):
    def test_axe_core_finds_nothing(self):
        new = Node(tempfile.mkdtemp(dir=self.folder))
        self.addCleanup(new.close)
        browser = self.browser().open(new.url + "/operator")
        browser.type("input[type=password]", new.credential, Keys.ENTER)
        browser.says("There is no account yet.", ".card")
        self.check(browser, "a new server")
        browser.open(new.link)
        browser.says("From the link that you opened.")
        self.check(browser, "the first run")
        browser.press("ann", Keys.ENTER)
        browser.find(".steps .qr")
        self.check(browser, "next steps")
        self.make("accessible")[0]("set", "a", "value")
        browser = self.browser().open(self.server.url + "/operator")
        browser.find("input[type=password]")
        self.check(browser, "sign in")
        browser = self.operator("overview")
        browser.find("main svg")
        self.check(browser, "overview")
        browser.window(390, 844)
        self.assertTrue(browser.find(".side footer .button").is_displayed())
        browser.window(1280, 900)
        for view, sign in [("audit", ".log li"), ("apps", "main input"), ("accounts", ".open")]:
            browser.run("location.hash = arguments[0]", f"#/{view}")
            browser.find(sign)
            self.check(browser, view)
        browser.type("input[type=search]", "accessible")
        self.sheet(browser, "accessible")
        browser.wait(lambda: browser.find(".limits button").is_enabled(), "the limits are read")
        self.check(browser, "an account")
        browser.click("dialog .button", "Code for a new device")
        self.shown_code(browser)
        self.check(browser, "a code")
        browser.click("dialog.box .button", "Done")
        browser.click("dialog .button", "Delete the account")
        browser.find("dialog.box")
        self.check(browser, "a question")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog.box")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.click(".head .button", "Create an account")
        browser.find("dialog input")
        self.check(browser, "a new account")


@unittest.skipUnless(Database.programs, "PostgreSQL is not installed")
class OnPostgreSQL(Actions, OperatorTest):
    @classmethod
    def setUpClass(cls):
        cls.database = Database()
        cls.addClassCleanup(cls.database.close)
        super().setUpClass()

    def test_each_node_that_answers_has_its_own_line(self):
        other = Node(tempfile.mkdtemp(dir=self.folder), database=self.database)
        self.addCleanup(lambda: other.close())
        balancer = Balancer(self.server, other)
        self.addCleanup(balancer.close)
        browser = self.operator()
        browser.says("2 nodes are connected to the database.")
        browser.says("of the one that has answered this page")
        browser.open(balancer.url + "/operator")
        browser.type("input[type=password]", self.credential, Keys.ENTER)
        browser.wait(lambda: len(browser.all(".nodes > li")) == 2, "both nodes")
        names = {one.text for one in browser.all(".nodes h3")}
        self.assertEqual({int(name.rsplit("/")[-1]) for name in names}, {self.server.process.pid, other.process.pid})
        browser.wait(lambda: len({one.get_attribute("class") for one in browser.all(".curve")}) >= 3, "a colour for each")


if __name__ == "__main__":
    unittest.main()
