# SPDX-License-Identifier: Apache-2.0

"""A phone that signs in to the server of a laptop on the same local network. `scripts/test-lan` makes both
machines: this process is on the phone, and enters the laptop's network for the laptop's commands."""

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import unittest

try:
    from selenium.webdriver.common.keys import Keys
    from stage import Browser
except ImportError:
    Browser = None

PROGRAM = os.environ["UBIQUITY_PROGRAM"]
LAPTOP = ["nsenter", "--target", os.environ["UBIQUITY_LAPTOP"], "--net"]
ADDRESS = "192.168.77.1"
PORT = 7717
STORE = "TEAMID.com.example.notes"
# Only against hanging.
DEADLINE = 300


class LocalNetwork(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ubiquity-lan-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = None
        self.addCleanup(self.stop)

    def environment(self):
        # Only of this test.
        return {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C.UTF-8", "UBIQUITY_KVSTORE_IDENTIFIER": STORE}

    def start(self, *options):
        """Starts the laptop's server, and returns what it says when it is ready."""
        self.server = subprocess.Popen(
            [*LAPTOP, PROGRAM, "serve", "--lan", "--data", self.folder + "/data", "--port", str(PORT), *options],
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = ""
        while "how to avoid it" not in said:
            line = self.server.stdout.readline()
            if not line:
                self.fail("the server did not start: " + self.server.stderr.read())
            said += line
        return said

    def stop(self):
        if self.server:
            self.server.send_signal(signal.SIGTERM)
            errors = self.server.communicate(timeout=DEADLINE)[1]
            self.server = None
            return errors

    def command(self, *words, on=(), check=True):
        result = subprocess.run([*on, PROGRAM, *words], env=self.environment(), capture_output=True, text=True, timeout=DEADLINE)
        if check and result.returncode:
            self.fail(f"ubiquity {' '.join(words)}: {result.stderr}")
        return result

    def laptop(self, *words, **options):
        return self.command(*words, on=LAPTOP, **options).stdout

    def phone(self, *words, **options):
        return self.command(*words, "--home", self.folder + "/phone", **options).stdout

    def signed_in_laptop(self):
        self.laptop("account", "create", "ann", "--data", self.folder + "/data", "--sign-in", "--device-name", "laptop")

    def get(self, path, context, host=ADDRESS):
        """Over TLS, with a certificate that the context trusts."""
        connection = http.client.HTTPSConnection(host, PORT, context=context, timeout=DEADLINE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


class CommandLine(LocalNetwork):
    def test_a_phone_signs_in_by_the_laptops_link_and_each_has_the_others_values(self):
        said = self.start()
        self.assertEqual(said.splitlines()[0], f"Devices on this network use https://{ADDRESS}:{PORT}")
        self.assertRegex(said, rf"(?m)^https://{ADDRESS}:{PORT}/#[0-9A-Z-]{{14}};sha256//[A-Za-z0-9+/]{{43}}=$")
        # The folder is not the usual one.
        for words in ["account create NAME --sign-in", "ca"]:
            self.assertIn(f"`ubiquity {words} --data {self.folder}/data`", said)
        self.signed_in_laptop()
        for said in [f"ann at https://127.0.0.1:{PORT}", "only with the server's key sha256//"]:
            self.assertIn(said, self.laptop("status"))
        self.laptop("set", "volume", "--integer", "5")
        link = json.loads(self.laptop("pair", "--json"))["link"]
        self.assertTrue(link.startswith(f"https://{ADDRESS}:{PORT}#"), link)
        self.phone("sign-in", link, "--device-name", "phone")
        self.assertEqual(self.phone("get", "volume"), "5\n")
        self.assertIn("only with the server's key sha256//", self.phone("status"))
        self.phone("set", "volume", "--integer", "9")
        self.phone("sync")
        self.laptop("sync")
        self.assertEqual(self.laptop("get", "volume"), "9\n")
        names = {device["name"] for device in json.loads(self.laptop("device", "list", "--json"))}
        self.assertEqual(names, {"laptop", "phone"})

    def test_the_key_stays_through_a_restart_and_a_change_of_address(self):
        self.start()
        self.signed_in_laptop()
        link = json.loads(self.laptop("pair", "--json"))["link"]
        self.phone("sign-in", link, "--device-name", "phone")
        authority = self.laptop("ca", "-")
        self.assertEqual(self.stop(), "")
        ip = ["ip", "address"]
        subprocess.run([*LAPTOP, *ip, "add", "192.168.77.9/24", "dev", "lan0"], check=True)
        self.addCleanup(subprocess.run, [*LAPTOP, *ip, "delete", "192.168.77.9/24", "dev", "lan0"], check=True)
        self.start()
        self.phone("set", "theme", "dark")
        self.phone("sync")
        self.laptop("sync")
        self.assertEqual(self.laptop("get", "theme"), "dark\n")
        self.assertEqual(self.laptop("ca", "-"), authority)
        trusting = ssl.create_default_context(cadata=authority)
        for host in [ADDRESS, "192.168.77.9"]:
            self.assertEqual(self.get("/health/live", trusting, host)[0], 200)

    def test_the_phone_fetches_the_authority_and_then_trusts_the_server(self):
        self.start()
        self.signed_in_laptop()
        self.assertIn(f"https://{ADDRESS}:{PORT}/ca.crt", self.laptop("ca"))
        unsure = ssl.create_default_context()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.get("/", unsure)
        careless = ssl._create_unverified_context()
        status, headers, authority = self.get("/ca.crt", careless)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-x509-ca-cert"))
        self.assertEqual(authority.decode(), self.laptop("ca", "-"))
        status, headers, page = self.get("/", ssl.create_default_context(cadata=authority.decode()))
        self.assertEqual(status, 200)
        self.assertIn(b"<title>", page)
        self.assertIsNone(headers["Strict-Transport-Security"])

    def test_only_the_laptop_itself_may_do_without_tls(self):
        self.start()
        for where, host, expected in [(LAPTOP, "127.0.0.1", 200), ([], ADDRESS, 400)]:
            script = (f"import http.client as h; c = h.HTTPConnection('{host}', {PORT}, timeout={DEADLINE}); "
                      "c.request('GET', '/v1/config'); print(c.getresponse().status)")
            said = subprocess.run([*where, "python3", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual(said.stdout.strip(), str(expected), said.stderr)


@unittest.skipUnless(Browser and shutil.which("certutil"), "it needs certutil, and what scripts/test-web installs")
class Chromium(LocalNetwork):
    """On the phone, which trusts the house's authority; no option of it ignores certificates."""

    def browser(self, authority):
        before, os.environ["HOME"] = os.environ.get("HOME", "/"), self.folder
        self.addCleanup(os.environ.__setitem__, "HOME", before)
        unsure = Browser()
        self.addCleanup(unsure.driver.quit)
        unsure.open(f"https://{ADDRESS}:{PORT}").says("ERR_CERT_AUTHORITY_INVALID")
        database = f"sql:{self.folder}/.pki/nssdb"
        os.makedirs(self.folder + "/.pki/nssdb", exist_ok=True)
        for words in [["-N", "--empty-password"], ["-A", "-n", "house", "-t", "C,,", "-i", authority]]:
            subprocess.run(["certutil", "-d", database, *words], check=True)
        browser = Browser()
        self.addCleanup(browser.driver.quit)
        browser.window(390, 844)
        return browser

    def test_a_browser_makes_the_first_account_by_the_printed_link_and_the_laptop_has_its_edits(self):
        link = re.search(r"(?m)^https://.*$", self.start())[0]
        self.laptop("ca", self.folder + "/ca.crt", "--data", self.folder + "/data")
        browser = self.browser(self.folder + "/ca.crt").open(link)
        self.assertEqual(browser.run("return [isSecureContext, location.protocol]"), [True, "https:"])
        browser.type("input[autocomplete=username]", "ann")
        browser.click("form .button.main", "Create the account")
        browser.find("h1", "Your account is ready")
        self.assertFalse(browser.all(".steps .note, main > .note"))
        browser.click(".button", "Open my data")
        browser.find(".shell")
        browser.run("location.hash = '#/data/' + arguments[0]", STORE)
        browser.says("This store is empty")
        browser.click(".tools .button", "Add a key")
        browser.press("theme", Keys.ENTER)
        browser.shows("theme", "empty")
        browser.says("Up to date", ".head .status")
        self.laptop("account", "code", "ann", "--data", self.folder + "/data", "--sign-in", "--device-name", "laptop")
        self.laptop("sync")
        self.assertEqual(self.laptop("list", "--json").strip(), '{"theme":""}')
        self.laptop("set", "theme", "dark")
        browser.shows("theme", "dark")
        # On the way, without the laptop: the page is there, takes an edit, and keeps it.
        browser.works_offline()
        self.stop()
        browser.says("Not connected", ".head .status")
        browser.edit("theme", "written on the way")
        browser.says("1 change waits", ".head .status")
        browser.driver.refresh()
        browser.shows("theme", "written on the way")
        browser.says("1 change waits", ".head .status")
        self.start()
        browser.says("Up to date", ".head .status")
        self.laptop("sync")
        self.assertEqual(self.laptop("get", "theme"), "written on the way\n")
