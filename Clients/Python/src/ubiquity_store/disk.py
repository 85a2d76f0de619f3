# SPDX-License-Identifier: Apache-2.0
"""A home: a folder with a database of bytes that only the engine reads, for one process."""

import fcntl
import os
import sqlite3
import threading
from contextlib import ExitStack
from pathlib import Path

from .engine import UbiquityError, Word

DISK_ERRORS = (sqlite3.Error, OSError)
_CLOSE_SECONDS = 10.0
_FORMAT = 1
_SCHEMA = f"""BEGIN;
CREATE TABLE stores (name TEXT PRIMARY KEY, version INTEGER NOT NULL, meta BLOB);
CREATE TABLE entries (store TEXT, key BLOB, entry BLOB, PRIMARY KEY (store, key)) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
COMMIT;"""


class Disk:
    """What a function has written is on the disk when it returns. Any thread may call it."""

    def __init__(self, home: Path) -> None:
        self._mutex = threading.Lock()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as opened:
            lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            opened.callback(os.close, lock)
            try:
                # The system lets go of it when the process ends, however it does.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                detail = f"{home} is open already: a home is for one store in one process"
                raise UbiquityError("open", detail) from None
            file = home / "ubiquity.sqlite"
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            self._database = sqlite3.connect(
                file, isolation_level="IMMEDIATE", check_same_thread=False)
            opened.callback(self._database.close)
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._database.executescript(_SCHEMA)
            elif version != _FORMAT:
                raise OSError(f"its format is {version}, and this version knows {_FORMAT} only")
            self._opened = opened.pop_all()

    def load(self, store: str) -> Word:
        """All that is there."""
        sql = "SELECT key, entry FROM entries WHERE store = ?"
        with self._mutex:
            version, meta = self._head(store)
            entries = [{"key": k, "entry": e} for k, e in self._database.execute(sql, (store,))]
        return {"version": version, "entries": entries} | ({"meta": meta} if meta else {})

    def save(self, store: str, step: Word) -> int | None:
        """Writes all of it or nothing. None: the disk does not have the version that it expects."""
        with self._mutex, self._database as database:
            version, meta = self._head(store)
            if step.get("expects", version) != version:
                return None
            head = (store, version + 1, step.get("meta", meta))
            database.execute("REPLACE INTO stores VALUES (?, ?, ?)", head)
            for each in step["entries"]:
                row = (store, each["key"], each.get("entry"))
                database.execute("REPLACE INTO entries VALUES (?, ?, ?)", row)
                if row[2] is None:
                    database.execute("DELETE FROM entries WHERE store = ? AND key = ?", row[:2])
        return version + 1

    def close(self) -> None:
        # A disk that does not answer is left to the end of the process.
        if self._mutex.acquire(timeout=_CLOSE_SECONDS):
            self._opened.close()
            self._mutex.release()

    def _head(self, store: str) -> tuple[int, bytes | None]:
        sql = "SELECT version, meta FROM stores WHERE name = ?"
        return self._database.execute(sql, (store,)).fetchone() or (0, None)
