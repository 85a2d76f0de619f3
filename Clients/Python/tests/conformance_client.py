# SPDX-License-Identifier: Apache-2.0
"""The engine and a shell without a network, as a client of `ubiquity-conformance`.

Protocol/conformance.md has the language, most of whose words are the engine's own. With the name of
a fault, a shell with that fault, which must be found; `--list-faults` lists the names.
"""

import functools
import json
import math
import os
import resource
import shutil
import sqlite3
import struct
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from ubiquity_store.disk import DISK_ERRORS, Disk
from ubiquity_store.engine import Engine, Word
from ubiquity_store.plist import ExactDate, encode
from ubiquity_store.shell import with_sealed

SERVER = "https://conformance.example"


def seconds_of(date: datetime | ExactDate) -> float:
    # The number is written as the only object, after the first byte of the date.
    number: float = struct.unpack_from(">d", encode(date, 1), 9)[0]
    return number


def wire_real(number: float) -> float | str:
    if math.isfinite(number):
        return "-0" if number == 0 and math.copysign(1, number) < 0 else number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def to_wire(value: Any) -> Word:
    match value:
        case bool():
            return {"boolean": value}
        case int():
            return {"integer" if value < 1 << 63 else "unsigned": str(value)}
        case float():
            return {"real": wire_real(value)}
        case str():
            return {"string": value}
        case bytes():
            return {"data": b64encode(value).decode()}
        case datetime() | ExactDate():
            return {"date": wire_real(seconds_of(value))}
        case list():
            return {"array": {"values": [to_wire(each) for each in value]} if value else {}}
    entries = [{"key": key, "value": to_wire(each)} for key, each in ordered(value)]
    return {"dictionary": {"entries": entries} if entries else {}}


def from_wire(wire: Word) -> Any:
    ((kind, content),) = wire.items()
    match kind:
        case "integer" | "unsigned":
            return int(content)
        case "real":
            return float(content)
        case "date":
            return ExactDate(float(content))
        case "data":
            return b64decode(content)
        case "array":
            return [from_wire(each) for each in content.get("values", [])]
        case "dictionary":
            return {each["key"]: from_wire(each["value"]) for each in content.get("entries", [])}
    return content


def ordered(dictionary: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(dictionary.items(), key=lambda entry: entry[0].encode())


def order(value: Any) -> tuple[int, Any]:
    """What sorts as values do, see docs/PROTOCOL.md."""
    match value:
        case str():
            return 0, value.encode()
        case bool():
            return 1, value
        case int():
            return 2 if value < 1 << 63 else 3, value
        case float():
            return 4, struct.pack(">d", value)
        case datetime() | ExactDate():
            return 5, struct.pack(">d", seconds_of(value))
        case bytes():
            return 6, value
        case list():
            return 7, [order(each) for each in value]
    return 8, [(key.encode(), order(each)) for key, each in ordered(value)]


def wired(entry: Word) -> Word:
    return entry | {"value": to_wire(entry["value"])} if "value" in entry else entry


class Mute:
    """A database that says nothing of why it fails."""

    def __getattr__(self, name: str) -> Any:
        raise sqlite3.OperationalError

    def __enter__(self) -> Any:
        raise sqlite3.OperationalError

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def failing(disk: Disk, home: Path, how: str) -> Iterator[None]:
    """A disk that does not work. Most of it is the system's and SQLite's own doing."""
    database, file = disk._database, home / "ubiquity.sqlite"
    match how:
        case "full":
            # No file gets another byte.
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        case "readOnly":
            database.execute("PRAGMA query_only = ON")
            try:
                yield
            finally:
                database.execute("PRAGMA query_only = OFF")
        case "silent":
            disk._database = Mute()  # type: ignore[assignment]
            try:
                yield
            finally:
                disk._database = database
        case "closed":
            other = sqlite3.connect(file, isolation_level=None)
            database.execute("PRAGMA busy_timeout = 0")
            other.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                other.close()
        case "gone":
            away = home.with_name("away")
            home.rename(away)
            try:
                yield
            finally:
                shutil.rmtree(home, ignore_errors=True)
                away.rename(home)
        case "replaced":
            shutil.copy(file, file.with_suffix(".copy"))
            file.with_suffix(".copy").replace(file)
            yield
        case "late":
            yield
            raise OSError("the disk has not answered in time")


class Device:
    """A device of the harness. Its processes are started and killed; its disk stays."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.home = Path(self.folder.name, "home")
        self.disk: Disk | None = None
        self.engine: Engine | None = None
        self.saving: Word | None = None
        self.asking: list[int] = []
        self.account: Word = {}
        self.shown: Word = {}
        self.values: Word = {}
        self.said: Word = {}
        self.now = (0.0, 0.0)
        self.wake_at: float | None = None

    def take(self, command: Word) -> Word:
        self.said, self.now = {}, (float(command["wall"]), float(command["uptime"]))
        getattr(self, f"do_{command['do']}")(command)
        if not self.engine:
            return self.said
        state = self.engine.handle({"do": "state"})
        is_notifying = state.pop("isNotifying")
        state["records"] = [wired(record) for record in state["records"]]
        values = {key: to_wire(value) for key, value in ordered(state.pop("values"))}
        state["diskError"] = self.disk_error()
        if (state, values) != (self.shown, self.values):
            same = [key for key, value in values.items() if self.values.get(key) == value]
            changed = [{"key": key, "value": value} for key, value in values.items()
                       if key not in same]
            self.said["state"] = state | {"values": changed, "unchanged": same}
            self.shown, self.values = state, values
        return self.said | {"isNotifying": is_notifying, "wake": self.wake_at}

    def end(self) -> None:
        if self.disk:
            self.disk.close()
        self.folder.cleanup()

    # What happens

    def do_start(self, command: Word) -> None:
        self.engine, self.saving, self.asking = Engine(lambda: self.now), None, []
        self.shown, self.values = {}, {}
        self.disk = Disk(self.home)
        account, name = command["account"], command["name"]
        self.account = {"folder": "1", "folders": {account: "1"}, "signedIn": {
            "server": SERVER, "account": account, "accountName": "", "device": name,
            "deviceName": "", "credential": command["credential"]}}
        self.take_keys(command)
        words = ("do", "boot", "seed", "store", "firstSync", "policies")
        self.tell({word: command[word] for word in words if word in command} | {
            "content": self.disk.load("1"), "device": self.account})
        self.tell({"do": "leading", "file": 0, "isLeading": True})

    def take_keys(self, command: Word) -> None:
        if "keys" in command:
            self.account["keyrings"] = {self.account["signedIn"]["account"]: command["keys"]}

    def do_unlock(self, command: Word) -> None:
        self.take_keys(command)
        self.tell({"do": "accountChanged"})

    def do_kill(self, command: Word) -> None:
        assert self.disk
        if command.get("keepsSave") and self.saving:
            self.keep()
        self.disk.close()
        self.engine = self.disk = None

    def do_write(self, command: Word) -> None:
        assert self.engine
        writes = [{word: from_wire(field) if word in ("value", "base") else field
                   for word, field in write.items() if word != "deleted"}
                  for write in command["writes"]]
        refusal = self.engine.write(writes)
        if refusal:
            self.said["error"] = refusal["error"]
        self.tell({"do": "wake"})

    def do_saved(self, command: Word) -> None:
        self.tell(self.save())

    def do_notSaved(self, command: Word) -> None:
        assert self.disk
        self.tell(self.save(command["how"]))
        if command["how"] == "closed":
            self.disk._database.execute("PRAGMA busy_timeout = 5000")

    def do_synchronize(self, command: Word) -> None:
        self.asking.append(command["id"])
        self.tell({"do": "synchronize"})

    def do_answer(self, command: Word) -> None:
        words = ("do", "request", "status", "headers")
        self.tell({word: command[word] for word in words} | {"body": command["body"].encode()})

    def do_event(self, command: Word) -> None:
        words = ("do", "request", "name")
        self.tell({word: command[word] for word in words} | {"data": command["data"].encode()})

    def do_fail(self, command: Word) -> None:
        words = ("do", "request", "why")
        self.tell({word: command[word] for word in words} | {"detail": "lost"})

    def do_end(self, command: Word) -> None:
        self.tell({"do": "end", "request": command["request"]})

    def do_sync(self, command: Word) -> None:
        self.tell({"do": "sync", "id": command["id"]})

    def do_wake(self, command: Word) -> None:
        self.tell({"do": "wake"})

    # What the engine does

    def save(self, how: str | None = None) -> Word:
        """What becomes of the save under way."""
        assert self.disk
        try:
            if how:
                with failing(self.disk, self.home, how):
                    return self.keep()
            return self.keep()
        except DISK_ERRORS as error:
            return {"do": "notSaved", "why": self.reason(error)}
        finally:
            self.saving = None

    def disk_error(self) -> str | None:
        assert self.engine
        error: str | None = self.engine.handle({"do": "status"}).get("diskError")
        return error

    def reason(self, error: Exception) -> str:
        return str(error) or type(error).__name__

    def keep(self) -> Word:
        assert self.saving and self.disk
        version = self.disk.save("1", self.saving)
        if version is not None:
            return {"do": "saved", "version": version}
        self.said["conflict"] = True
        return {"do": "conflict", "content": self.disk.load("1")}

    def tell(self, event: Word) -> None:
        assert self.engine
        events = [event]
        for each in events:
            answer = self.engine.handle(each)
            self.wake_at = answer.get("wake")
            for step in answer["steps"]:
                events += self.perform(step)

    def say(self, field: str, element: Any) -> None:
        self.said.setdefault(field, []).append(element)

    def perform(self, step: Word) -> list[Word]:
        """Returns what happens in consequence."""
        match step["do"]:
            case "save":
                self.saving, self.said["saves"] = step, True
            case "notify":
                self.say("notices", {"reason": step["reason"], "keys": step["keys"]})
                return [{"do": "notified"}]
            case "synced":
                self.say("synced", {word: step[word] for word in ("id", "error") if word in step})
            case "request":
                request = {word: step[word] for word in ("id", "method", "path", "headers")}
                body = {"body": step["body"].decode()} if "body" in step else {}
                self.say("requests", request | body)
            case "cancel":
                self.say("cancelled", step["id"])
            case "synchronized":
                for number in self.asking:
                    self.say("synchronized", {"id": number, "isSaved": step["isSaved"]})
                self.asking = []
            case "read":
                return [{"do": "read"}]
            case "readAccount":
                return [{"do": "account", "device": self.account}]
            case "noteSealed":
                self.account = with_sealed(self.account, step["account"])
                return [{"do": "account", "device": self.account}]
            case "decide":
                # The app's own rule: of two values, the later in the order of values.
                values = [each["value"] for each in step["values"]]
                value = functools.reduce(lambda a, b: b if order(a) < order(b) else a, values)
                return [{"do": "decided", "conflict": step["conflict"], "value": value}]
        return []


class TornSave(Device):
    """Of a save, the first half of the entries is on the disk."""

    def keep(self) -> Word:
        assert self.saving
        entries = self.saving["entries"]
        self.saving["entries"] = entries[:(len(entries) + 1) // 2]
        return super().keep()


class RemovedStays(Device):
    """What a save removes stays on the disk."""

    def keep(self) -> Word:
        assert self.saving
        self.saving["entries"] = [each for each in self.saving["entries"] if "entry" in each]
        return super().keep()


class FailureUnsaid(Device):
    """A failed save is said to be on the disk."""

    def do_notSaved(self, command: Word) -> None:
        assert self.saving
        self.saving["entries"] = []
        self.tell(self.save())


class ReasonEmpty(Device):
    """The app is shown what the disk's error says, which may be nothing, instead of the engine's words."""

    text = ""

    def reason(self, error: Exception) -> str:
        self.text = str(error)
        return super().reason(error)

    def disk_error(self) -> str | None:
        return None if super().disk_error() is None else self.text


class SavedInHaste(Device):
    """Who asks whether everything is on the disk hears that it is, while it is still written."""

    def do_synchronize(self, command: Word) -> None:
        self.say("synchronized", {"id": command["id"], "isSaved": True})
        self.tell({"do": "wake"})


class ReplacedUnseen(Device):
    """A file that was replaced gets what is saved next."""

    def do_notSaved(self, command: Word) -> None:
        assert self.disk
        if command["how"] != "replaced":
            return super().do_notSaved(command)
        file = self.home / "ubiquity.sqlite"
        shutil.copy(file, file.with_suffix(".copy"))
        self.tell(self.save())
        self.disk.close()
        file.with_suffix(".copy").replace(file)
        self.disk = Disk(self.home)


class ConflictUnsaid(Device):
    """What a disk with another version did not take is said to be on it."""

    def keep(self) -> Word:
        assert self.disk
        event = super().keep()
        if self.said.pop("conflict", False):
            return {"do": "saved", "version": event["content"]["version"]}
        return event


class FailureForGood(Device):
    """A disk that has failed once is not tried again."""

    def do_start(self, command: Word) -> None:
        self.error: Word | None = None
        super().do_start(command)

    def save(self, how: str | None = None) -> Word:
        event = self.error or super().save(how)
        self.saving = None
        if event["do"] == "notSaved":
            self.error = event
        return event


FAULTS: dict[str, type[Device]] = {
    "torn-save": TornSave, "removed-stays": RemovedStays, "failure-unsaid": FailureUnsaid,
    "reason-empty": ReasonEmpty, "saved-in-haste": SavedInHaste,
    "replaced-unseen": ReplacedUnseen, "conflict-unsaid": ConflictUnsaid,
    "failure-for-good": FailureForGood,
}


def main() -> None:
    fault = sys.argv[1] if len(sys.argv) > 1 else None
    if fault == "--list-faults":
        print(*FAULTS, sep="\n")
        return
    kind = FAULTS[fault] if fault else Device
    devices: dict[int, Device] = {}
    for line in sys.stdin:
        command = json.loads(line)
        answer: Word = {}
        if command["do"] == "begin":
            for device in devices.values():
                device.end()
            devices = {}
        else:
            number = command["device"]
            if number not in devices:
                devices[number] = kind()
            answer = devices[number].take(command)
        print(json.dumps(answer), flush=True)
    for device in devices.values():
        device.end()


if __name__ == "__main__":
    main()
