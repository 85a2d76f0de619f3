# SPDX-License-Identifier: Apache-2.0

"""Takes the pictures of the operator's page in docs/pictures: `scripts/test-web PROGRAM --pictures`."""

import tempfile
import unittest

from selenium.webdriver.common.keys import Keys

from node import Node
from test_operator import OperatorTest


class OperatorPictures(OperatorTest):
    def test_first_run(self):
        server = Node(tempfile.mkdtemp(dir=self.folder))
        self.addCleanup(lambda: server.close())
        browser = self.browser().open(server.link)
        browser.says("From the link that you opened.")
        browser.press("ann")
        browser.take("first-run-phone", 390, 844)

    def test_pictures(self):
        laptop, phone = self.make("ann@example.com", ("Ann’s laptop", "Ann’s phone"))
        for name in ["bob@example.com", "carla@example.com", "zoë@example.com"]:
            self.make(name)
        for key in range(40):
            laptop("set", f"key-{key}", "a value of some length " * 4)
        laptop("sync")
        reader = self.browser().sign_in(self.server, self.new_code("ann@example.com")).store()
        browser = self.operator()
        number = 0

        def busy():
            nonlocal number
            for _ in range(1 + number % 4):
                number += 1
                device = phone if number % 2 else laptop
                device("set", "count", str(number))
                device("sync")
            return number > 12
        browser.wait(busy, "some minutes of work")
        reader.shows("count", str(number))
        browser.take("operator")
        browser.take("operator-dark", dark=True)
        browser.take("operator-phone", 390, 844)
        browser.window(1280, 900)
        browser.run("location.hash = '#/accounts'")
        self.sheet(browser, "ann@example.com")
        browser.find(".devices strong", "Ann’s phone")
        browser.find("dialog summary")
        browser.take("operator-account")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.run("location.hash = '#/audit'")
        browser.find(".log li")
        browser.take("operator-audit-phone", 390, 844, True)


if __name__ == "__main__":
    unittest.main()
