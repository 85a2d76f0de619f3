# SPDX-License-Identifier: Apache-2.0

"""Firefox under Selenium, by the protocol that Firefox itself speaks: no driver between them has to be installed."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.file_detector import UselessFileDetector
from selenium.webdriver.support.ui import WebDriverWait

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
PREFERENCES = {
    "marionette.port": 0, "intl.accept_languages": "en-GB", "intl.locale.requested": "en-GB",
    "browser.shell.checkDefaultBrowser": False, "browser.startup.page": 0, "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "ui.prefersReducedMotion": 0,
}
# Selenium's names, where they are not the same in lower case.
NAMES = {
    "get": "Navigate", "close": "CloseWindow", "quit": "DeleteSession", "findChildElement": "FindElement",
    "findChildElements": "FindElements", "clickElement": "ElementClick", "clearElement": "ElementClear",
    "sendKeysToElement": "ElementSendKeys", "getElementValueOfCssProperty": "GetElementCSSValue",
    "w3cExecuteScriptAsync": "ExecuteAsyncScript", "w3cGetCurrentWindowHandle": "GetWindowHandle", "actions": "PerformActions",
    "getCurrentUrl": "GetCurrentURL", "screenshot": "TakeScreenshot",
}


class Marionette:
    """Carries out what Selenium sends to a driver."""

    client_config = None

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.input = self.connection.makefile("rb")
        self.count = 0
        self.receive()

    def receive(self):
        """A message: its length, a colon, and JSON."""
        length = b""
        while (byte := self.input.read(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox has ended")
            length += byte
        return json.loads(self.input.read(int(length)))

    def execute(self, command, parameters):
        name = NAMES.get(command) or command.removeprefix("w3c")[:1].upper() + command.removeprefix("w3c")[1:]
        parameters = {key: value for key, value in (parameters or {}).items() if key != "sessionId"}
        if command.startswith("findChild"):
            parameters["element"] = parameters.pop("id")
        if command == "newSession":
            parameters = parameters["capabilities"]["alwaysMatch"]
        self.count += 1
        text = json.dumps([0, self.count, f"WebDriver:{name}", parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.receive()
        if error:
            return {"status": 500, "value": json.dumps({"value": error})}
        return {"value": result["value"] if isinstance(result, dict) and "value" in result else result}

    def close(self):
        self.input.close()
        self.connection.close()


class Firefox(webdriver.Remote):
    """A Firefox with a profile of its own."""

    def __init__(self, deadline, downloads=None):
        self.deadline = deadline
        self.profile = tempfile.mkdtemp(prefix="ubiquity-firefox-")
        preferences = PREFERENCES | ({"browser.download.folderList": 2, "browser.download.dir": downloads} if downloads else {})
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
        pathlib.Path(self.profile, "user.js").write_text("\n".join(lines))
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--marionette", "--no-remote", "--profile", self.profile],
            env=os.environ | {"HOME": self.profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            super().__init__(command_executor=Marionette(self.port(deadline)), options=webdriver.FirefoxOptions())
        except BaseException:
            self.end()
            raise
        self.file_detector = UselessFileDetector()
        self.set_script_timeout(deadline)

    def port(self, deadline):
        file = pathlib.Path(self.profile, "MarionetteActivePort")
        end = time.monotonic() + deadline
        while not (file.exists() and file.read_text()):
            assert self.process.poll() is None and time.monotonic() < end, "Firefox did not start"
            time.sleep(0.05)
        return int(file.read_text())

    def refresh(self):
        """As people reload: Marionette's own passes by the service worker."""
        self.execute_script("window.isOld = true; location.reload()")
        WebDriverWait(self, self.deadline, 0.05, [WebDriverException]).until(
            lambda _: self.execute_script("return !window.isOld && document.readyState === 'complete'"))

    def quit(self):
        super().quit()
        self.end()

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, True)
