# SPDX-License-Identifier: Apache-2.0
"""What interrupts a call of a store: signal handlers, finalizers, observers, engines that trap."""

import gc
import pickle
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import wasmtime
from support import DEADLINE, IDENTIFIER, Changes, ServerTest, StoreTest, wait_until

from ubiquity_store import Change, Store, UbiquityError, engine
from ubiquity_store.engine import Engine
from ubiquity_store.shell import Answer

HANDLER = """
import faulthandler, signal, sys
from ubiquity_store import Store

faulthandler.dump_traceback_later(float(sys.argv[3]), exit=True)
store, count = Store(sys.argv[1], sys.argv[2]), 0

def handle(*_):
    global count
    count += 1
    store[f"handler {count % 100}"] = count
    assert store[f"handler {count % 100}"] == count
    if count % 50 == 0:
        assert store.synchronize()
    signal.setitimer(signal.ITIMER_REAL, 0.0005)

signal.signal(signal.SIGALRM, handle)
handle()
for index in range(300):
    store[f"main {index % 100}"] = index
    assert store[f"main {index % 100}"] == index
    if index % 50 == 0:
        assert store.synchronize()
        assert dict(store)[f"main {index % 100}"] == index
signal.setitimer(signal.ITIMER_REAL, 0)
store.close()
print(count)
"""


class SignalTests(StoreTest):
    def test_a_signal_handler_may_use_the_store_that_it_has_interrupted(self) -> None:
        command = [sys.executable, "-c", HANDLER, str(self.folder / "a"), IDENTIFIER, str(DEADLINE)]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        count = int(result.stdout)
        self.assertGreater(count, 1)
        expected = {f"main {index % 100}": index for index in range(300)}
        expected |= {f"handler {number % 100}": number for number in range(1, count + 1)}
        self.assertEqual(dict(self.open("a")), expected)


class FinalizerTests(StoreTest):
    def test_a_finalizer_uses_the_store_or_is_refused(self) -> None:
        store = self.open("a")
        results: dict[int, str] = {}

        class Cyclic:
            def __init__(self, number: int) -> None:
                self.number, self.itself = number, self

            def __del__(self) -> None:
                try:
                    store[f"k{self.number}"] = self.number
                    results[self.number] = str(store[f"k{self.number}"])
                except UbiquityError as error:
                    results[self.number] = error.code

        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(1)
        for number in range(500):
            Cyclic(number)
            store["other"] = number
        gc.collect()
        self.assertEqual(len(results), 500)
        for number, result in results.items():
            self.assertEqual(result, "busy" if f"k{number}" not in store else str(number))
        self.assertEqual(store["other"], 499)
        self.assertTrue(store.synchronize())

    def test_nothing_waits_in_a_thread_of_the_stores_own(self) -> None:
        store = self.open("a")
        uses: tuple[Callable[[], object], ...] = (
            lambda: store["a"], lambda: store.write({"a": 1}), store.synchronize,
            store.sync)
        for use in uses:
            def interrupt(_: Engine, use: Callable[[], object] = use) -> None:
                use()

            with self.assertRaises(UbiquityError) as caught:
                store._shell.ask(interrupt)
            self.assertEqual(caught.exception.code, "busy")
        self.assertEqual(dict(store), {})


class ObserverTests(ServerTest):
    def test_an_observer_that_ends_its_thread_keeps_no_change_from_others(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")

        def leave(change: Change) -> None:
            b["seen"] = list(change.keys)
            raise SystemExit

        b.subscribe(leave)
        changes = Changes(b)
        with self.assertLogs("ubiquity_store", "ERROR"):
            a["one"] = 1
            changes.wait(lambda change: "one" in change.keys)
            a["two"] = 2
            changes.wait(lambda change: "two" in change.keys)
        b.close()
        self.assertEqual(self.open("b")["seen"], ["two"])


class TrapTests(StoreTest):
    @contextmanager
    def trapping(self, name: str, times: int) -> Iterator[None]:
        """The next engines trap, so many times."""
        real, left = getattr(Engine, name), [times]

        def trap(self: Engine, *arguments: Any, **more: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise wasmtime.Trap("planted")
            return real(self, *arguments, **more)

        with mock.patch.object(Engine, name, trap), \
                self.assertLogs("ubiquity_store", "WARNING") as logs:
            yield
            self.assertEqual(left, [0])
            wait_until(lambda: bool(logs.records))

    def close(self, store: Store) -> None:
        with suppress(UbiquityError):
            store.close()

    def unsaved(self) -> Store:
        """A store with one value on its disk, and another one that is not."""
        store = Store(self.folder / "a", IDENTIFIER)
        self.addCleanup(self.close, store)
        store["saved"] = 1
        self.assertTrue(store.synchronize())
        failing = mock.patch.object(store._shell._disk, "save", side_effect=OSError(""))
        failing.start()
        self.mend = failing.stop
        store["unsaved"] = 2
        self.assertFalse(store.synchronize())
        # It says nothing, and there is a reason all the same.
        self.assertEqual(store.status["diskError"], "OSError")
        return store

    def test_what_is_not_saved_survives_an_engine_that_traps(self) -> None:
        store = self.unsaved()
        with self.trapping("value", 1), self.assertRaises(UbiquityError) as caught:
            store["saved"]
        self.assertEqual(caught.exception.code, "engine")
        self.assertEqual(dict(store), {"saved": 1, "unsaved": 2})
        self.mend()
        self.assertTrue(store.synchronize())
        store.close()
        self.assertEqual(dict(self.open("a")), {"saved": 1, "unsaved": 2})

    def test_who_waits_for_the_disk_is_answered_by_the_next_engine(self) -> None:
        store = self.open("a")
        store["a"] = 1
        with self.trapping("handle", 1):
            wait_until(lambda: self.is_saved(store))
        store.close()
        self.assertEqual(self.open("a")["a"], 1)

    def is_saved(self, store: Store) -> bool:
        try:
            return store.synchronize()
        except UbiquityError as error:
            self.assertEqual(error.code, "engine")
            return False

    def test_what_makes_every_engine_trap_is_given_up_and_told(self) -> None:
        store = self.unsaved()
        changes = Changes(store)
        with self.trapping("take", 1), self.assertRaises(UbiquityError):
            store["trapping"] = 3
        # The second engine traps at what the first one was told.
        with self.trapping("value", 1), self.assertRaises(UbiquityError):
            store["saved"]
        self.assertEqual(dict(store), {"saved": 1})
        changes.wait(lambda change: "unsaved" in change.keys)
        self.mend()
        self.assertFalse(store.synchronize())
        self.assertTrue(store.synchronize())

    def test_what_a_server_says_and_makes_engines_trap_costs_nothing_that_was_written(self) -> None:
        store = self.unsaved()
        said = {"do": "fail", "request": 99, "why": "unreachable", "detail": ""}
        for _ in range(2):
            with self.trapping("handle", 1):
                store._shell._acts.put((lambda _: store._shell._handle(said), Answer()))
                wait_until(lambda: self.is_whole(store))
        self.assertIsNotNone(store._shell._leads_at)
        self.mend()
        self.assertTrue(store.synchronize())
        store.close()
        self.assertEqual(dict(self.open("a")), {"saved": 1, "unsaved": 2})

    def is_whole(self, store: Store) -> bool:
        return len(store._shell._traps) > 0 and dict(store) == {"saved": 1, "unsaved": 2}

    def test_an_engine_that_traps_again_and_again_ends_the_store(self) -> None:
        store = self.unsaved()
        with self.trapping("value", 4):
            for _ in range(4):
                with self.assertRaises(UbiquityError):
                    store["saved"]
            wait_until(lambda: store._shell._end_reason is not None)
        for use in (lambda: store["saved"], store.close):
            with self.assertRaises(UbiquityError) as caught:
                use()
            self.assertEqual(caught.exception.code, "engine")
        self.mend()
        store._shell._closed.get(DEADLINE)
        self.assertEqual(self.open("a")["saved"], 1)


class ErrorTests(unittest.TestCase):
    def test_an_error_crosses_to_another_process(self) -> None:
        error = UbiquityError("storage", "a sentence", ["a", "b"])
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((copy.code, str(copy), copy.keys), ("storage", "a sentence", ("a", "b")))

    def test_an_engine_that_cannot_be_started_is_an_error_of_the_store(self) -> None:
        failure = wasmtime.WasmtimeError("mmap failed")
        with mock.patch.object(engine, "_linked", side_effect=failure):
            with self.assertRaises(UbiquityError) as caught:
                Engine()
        self.assertIn("mmap failed", str(caught.exception))
