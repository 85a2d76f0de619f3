# SPDX-License-Identifier: Apache-2.0
"""Disks and systems that fail: what a store says then, and what is there afterwards."""

import os
import resource
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from support import DEADLINE, IDENTIFIER, StoreTest, wait_until

from ubiquity_store import Store, UbiquityError, disk

#: Of Tests/Faults/faults.c, compiled.
LIBRARY = os.environ.get("UBIQUITY_FAULT_LIBRARY", "")
#: Does what it is told, line by line, and answers with one.
PROGRAM = """
import sys
from ubiquity_store import Store, UbiquityError
for line in sys.stdin:
    word, *more = line.split()
    try:
        match word:
            case "open": store, answer = Store(*more), "opened"
            case "write": store["a"], answer = int(more[0]), "written"
            case "save": answer = store.synchronize()
            case "reason": answer = store.status["diskError"]
            case "sync": answer = store.sign_in(*more, device_name="a")
            case "close": answer = store.close()
            case "leave":
                with store: store["a"] = int(more[0])
                answer = "left"
    except UbiquityError as error:
        answer = f"{error.code}: {error}"
    print(answer, flush=True)
"""


@unittest.skipUnless(LIBRARY, "UBIQUITY_FAULT_LIBRARY does not name the library of Tests/Faults")
class FaultTests(StoreTest):
    def setUp(self) -> None:
        super().setUp()
        self.rules = self.folder / "faults"
        self.home = self.folder / "home"
        environment = {"UBIQUITY_FAULTS": str(self.rules), "LD_PRELOAD": LIBRARY}
        with mock.patch.dict(os.environ, environment):
            self.process = self.python(PROGRAM)

    def set_faults(self, *rules: str) -> None:
        self.rules.with_suffix(".new").write_text("".join(f"{rule}\n" for rule in rules))
        self.rules.with_suffix(".new").rename(self.rules)

    def tell(self, *words: object) -> str:
        assert self.process.stdin and self.process.stdout
        print(*words, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def begin(self) -> None:
        self.assertEqual(self.tell("open", self.home, IDENTIFIER), "opened")
        self.tell("write", 1)
        self.assertEqual(self.tell("save"), "True")

    def assertMet(self) -> None:
        self.assertTrue(self.folder.joinpath("faults.log").exists(), "no rule was met")

    def killed(self) -> Store:
        """The store, of which another process has been killed."""
        self.process.kill()
        self.process.wait()
        return self.open("home")

    def test_no_save_counts_that_the_disk_has_refused(self) -> None:
        for rule in ("open sqlite-journal EACCES", "write sqlite-journal ENOSPC",
                     "write ubiquity.sqlite$ ENOSPC", "flush sqlite-journal EIO",
                     "flush ubiquity.sqlite$ EIO", "unlink sqlite-journal EIO", "flush home$ EIO"):
            with self.subTest(rule):
                self.setUp()
                self.begin()
                self.set_faults(rule)
                self.tell("write", 2)
                self.assertEqual(self.tell("save"), "False")
                self.assertMet()
                self.assertNotIn(self.tell("reason"), ("None", ""))
                closed = self.tell("leave", 3)
                self.assertTrue(closed.startswith("storage: ") and "not on the disk: " in closed, closed)
                with self.killed() as store:
                    self.assertIn(store["a"], (1, 2, 3))

    def test_what_a_disk_has_refused_is_saved_when_it_works_again(self) -> None:
        for rule in ("write ubiquity.sqlite$ ENOSPC", "unlink sqlite-journal EIO", "flush home$ EIO"):
            with self.subTest(rule):
                self.setUp()
                self.begin()
                self.set_faults(rule)
                self.tell("write", 2)
                self.assertEqual(self.tell("save"), "False")
                self.set_faults()
                self.assertEqual(self.tell("save"), "True")
                self.assertEqual(self.tell("reason"), "None")
                with self.killed() as store:
                    self.assertEqual(store["a"], 2)

    def test_a_disk_that_works_again_in_time_is_no_error_of_closing(self) -> None:
        self.begin()
        self.set_faults("write ubiquity.sqlite$ ENOSPC")
        self.tell("write", 2)
        self.assertEqual(self.tell("save"), "False")
        self.assertMet()
        self.set_faults()
        self.assertEqual(self.tell("leave", 3), "left")
        self.assertEqual(self.killed()["a"], 3)

    def test_a_home_is_on_the_disk_before_anything_counts(self) -> None:
        self.home = self.folder / "new" / "newer" / "home"
        for folder in (self.folder, self.folder / "new", self.folder / "new" / "newer", self.home):
            self.set_faults(f"flush {folder}$ EIO")
            answer = self.tell("open", self.home, IDENTIFIER)
            self.assertTrue(answer.startswith("storage: "), answer)
            subprocess.run(["rm", "-r", self.folder / "new"], check=True)
        for rule in ("mkdir newer ENOSPC", "open lock EMFILE", "open ubiquity.sqlite ENOSPC",
                     "write ubiquity.sqlite ENOSPC"):
            self.set_faults(rule)
            answer = self.tell("open", self.home, IDENTIFIER)
            self.assertTrue(answer.startswith("storage: "), answer)
        self.set_faults()
        self.begin()

    def test_a_thread_that_cannot_be_started_costs_a_request_and_no_store(self) -> None:
        self.begin()
        self.set_faults("thread * EAGAIN")
        answer = self.tell("sync", "http://127.0.0.1:9", "CODE")
        self.assertTrue(answer.startswith("unreachable: ") and "thread" in answer, answer)
        self.tell("write", 2)
        self.assertEqual(self.tell("save"), "True")
        self.set_faults()
        self.assertEqual(self.tell("close"), "None")
        for count in (1, 2, 3):
            # One of those that a store has.
            self.set_faults(f"thread * EAGAIN {count}")
            answer = self.tell("open", self.home, IDENTIFIER)
            self.assertTrue(answer.startswith("storage: ") and "thread" in answer, answer)
        self.set_faults()
        self.assertEqual(self.tell("open", self.home, IDENTIFIER), "opened")

    def test_the_engine_does_not_reserve_gigabytes(self) -> None:
        text = ("import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
                "from ubiquity_store import Store\n"
                "with Store(*sys.argv[1:]) as store: store['a'] = 'x' * 1_000_000")
        subprocess.run([sys.executable, "-c", text, self.folder / "a", IDENTIFIER], check=True)
        self.assertEqual(len(str(self.open("a")["a"])), 1_000_000)
        self.assertNotEqual(resource.getrlimit(resource.RLIMIT_AS)[0], 2 << 30)


class PlaceTests(StoreTest):
    def refused(self, store: Store) -> str:
        store["a"] = 2
        self.assertFalse(store.synchronize())
        return str(store.status["diskError"])

    def test_no_save_counts_in_a_home_that_is_not_at_its_place(self) -> None:
        for change in ("home", "lock", "ubiquity.sqlite", "copy"):
            with self.subTest(change):
                home, moved = self.folder / change, self.folder / f"{change} moved"
                store = self.open(change)
                store["a"] = 1
                self.assertTrue(store.synchronize())
                if change in ("lock", "ubiquity.sqlite"):
                    home, moved = home / change, home / "moved"
                home.rename(moved)
                if change == "copy":
                    subprocess.run(["cp", "-r", moved, home], check=True)
                self.assertIn("moved or replaced", self.refused(store))
                if change == "copy":
                    subprocess.run(["rm", "-r", home], check=True)
                moved.rename(home)
                self.assertTrue(store.synchronize())
                home.rename(moved)
                store["a"] = 3
                with self.assertRaises(UbiquityError) as caught:
                    store.close()
                self.assertIn("moved or replaced", str(caught.exception))
                moved.rename(home)
                self.assertEqual(self.open(change)["a"], 2)

    def test_a_relative_home_is_where_it_was_when_it_was_opened(self) -> None:
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        store = Store("relative", IDENTIFIER)
        self.addCleanup(store.close)
        os.chdir(before)
        store["a"] = 1
        self.assertTrue(store.synchronize())
        store.close()
        self.assertEqual(self.open("relative")["a"], 1)

    def test_a_home_on_a_network_file_system_is_refused(self) -> None:
        local = "25 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        mounts = (local + "40 25 0:41 / /a\\040b rw - nfs4 host:/ rw\n"
                  "41 25 0:42 / /s rw shared:9 master:2 - fuse.sshfs host: rw\n"
                  "42 41 0:43 / /s/local rw - xfs /dev/sdb rw\n"
                  "43 25 0:44 / /over rw - cifs //host/x rw\n44 43 0:45 / /over rw - ext4 /dev/c rw\n")
        for path, kind in (("/a b", "nfs4"), ("/a b/c", "nfs4"), ("/a bc", None), ("/s/x", "sshfs"),
                           ("/s/local/x", None), ("/over/x", None), ("/", None), ("/sx", None)):
            self.assertEqual(disk.network_of(path, mounts), kind, path)
        self.assertIsNone(disk.network_of("/a", "not a list\n\n"))
        shared = local + f"30 25 0:40 / {self.folder.resolve()} rw - fuse.sshfs host: rw\n"
        with mock.patch.object(disk, "_mounts", return_value=shared):
            with self.assertRaises(UbiquityError) as caught:
                Store(self.folder / "a", IDENTIFIER)
        self.assertEqual(caught.exception.code, "storage")
        self.assertIn("sshfs", str(caught.exception))
        self.assertFalse((self.folder / "a").exists())

    def test_a_store_that_is_dropped_gives_its_home_back(self) -> None:
        store = Store(self.folder / "a", IDENTIFIER)
        store.subscribe(lambda change: None)
        store["a"] = 1
        del store
        self.assertEqual(self.open("a")["a"], 1)
