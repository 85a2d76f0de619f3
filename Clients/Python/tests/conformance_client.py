# SPDX-License-Identifier: Apache-2.0
"""The engine and a shell without a network, as a client of `ubiquity-conformance`.

Protocol/conformance.md has the language, most of whose words are the engine's own. With the name of
a fault, a shell with that fault, which must be found; `--list-faults` lists the names.
"""

import functools
import json
import math
import struct
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ubiquity_store.disk import Disk
from ubiquity_store.engine import Engine, Word
from ubiquity_store.plist import ExactDate, encode

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


class Device:
    """A device of the harness. Its processes are started and killed; its disk stays."""

    def __init__(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.disk = Disk(Path(self.home.name))
        # The harness kills no machine.
        self.disk._database.execute("PRAGMA synchronous = OFF")
        self.engine: Engine | None = None
        self.saving: Word | None = None
        self.account: Word = {}
        self.shown: Word = {}
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
        state["values"] = [wired({"key": key, "value": value})
                           for key, value in ordered(state["values"])]
        if state != self.shown:
            self.shown = self.said["state"] = state
        return self.said | {"isNotifying": is_notifying, "wake": self.wake_at}

    # What happens

    def do_start(self, command: Word) -> None:
        self.engine, self.saving, self.shown = Engine(lambda: self.now), None, {}
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
        if command.get("keepsSave") and self.saving:
            self.keep()
        self.engine = None

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
        self.tell({"do": "saved", "version": self.keep()})

    def do_notSaved(self, command: Word) -> None:
        self.saving = None
        self.tell({"do": "notSaved", "why": "the disk is full"})

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

    def keep(self) -> int:
        assert self.saving
        version = self.disk.save("1", self.saving)
        assert version
        self.saving = None
        return version

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
            case "read":
                return [{"do": "read"}]
            case "readAccount":
                return [{"do": "account", "device": self.account}]
            case "decide":
                # The app's own rule: of two values, the later in the order of values.
                values = [each["value"] for each in step["values"]]
                value = functools.reduce(lambda a, b: b if order(a) < order(b) else a, values)
                return [{"do": "decided", "conflict": step["conflict"], "value": value}]
        return []


class TornSave(Device):
    """Of a save, the first half of the entries is on the disk."""

    def keep(self) -> int:
        assert self.saving
        entries = self.saving["entries"]
        self.saving["entries"] = entries[:(len(entries) + 1) // 2]
        return super().keep()


class RemovedStays(Device):
    """What a save removes stays on the disk."""

    def keep(self) -> int:
        assert self.saving
        self.saving["entries"] = [each for each in self.saving["entries"] if "entry" in each]
        return super().keep()


class FailureUnsaid(Device):
    """A failed save is said to be on the disk."""

    def do_notSaved(self, command: Word) -> None:
        assert self.saving
        self.saving["entries"] = []
        self.tell({"do": "saved", "version": self.keep()})


FAULTS: dict[str, type[Device]] = {
    "torn-save": TornSave, "removed-stays": RemovedStays, "failure-unsaid": FailureUnsaid,
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
                device.disk.close()
                device.home.cleanup()
            devices = {}
        else:
            number = command["device"]
            if number not in devices:
                devices[number] = kind()
            answer = devices[number].take(command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
