# SPDX-License-Identifier: Apache-2.0
"""A real server, and the command line of the Swift library, for tests."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from ubiquity_store import Change, Store

PROGRAM = os.environ.get("UBIQUITY_PROGRAM", "")
IDENTIFIER = "TEAM.example.python"
#: Only against hanging.
DEADLINE = 300.0


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def free_port() -> int:
    """A port below those that systems give, so that none takes it while its server is away."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as one:
            port = random.randint(15_000, 32_000)
            one.bind(("127.0.0.1", port))
            return port


class Server:
    def __init__(self, folder: Path, *options: str) -> None:
        self._options = options
        self._data = folder / "server"
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "serve", "--json", "--data", self._data, "--port", str(self._port),
             "--log-level", "error", *self._options], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        ready = json.loads(self._process.stdout.readline())
        self.url = ready["url"]
        self._credential = Path(ready["operatorCredential"]).read_text().strip()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout
            self._process.stdout.close()
            self._process = None

    def code(self, account: str) -> str:
        """A sign-in code for an account, which is made if there is none."""
        command = [PROGRAM, "account", "create", account, "--data", str(self._data), "--json"]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode == 0:
            return str(json.loads(made.stdout)["code"])
        request = Request(f"{self.url}/v1/accounts/{account}/codes", b"{}", {
            "Authorization": f"Bearer {self._credential}", "Content-Type": "application/json"})
        with urlopen(request, timeout=DEADLINE) as answer:
            return str(json.load(answer)["code"])


class StoreTest(unittest.TestCase):
    """A test with a folder, and stores that are closed in the end."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def open(self, name: str, **options: Any) -> Store:
        store = Store(self.folder / name, IDENTIFIER, **options)
        self.addCleanup(store.close)
        return store

    def python(self, text: str, *arguments: object) -> "subprocess.Popen[str]":
        """Another process."""
        process = subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin and process.stdout
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


@unittest.skipUnless(PROGRAM, "UBIQUITY_PROGRAM does not name the program `ubiquity`")
class ServerTest(StoreTest):
    """A test with a server."""

    def setUp(self) -> None:
        super().setUp()
        self.server = Server(self.folder)
        self.addCleanup(self.server.kill)
        self.server.start()

    def signed_in(self, name: str, account: str = "ann") -> Store:
        """A store that has completed its first sync."""
        store = self.open(name)
        store.sign_in(self.server.url, self.server.code(account), device_name=name)
        store.sync()
        return store

    def command(self, name: str, *words: str) -> str:
        """The command line, as a device of its own."""
        environment = os.environ | {
            "UBIQUITY_HOME": str(self.folder / name), "UBIQUITY_KVSTORE_IDENTIFIER": IDENTIFIER}
        return subprocess.run([PROGRAM, *words], env=environment, check=True, text=True,
                              capture_output=True, timeout=DEADLINE).stdout.strip()


class Changes:
    """What a store has told."""

    def __init__(self, store: Store) -> None:
        self._condition = threading.Condition()
        self.all: list[Change] = []
        store.subscribe(self._hear)

    def _hear(self, change: Change) -> None:
        with self._condition:
            self.all.append(change)
            self._condition.notify_all()

    def wait(self, is_so: Callable[[Change], bool]) -> Change:
        def found() -> Change | None:
            return next((change for change in self.all if is_so(change)), None)

        with self._condition:
            change = self._condition.wait_for(found, DEADLINE)
        assert change, "nothing was told"
        return change
