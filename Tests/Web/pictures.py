# SPDX-License-Identifier: Apache-2.0

"""Takes the pictures of the page in docs/pictures: `scripts/test-web PROGRAM --pictures`."""

import json
import unittest

from selenium.webdriver.common.keys import Keys

from stage import Device, PageTest


class Pictures(PageTest):
    def test_pictures(self):
        self.name = "ann"
        laptop = Device(self.folder, self.server, self.server.code("ann"), "Ann’s laptop")
        phone = Device(self.folder, self.server, json.loads(laptop("pair", "--json"))["code"], "Ann’s phone")
        for key, *value in [
            ("theme", "light"), ("theme", "dark"), ("font-size", "--integer", "15"), ("line-spacing", "--real", "1.4"),
            ("signature", "Warm regards, Ann"), ("spell-checking", "--bool", "true"), ("sync-drafts", "--bool", "false"),
            ("last-backup", "--date", "2026-11-21T10:00:00Z"), ("avatar", "--data", "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQ"),
            ("welcome-shown", "--bool", "true"), ("sort-order", "newest first"),
        ]:
            laptop("set", key, *value)
        phone("sync")
        phone("set", "theme", "sepia")
        phone.put("windows", {"open": ["Ideas.md", "Groceries.md", "Trip to Lisbon.md"], "pinned": 2, "sidebar": True})
        laptop("sync")
        browser = self.signed_in().store()
        browser.shows("theme", "sepia")
        laptop("set", "theme", "dark")
        browser.shows("theme", "dark")
        browser.wait(lambda: not browser.all(".fresh"), "the highlight ends")
        browser.take("page-data")
        browser.take("page-phone", 390, 844)
        browser.window(1280, 900)
        browser.click(".usage .button", "Storage use")
        browser.find("dialog .treemap g")
        browser.take("page-space")
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.sheet("theme")
        browser.find(".timeline .replaced")
        browser.take("page-history", dark=True)
        browser.take("page-history-phone", 390, 844, True)
        browser.press(Keys.ESCAPE)
        browser.gone("dialog")
        browser.window(1280, 900)
        browser.run("location.hash = '#/devices'")
        browser.find(".devices h2", "Ann’s phone")
        browser.take("page-devices")


if __name__ == "__main__":
    unittest.main()
