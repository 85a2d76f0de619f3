# SPDX-License-Identifier: Apache-2.0
"""A home: a folder with a database of bytes that only the engine reads, for one process."""

import errno
import fcntl
import os
import re
import sqlite3
from contextlib import ExitStack
from pathlib import Path

from .engine import UbiquityError, Word

DISK_ERRORS = (sqlite3.Error, OSError)
_FORMAT = 1
_SCHEMA = f"""BEGIN;
CREATE TABLE stores (name TEXT PRIMARY KEY, version INTEGER NOT NULL, meta BLOB);
CREATE TABLE entries (store TEXT, key BLOB, entry BLOB, PRIMARY KEY (store, key)) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
COMMIT;"""
#: What other machines may use at the same time, where no lock of this one holds: those of Core's
#: `FileSystemKind`.
_NETWORKS = frozenset("""
nfs nfs4 cifs smb3 smbfs afpfs webdav davfs davfs2 afs openafs 9p ceph ceph-fuse gfs gfs2 ocfs2 lustre
gpfs beegfs orangefs pvfs2 panfs glusterfs coda ncpfs moosefs mfs juicefs sshfs curlftpfs gvfsd-fuse
s3fs goofys gcsfuse blobfuse blobfuse2 rclone mount-s3 vboxsf prl_fs vmhgfs vmhgfs-fuse""".split())


class Disk:
    """What a function has written is on the disk when it returns. One thread at a time may call it."""

    def __init__(self, home: Path) -> None:
        # The program may go to another folder later.
        self.home = home = home.absolute()
        if network := network_of(os.path.realpath(home), _mounts()):
            raise UbiquityError(
                "storage", f"{home} is on a network file system ({network}), where another machine "
                "could open it at the same time: choose a folder of a disk of this machine")
        _make(home)
        with ExitStack() as opened:
            self._files: dict[Path, tuple[int, int]] = {}
            lock = self._open("lock")
            opened.callback(os.close, lock)
            try:
                # The system lets go of it when the process ends, however it does.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                detail = f"{home} is open already: a home is for one store in one process"
                raise UbiquityError("open", detail) from None
            # SQLite's locks would end if it were closed later.
            os.close(self._open("ubiquity.sqlite"))
            self._database = sqlite3.connect(
                home / "ubiquity.sqlite", isolation_level=None, check_same_thread=False)
            opened.callback(self._database.close)
            # A save is over when its journal is gone, and that is in the folder.
            self._database.execute("PRAGMA synchronous = EXTRA")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._database.executescript(_SCHEMA)
            elif version != _FORMAT:
                raise OSError(f"its format is {version}, and this version knows {_FORMAT} only")
            _flush(home)
            self._check()
            self._opened = opened.pop_all()

    def load(self, store: str) -> Word:
        """All that is there."""
        sql = "SELECT key, entry FROM entries WHERE store = ?"
        version, meta = self._head(store)
        entries = [{"key": k, "entry": e} for k, e in self._database.execute(sql, (store,))]
        return {"version": version, "entries": entries} | ({"meta": meta} if meta else {})

    def save(self, store: str, step: Word) -> int | None:
        """Writes all of it or nothing. None: the disk does not have the version that it expects."""
        database = self._database
        self._check()
        # Of a save that failed, and could not be undone.
        if database.in_transaction:
            database.rollback()
        version, meta = self._head(store)
        if step.get("expects", version) != version:
            # It may be of a save that failed when all but its last flush was done.
            _flush(self.home)
            return None
        with database:
            database.execute("BEGIN IMMEDIATE")
            head = (store, version + 1, step.get("meta", meta))
            database.execute("REPLACE INTO stores VALUES (?, ?, ?)", head)
            for each in step["entries"]:
                row = (store, each["key"], each.get("entry"))
                database.execute("REPLACE INTO entries VALUES (?, ?, ?)", row)
                if row[2] is None:
                    database.execute("DELETE FROM entries WHERE store = ? AND key = ?", row[:2])
        self._check()
        return version + 1

    def close(self) -> None:
        self._opened.close()

    def _head(self, store: str) -> tuple[int, bytes | None]:
        sql = "SELECT version, meta FROM stores WHERE name = ?"
        return self._database.execute(sql, (store,)).fetchone() or (0, None)

    def _open(self, name: str) -> int:
        descriptor = os.open(self.home / name, os.O_RDWR | os.O_CREAT, 0o600)
        self._files[self.home / name] = _identity(os.fstat(descriptor))
        return descriptor

    def _check(self) -> None:
        """What is written to a file that is not at its place any more, nobody would find."""
        for path, identity in self._files.items():
            try:
                found = _identity(path.stat())
            except (FileNotFoundError, NotADirectoryError):
                found = None
            if found != identity:
                raise OSError(f"{path} was removed, moved or replaced while the store was open: "
                              "put it back, or open the store again")


def network_of(path: str, mounts: str) -> str | None:
    """The type of the network file system on which a folder is; None if it is on none.

    `path` is without links, and `mounts` the content of `/proc/self/mountinfo`."""
    path, found, kind = os.fsencode(path).decode("latin-1"), "", ""
    for line in mounts.splitlines():
        # "36 35 98:0 /root /point options [fields] - type source options"
        before, _, after = line.partition(" - ")
        fields, types = before.split(" "), after.split(" ")
        # Spaces and the like are octal there, such as `\040`.
        point = "" if len(fields) < 5 else re.sub(
            r"\\([0-7]{3})", lambda digits: chr(int(digits[1], 8)), fields[4])
        # Of two at one point, the later one covers the earlier one.
        if point and f"{path}/".startswith(f"{point.rstrip('/')}/") and len(point) >= len(found):
            found, kind = point, types[0].removeprefix("fuse.")
    return kind if kind in _NETWORKS else None


def _mounts() -> str:
    try:
        # The bytes of names, as the octal numbers have them.
        return Path("/proc/self/mountinfo").read_text("latin-1")
    except OSError:
        return ""


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _make(folder: Path) -> None:
    """Makes a folder, and those around it, so that a power cut leaves them."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _flush(folder.parent)


def _flush(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Not everybody may read a folder, and not every system flushes one.
        if error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise
