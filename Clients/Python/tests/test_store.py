# SPDX-License-Identifier: Apache-2.0
"""A store alone: its home, its values, and what goes wrong on this machine."""

import gc
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import weakref
from unittest import mock

from support import DEADLINE, IDENTIFIER, StoreTest, wait_until
from test_plist import SAMPLES, UNSUPPORTED

from ubiquity_store import Status, Store, UbiquityError, shell
from ubiquity_store.engine import Engine, encoded

FORMATS = pathlib.Path(
    os.environ.get("UBIQUITY_FORMATS") or pathlib.Path(__file__).resolve().parents[3] / "Tests/Formats/1")
HOLDER = """
import sys, time
from ubiquity_store import Store
store = Store(sys.argv[1], sys.argv[2])
store["a"] = 1
print(store.synchronize(), flush=True)
store["b"] = 2
time.sleep(600)
"""
FORKED = """
import os, sys
from ubiquity_store import Store, UbiquityError
with Store(sys.argv[1], sys.argv[2]) as store:
    store["a"] = 1
    if os.fork() == 0:
        try:
            store["a"] = 2
        except UbiquityError as error:
            print(error.code, flush=True)
        # Leaves the block, and ends as a process does.
        sys.exit()
    os.wait()
    store["b"] = 3
    print(store.synchronize())
"""


def threads() -> int:
    """Those of this process, by the system's count."""
    return len(os.listdir("/proc/self/task"))


class HomeTests(StoreTest):
    def test_a_home_of_version_0_9_is_opened_with_what_it_had_not_sent(self) -> None:
        home = self.folder / "home"
        shutil.copytree(FORMATS / "python", home)
        with Store(home, "TEAM.example.formats") as store:
            self.assertEqual(store.account, "ann")
            self.assertEqual(store["theme"], "dark")
            self.assertEqual(store["unsent python"], 2.5)
            self.assertEqual(store.status["pendingKeys"], ["unsent python"])

    def test_what_was_written_is_there_after_a_restart(self) -> None:
        with self.open("a") as store:
            for index, value in enumerate(SAMPLES):
                store[f"k{index}"] = value
            store["removed"] = 1
            del store["removed"]
            self.assertTrue(store.synchronize())
            self.assertEqual(len(store.status["pendingKeys"]), len(SAMPLES) + 1)
        store = self.open("a")
        for index, value in enumerate(SAMPLES):
            self.assertEqual(repr(store[f"k{index}"]), repr(value))
        self.assertEqual(len(store), len(SAMPLES))
        self.assertNotIn("removed", store)
        self.assertIsNone(store.get("removed"))
        with self.assertRaises(KeyError):
            del store["removed"]

    def test_only_its_owner_reads_a_home(self) -> None:
        self.open("a")
        self.assertEqual(stat.S_IMODE((self.folder / "a").stat().st_mode), 0o700)
        for file in (self.folder / "a").iterdir():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600, file)

    def test_a_home_is_for_one_store_in_one_process(self) -> None:
        holder = self.python(HOLDER, self.folder / "a", IDENTIFIER)
        assert holder.stdout
        self.assertEqual(holder.stdout.readline(), "True\n")
        with self.assertRaises(UbiquityError) as caught:
            self.open("a")
        self.assertEqual(caught.exception.code, "open")
        # Whatever ends a process, its lock is gone, and what it had saved is there.
        holder.kill()
        holder.wait()
        store = self.open("a")
        self.assertEqual(store["a"], 1)
        with self.assertRaises(UbiquityError):
            self.open("a")
        store.close()
        self.assertEqual(self.open("a")["a"], 1)

    def test_a_program_that_ends_without_a_word_loses_nothing(self) -> None:
        text = "import sys, ubiquity_store as u; u.Store(sys.argv[1], sys.argv[2])['a'] = 1"
        command = [sys.executable, "-c", text, str(self.folder / "a"), IDENTIFIER]
        subprocess.run(command, check=True, timeout=DEADLINE)
        self.assertEqual(self.open("a")["a"], 1)

    def test_a_forked_process_leaves_the_store_to_its_parent(self) -> None:
        command = [sys.executable, "-c", FORKED, str(self.folder / "a"), IDENTIFIER]
        result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(result.stdout, "closed\nTrue\n", result.stderr)
        self.assertEqual(dict(self.open("a")), {"a": 1, "b": 3})

    def test_a_home_that_cannot_be_used_is_an_error_with_a_sentence(self) -> None:
        (self.folder / "file").write_text("not a folder")
        (self.folder / "broken").mkdir()
        (self.folder / "broken" / "ubiquity.sqlite").write_bytes(b"not a database" * 100)
        newer = self.folder / "newer"
        self.open("newer").close()
        database = sqlite3.connect(newer / "ubiquity.sqlite")
        database.execute("PRAGMA user_version = 2")
        database.close()
        for name in ("file", "broken", "newer"):
            with self.subTest(name), self.assertRaises(UbiquityError) as caught:
                self.open(name)
            self.assertEqual(caught.exception.code, "storage")
            self.assertIn(name, str(caught.exception))


    def test_an_identifier_is_checked(self) -> None:
        for identifier in ("", ".a", "a/b", "a?b", "a" * 256, "a\n", "é"):
            with self.subTest(identifier), self.assertRaises(UbiquityError) as caught:
                Store(self.folder / "a", identifier)
            self.assertEqual(caught.exception.code, "identifier")
        self.assertFalse((self.folder / "a").exists())


class WritingTests(StoreTest):
    def test_what_no_store_can_hold_is_refused_and_changes_nothing(self) -> None:
        store = self.open("a")
        for value in UNSUPPORTED[1:]:
            with self.subTest(value=repr(value)[:40]), self.assertRaises(UbiquityError) as caught:
                store.write({"good": 1, "bad": value})
            self.assertEqual(caught.exception.code, "unsupported-value")
            self.assertEqual(caught.exception.keys, ("bad",))
        for key, code in (("k" * 65, "key-too-long"), ("", "key"), ("\ud800", "unsupported-value")):
            with self.subTest(key=key), self.assertRaises(UbiquityError) as caught:
                store[key] = 1
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(UbiquityError) as caught:
            store["large"] = bytes(1 << 21)
        self.assertEqual(caught.exception.code, "value-too-large")
        with self.assertRaises(UbiquityError):
            store.write({1: 1})  # type: ignore[dict-item]
        self.assertNotIn("\ud800", store)
        self.assertEqual(dict(store), {})

    def test_what_an_app_changes_of_a_value_changes_nothing(self) -> None:
        store = self.open("a")
        store["list"] = [1]
        store["list"].append(2)  # type: ignore[union-attr]
        self.assertEqual(store["list"], [1])

    def test_many_threads_write_and_read(self) -> None:
        store = self.open("a")

        def write(number: int) -> None:
            for index in range(20):
                store[f"{number}-{index}"] = index
                self.assertEqual(store[f"{number}-{index}"], index)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(store.synchronize())
        self.assertEqual(len(store), 160)

    def test_a_disk_that_fails_is_told_and_tried_again(self) -> None:
        store = self.open("a")
        with mock.patch.object(store._shell._disk, "save", side_effect=sqlite3.OperationalError("full")):
            store["a"] = 1
            self.assertFalse(store.synchronize())
            self.assertIn("full", str(store.status["diskError"]))
            with self.assertRaises(UbiquityError) as caught:
                store.sign_in("http://127.0.0.1:9", "CODE", device_name="a")
            self.assertEqual(caught.exception.code, "storage")
        self.assertTrue(store.synchronize())
        store.close()
        self.assertEqual(self.open("a")["a"], 1)

    def test_a_save_that_was_made_and_not_told_is_found(self) -> None:
        store = self.open("a")
        store["a"] = 1
        store.synchronize()
        store._shell._disk.save(f"1/{IDENTIFIER}", {"entries": []})
        store["b"] = 2
        self.assertTrue(store.synchronize())
        store.close()
        self.assertEqual(dict(self.open("a")), {"a": 1, "b": 2})

    def test_a_save_that_does_not_fit_changes_nothing(self) -> None:
        store = self.open("a")
        store["a"] = 1
        store.synchronize()
        before = store._shell._disk.load(f"1/{IDENTIFIER}")
        step = {"expects": before["version"] - 1, "entries": [{"key": b"k", "entry": b"e"}]}
        self.assertIsNone(store._shell._disk.save(f"1/{IDENTIFIER}", step))
        broken = {"expects": before["version"], "entries": [{"key": b"k", "entry": {}}]}
        with self.assertRaises(sqlite3.Error):
            store._shell._disk.save(f"1/{IDENTIFIER}", broken)
        self.assertEqual(store._shell._disk.load(f"1/{IDENTIFIER}"), before)


class MappingTests(StoreTest):
    def test_what_is_no_string_is_no_key(self) -> None:
        store = self.open("a")
        store["1"] = 1
        for key in (1, None, b"1", ("1",)):
            self.assertNotIn(key, store)
            self.assertIsNone(store.get(key))  # type: ignore[call-overload]
            self.assertEqual(store.pop(key, 7), 7)  # type: ignore[call-overload]
            with self.assertRaises(KeyError):
                del store[key]  # type: ignore[arg-type]
            with self.assertRaises(UbiquityError):
                store[key] = 1  # type: ignore[index]

    def test_what_iteration_has_given_can_be_read_although_another_device_removes_it(self) -> None:
        store = self.open("a")
        store.update(a=1, b=2)
        keys = iter(store)
        self.assertEqual(next(keys), "a")
        # As what a server says: it is no write of this program.
        store._shell.write(encoded([{"key": "a"}, {"key": "b"}]))
        self.assertEqual(store["a"], 1)
        self.assertEqual(next(keys), "b")
        self.assertEqual(store["b"], 2)
        with self.assertRaises(KeyError):
            store["a"]
        self.assertEqual(store.items(), dict().items())
        self.assertEqual([*keys], [])
        with self.assertRaises(KeyError):
            store["b"]

    def test_what_the_program_itself_removes_is_gone_during_iteration(self) -> None:
        store = self.open("a")
        store.update({"a": 1, "b": 2})
        for key in store:
            del store[key]
            self.assertNotIn(key, store)
        self.assertEqual(len(store), 0)

    def test_an_update_and_a_clearing_happen_at_once_or_not_at_all(self) -> None:
        store = self.open("a")
        with self.assertRaises(UbiquityError):
            store.update({"good": 1, "bad": object()})
        self.assertEqual(dict(store), {})
        store.update([("a", 1)], b=2)
        self.assertEqual(dict(store), {"a": 1, "b": 2})
        self.assertEqual([*store.values()], [1, 2])
        written = mock.Mock(wraps=store._shell.write)
        with mock.patch.object(store._shell, "write", written):
            store.update({f"k{index}": index for index in range(900)})
            store.clear()
        self.assertEqual(written.call_count, 2)
        self.assertEqual(dict(store), {})

    def test_a_status_has_all_of_its_fields(self) -> None:
        status = self.open("a").status
        self.assertEqual({*status}, {*Status.__annotations__})
        self.assertEqual(status["connection"], "signedOut")
        for value in (status["lastError"], status["lastSync"], status["diskError"], status["account"]):
            self.assertIsNone(value)

    def test_an_end_of_a_subscription_may_be_asked_for_twice(self) -> None:
        end = self.open("a").subscribe(print)
        end()
        end()


class EndTests(StoreTest):
    def test_a_closed_store_says_so(self) -> None:
        store = self.open("a")
        store.close()
        store.close()
        for use in (lambda: store["a"], store.synchronize, store.sync, lambda: store.write({})):
            with self.assertRaises(UbiquityError) as caught:
                use()
            self.assertEqual(caught.exception.code, "closed")

    def test_a_store_whose_disk_does_not_answer_can_be_closed(self) -> None:
        store = self.open("a")
        answers, asked = threading.Event(), threading.Event()
        self.addCleanup(answers.set)

        def save(name: str, *_: object) -> int:
            asked.set()
            answers.wait(DEADLINE)
            raise OSError("it was away")

        with mock.patch.object(store._shell._disk, "save", side_effect=save), \
                mock.patch.object(shell, "WAIT_SECONDS", 0.1):
            store["a"] = 1
            self.assertTrue(asked.wait(DEADLINE))
            # Reading waits for no disk.
            self.assertEqual(store["a"], 1)
            with self.assertRaises(UbiquityError) as caught:
                store.close()
            self.assertEqual(caught.exception.code, "timeout")
            with self.assertRaises(UbiquityError):
                store["a"]
            answers.set()
            store._shell._closed.get(DEADLINE)

    def test_an_engine_that_is_dropped_is_gone(self) -> None:
        engine = weakref.ref(Engine())
        gc.collect()
        self.assertIsNone(engine())

    def test_nothing_is_left_of_a_closed_store(self) -> None:
        before, descriptors = threads(), len(os.listdir("/dev/fd"))
        for _ in range(3):
            store = Store(self.folder / "a", IDENTIFIER)
            store["a"] = 1
            store.close()
        wait_until(lambda: threads() <= before and len(os.listdir("/dev/fd")) <= descriptors)
