# SPDX-License-Identifier: Apache-2.0

"""A server, devices of the command line, and browsers, all of which end with the test."""

import atexit
import contextlib
import functools
import glob
import importlib.util
import json
import os
import pathlib
import plistlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from selenium.webdriver.webkitgtk.service import Service as WebKitService

from marionette import Firefox

PROGRAM = os.environ["UBIQUITY_PROGRAM"]
KIND = os.environ.get("WEB_BROWSER") or "chromium"
# As it calls itself to people.
BROWSER = {"chromium": "Chrome", "firefox": "Firefox", "webkit": "Safari"}[KIND]
STORE = "TEAMID.com.example.notes"
# Only against hanging: nothing fails because a machine is slow.
DEADLINE = int(os.environ.get("WEB_DEADLINE", 300))


def free_port():
    """A port below those that systems give, so that none takes it while its server is away."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as one:
            port = random.randint(15_000, 32_000)
            one.bind(("127.0.0.1", port))
            return port


class Server:
    """A server of its own, which can be killed and started again at its address."""

    def __init__(self, folder, *options):
        self.data = os.path.join(folder, "data")
        self.options = options
        self.port = free_port()
        self.process = None
        self.start()

    def start(self, place=None, level="error", log=None):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *(place or ["--data", self.data]), "--port", str(self.port), "--json", "--end-with-input",
             "--log-level", level, "--requests-per-second", "100000", *self.options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.url, self.port = ready["url"], ready["port"]

    def operate(self, *words):
        """An operator's command while the server is away for everybody else."""
        port, self.port = self.port, free_port()
        self.start()
        try:
            run(*words, "--data", self.data)
        finally:
            self.kill()
            self.port = port

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def get(self, path, **headers):
        return answered(urllib.request.Request(self.url + path, headers=headers))

    def post(self, path, body, credential=None):
        """The message of the answer, or its problem."""
        headers = {"Content-Type": "application/json"}
        if credential:
            headers["Authorization"] = f"Bearer {credential}"
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        return json.loads(answered(request).read() or "{}")

    def code(self, account, new=True):
        words = ["create" if new else "code", account, "--data", self.data, "--json"]
        return json.loads(run("account", *words))["code"]


def answered(request):
    """The answer with its whole body, whatever its status; nothing stays open."""
    try:
        answer = urllib.request.urlopen(request, timeout=DEADLINE)
    except urllib.error.HTTPError as problem:
        answer = problem
    with answer:
        body = answer.read()
        answer.read = lambda: body
    return answer


def run(*words, home=None, check=True):
    environment = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir()}
    if home:
        environment |= {"UBIQUITY_HOME": home, "UBIQUITY_KVSTORE_IDENTIFIER": STORE}
        words = (*words, "--home", home)
    result = subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True, timeout=DEADLINE)
    if check and result.returncode:
        raise AssertionError(f"ubiquity {' '.join(words)}: {result.stderr}")
    return result.stdout.strip()


class Device:
    """A device of the command line."""

    def __init__(self, folder, server, code, name="laptop"):
        self.home = tempfile.mkdtemp(dir=folder)
        run("sign-in", "--server", server.url, "--code", code, "--device-name", name, home=self.home)

    def __call__(self, *words, **options):
        return run(*words, home=self.home, **options)

    def put(self, key, value):
        """Sets a key to a value of any type."""
        with tempfile.NamedTemporaryFile() as file:
            plistlib.dump(value, file, fmt=plistlib.FMT_BINARY)
            file.flush()
            self("set", key, "--plist", "@" + file.name)

    def value(self, key):
        """The value of a key, after a round trip, in the protocol's form; None for none."""
        self("sync", check=False)
        text = self("get", key, "--exact", check=False)
        return json.loads(text) if text else None


@functools.cache
def screen():
    process = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(process.wait)
    atexit.register(process.kill)
    return f":{process.stdout.readline().strip()}"


class WebKitElement(WebElement):
    """WebKit's driver finds no text in an element whose parts have none of their own."""

    @property
    def text(self):
        return self.get_property("innerText").strip()


class WebKit(webdriver.WebKitGTK):
    _web_element_cls = WebKitElement

    def execute(self, command, params=None):
        """A second tab would not come to the front, and draw nothing."""
        return super().execute(command, {"type": "window"} if command == "newWindow" else params)


class Browser:
    """A browser with a profile of its own."""

    def __init__(self, downloads=None):
        self.driver = getattr(self, KIND)(downloads)
        self.window(1280, 900)

    @staticmethod
    def firefox(downloads):
        return Firefox(DEADLINE, downloads)

    @staticmethod
    def webkit(_):
        """WebKitGTK's own small browser, on a screen that nobody sees. It forgets everything at its end."""
        options = webdriver.WebKitGTKOptions()
        options.binary_location = max(glob.glob("/usr/lib/*/webkit2gtk-*/MiniBrowser"))
        options.add_argument("--automation")
        # Containers have no namespaces for its sandbox.
        environment = {"DISPLAY": screen(), "GDK_BACKEND": "x11", "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
        service = WebKitService(shutil.which("WebKitWebDriver"), env=os.environ | environment)
        return WebKit(options=options, service=service)

    @staticmethod
    def chromium(downloads):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ["headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
                     "hide-scrollbars", "window-size=1280,900", "lang=en-GB"]:
            options.add_argument(f"--{word}")
        if downloads:
            options.add_experimental_option("prefs", {"download.default_directory": downloads})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        # As people's browsers call themselves.
        agent = driver.execute_script("return navigator.userAgent").replace("Headless", "")
        driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": agent})
        return driver

    def window(self, width, height, dark=False):
        if KIND != "chromium":
            self.driver.set_window_rect(0, 0, width, height)
            return
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, url):
        self.driver.get(url)
        return self

    def all(self, selector, text=None):
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return [one for one in found if text is None or text == one.text.strip()
                or text == one.get_attribute("aria-label")]

    def wait(self, condition, what):
        """Waits for a state, whatever the page redraws or moves meanwhile."""
        again = [StaleElementReferenceException, ElementClickInterceptedException]
        try:
            return WebDriverWait(self.driver, DEADLINE, 0.05, again).until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"{what}\n{self.text}") from None

    def find(self, selector, text=None):
        return self.wait(lambda: next(iter(self.all(selector, text)), None), f"{selector} {text or ''}")

    def gone(self, selector, text=None):
        self.wait(lambda: not self.all(selector, text), f"{selector} is still there")

    def says(self, text, selector="body"):
        self.wait(lambda: any(text in one.text for one in self.all(selector)), f"{selector} does not say: {text}")

    def click(self, selector, text=None):
        def act():
            element = next(iter(self.all(selector, text)), None)
            if not element or not element.is_displayed() or not element.is_enabled():
                return False
            element.click()
            return True
        self.wait(act, f"{selector} {text or ''} cannot be clicked")

    def opens(self, click, selector, text=None):
        """Clicks until something is there: a click in whose middle the page is drawn anew is nobody's."""
        def act():
            if not self.all(selector, text):
                click()
                end = time.monotonic() + 5
                while not self.all(selector, text) and time.monotonic() < end:
                    time.sleep(0.05)
            return self.all(selector, text)
        self.wait(act, f"{selector} {text or ''}")

    def type(self, selector, *keys):
        element = self.find(selector)
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(*keys)

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    @property
    def text(self):
        # In one step: a page may be on its way out.
        return (self.run("return document.body?.innerText") or "")[:4_000]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def works_offline(self):
        """Waits until the page is kept."""
        self.wait(lambda: self.run("return navigator.serviceWorker.controller?.state") == "activated", "no service worker")

    def row(self, key):
        """The row of a key in the list; None if it is not there."""
        return next((one for one in self.all(".keys > li")
                     if one.find_element(By.CSS_SELECTOR, ".key").text == key), None)

    def value(self, key):
        """What the list shows for a key; None without one."""
        with contextlib.suppress(StaleElementReferenceException):
            row = self.row(key)
            if row is None:
                return None
            switch = row.find_elements(By.CSS_SELECTOR, ".switch")
            if switch:
                return switch[0].get_attribute("aria-checked") == "true"
            return row.find_element(By.CSS_SELECTOR, ".value").text
        return None

    def shows(self, key, value):
        self.wait(lambda: self.value(key) == value, f"{key} is not {value}")

    def in_row(self, key, selector):
        return self.wait(lambda: (row := self.row(key)) and row.find_element(By.CSS_SELECTOR, selector), key)

    def edit(self, key, value, ends=True):
        """Types a value in the key's row."""
        # What comes above the row meanwhile may take the click.
        self.wait(lambda: self.run("return document.activeElement.matches('.value input')") or self.in_row(key, ".edit").click(),
                  f"{key} cannot be edited")
        self.press(Keys.CONTROL, "a")
        self.press(value, *([Keys.ENTER] if ends else []))

    def sheet(self, key):
        self.in_row(key, ".key").click()
        return self.find("dialog.sheet")

    def sign_in(self, server, code):
        self.open(f"{server.url}/#{code}")
        self.click("form .button.main", "Sign in")
        # It came by a link.
        self.click("dialog .button", "Sign in")
        self.find(".shell")
        return self

    def store(self, name=STORE):
        """Opens a store, and waits until it is there."""
        self.run("location.hash = '#/data/' + arguments[0]", name)
        self.find(".head h1", name)
        self.says("Up to date", ".head .status")
        return self

    def barriers(self):
        """What axe-core finds on the page as it is, for people with disabilities, however slight."""
        self.wait(self.is_still, "movements")
        if not self.run("return Boolean(window.axe)"):
            package = importlib.util.find_spec("axe_playwright_python").submodule_search_locations[0]
            self.run(pathlib.Path(package, "axe.min.js").read_text())
        found = self.driver.execute_async_script("""
            const [done] = arguments;
            axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations), (error) => done(String(error)));""")
        if isinstance(found, str):
            raise AssertionError(found)
        return [f"{one['impact']}: {one['help']} ({one['id']}): {node['html'][:200]} {node['failureSummary'][:300]}"
                for one in found for node in one["nodes"]]

    def is_still(self):
        """Whether nothing moves any more."""
        return self.run("return document.getAnimations().every((one) => one.playState !== 'running')")

    def take(self, name, width=1280, height=900, dark=False):
        """Takes a picture for the documents."""
        self.window(width, height, dark)
        self.wait(self.is_still, "movements")
        pictures = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/pictures"
        self.driver.save_screenshot(str(pictures / f"{name}.png"))

    def complaints(self):
        """What Chromium's console says, besides requests that a killed server did not answer."""
        if KIND != "chromium":
            return []
        return [entry["message"] for entry in self.driver.get_log("browser")
                if "net::ERR_" not in entry["message"] and "the server responded with a status of" not in entry["message"]]


class Accessible:
    """axe-core finds nothing, whatever is shown: by day and by night, on a screen and on a phone."""

    def check(self, browser, view):
        for width, height in [(1280, 900), (390, 844)]:
            for is_dark in [False, True]:
                browser.window(width, height, is_dark)
                with self.subTest(view, width=width, dark=is_dark):
                    self.assertEqual(browser.barriers(), [])
        browser.window(1280, 900)


class PageTest(unittest.TestCase):
    """With one server for the tests of a class."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ubiquity-web-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.server = cls.make_server()
        cls.addClassCleanup(lambda: cls.server.close())
        cls.accounts = 0

    @classmethod
    def make_server(cls):
        return Server(cls.folder, *cls.options)

    def account(self):
        """A device of a new account, and the account's name."""
        type(self).accounts += 1
        self.name = f"person{self.accounts}"
        return Device(self.folder, self.server, self.server.code(self.name))

    def browser(self, **options):
        browser = Browser(**options)
        self.addCleanup(browser.driver.quit)
        self.addCleanup(lambda: self.assertEqual(browser.complaints(), []))
        return browser

    def signed_in(self, **options):
        return self.browser(**options).sign_in(self.server, self.server.code(self.name, False))

    def stage(self, *values):
        """A device with values, and a browser that shows them."""
        device = self.account()
        for key, *value in values or [("theme", "dark")]:
            device("set", key, *value)
        browser = self.signed_in().store()
        return device, browser
