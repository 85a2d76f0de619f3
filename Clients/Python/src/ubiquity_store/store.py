# SPDX-License-Identifier: Apache-2.0
"""A store: it tells the engine what happens and when, and carries out its steps."""

import atexit
import json
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from .disk import DISK_ERRORS, Disk
from .engine import DEPTH_MAX, TRAPS, Engine, UbiquityError, Word, boot, now
from .link import Link, checked_address, exchange
from .plist import Value, decode, encode

_log = logging.getLogger("ubiquity_store")
_T = TypeVar("_T")
_WAIT_SECONDS = 60.0
#: Short, because what is left of it does not count while the machine sleeps.
_PAUSE_SECONDS_MAX = 60.0
#: Where the sign-in is on the disk.
_DEVICE = "device"
#: The path of an account's mark.
_SEALING = "/v1/sealing"


@dataclass(frozen=True)
class Change:
    """Keys that have changed, and why: `serverChange`, `initialSync`, `accountChange`, ..."""
    reason: str
    keys: tuple[str, ...]


class Store(MutableMapping[str, Value]):
    """A dictionary that follows a person. Any thread may use it.

    `home` is a folder, which belongs to this store and its process until it is closed; `identifier`
    is such as `TEAMID.com.example.app`. Raises UbiquityError, as all else here does.
    """

    def __init__(self, home: str | os.PathLike[str], identifier: str,
                 first_sync: Literal["serverWins", "timestamps"] = "serverWins") -> None:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,254}", identifier):
            raise UbiquityError("identifier", f"{identifier!r} is not the identifier of a store")
        self.identifier, self._process = identifier, os.getpid()
        # Guards the engine and the end.
        self._mutex, self._signing = threading.RLock(), threading.Lock()
        # A code and a sentence.
        self._end_reason: tuple[str, str] | None = None
        # What the engine is to hear. Who asked for something waits for the future.
        self._events: queue.SimpleQueue[tuple[Word, Future[Any]]] = queue.SimpleQueue()
        self._asked: dict[Any, list[Future[Any]]] = {}
        self._trips = 0
        self._wake: float | None = None
        self._is_wake_planned = False
        self._changes: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        self._observers: list[Callable[[Change], None]] = []
        self._link = Link(self._hear)
        try:
            self._disk = Disk(Path(home))
            try:
                self._begin(first_sync)
            except BaseException:
                self._disk.close()
                raise
        except DISK_ERRORS as error:
            raise UbiquityError("storage", f"{home} cannot be used: {error}") from None
        for run in (self._run, self._notify):
            threading.Thread(target=run, daemon=True).start()
        atexit.register(self.close)

    def _begin(self, first_sync: str) -> None:
        meta = self._disk.load(_DEVICE).get("meta")
        # The engine's `device`: the account, with its credential, and the folders of all.
        self._device: Word = decode(meta) if meta else {
            "folder": "1", "folders": {}, "lastFolder": 1}
        self._name: str | None = f"{self._device['folder']}/{self.identifier}"
        self._opened: str | None = None
        self._engine = Engine()
        start = {"boot": boot(), "seed": os.urandom(8).hex(), "store": self.identifier,
                 "firstSync": first_sync, "device": self._device}
        self._tell("start", **start, content=self._disk.load(self._name))
        self._handle(*self._events.get())
        self._tell("leading", file=0, isLeading=True)

    def __repr__(self) -> str:
        return f"<Store {self.identifier} of {self.account or 'nobody'}>"

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Values

    def __getitem__(self, key: str) -> Value:
        value: Value | None = self._ask(lambda engine: engine.value(key))
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Value) -> None:
        self.write({key: value})

    def __delitem__(self, key: str) -> None:
        self[key]
        self.write({key: None})

    def __iter__(self) -> Iterator[str]:
        return iter(self._ask(lambda engine: engine.handle({"do": "keys"}))["keys"])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def write(self, changes: Mapping[str, Value | None]) -> None:
        """Writes all or nothing, on all devices. None removes. Refuses what no store can hold."""
        for key, value in changes.items():
            try:
                encode({key: "" if value is None else value}, DEPTH_MAX + 1)
            except ValueError as error:
                raise UbiquityError("unsupported-value", f"{key!r}: {error}", [key]) from None
        writes = [{"key": key} | ({} if value is None else {"value": value})
                  for key, value in changes.items()]
        if refusal := self._ask(lambda engine: engine.write(writes)):
            raise UbiquityError(refusal["error"], refusal["detail"], changes)
        if not self._is_wake_planned:
            # A hundred writes are one save.
            self._is_wake_planned = True
            self._tell("wake")

    def subscribe(self, observer: Callable[[Change], None]) -> Callable[[], None]:
        """Calls it after each change, in a thread for that. Returns what ends the subscription."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    @property
    def status(self) -> Word:
        """Has `link` (with a `state`, and `lastError` as a sentence), `pendingKeys`, and more."""
        return self._ask(lambda engine: engine.handle({"do": "status"}))

    def synchronize(self, timeout: float = _WAIT_SECONDS) -> bool:
        """Saves, and hurries the sync. Whether all that was written before is on the disk."""
        return bool(self._wait("synchronize", timeout))

    def sync(self, timeout: float = _WAIT_SECONDS) -> None:
        """Makes a round trip: the server has what is here, and what it has is here."""
        self._wait("sync", timeout)

    def close(self) -> None:
        """Saves, and ends everything that is under way. The end of the program does so too."""
        if os.getpid() != self._process:
            return
        with suppress(UbiquityError):
            self._wait("close", _WAIT_SECONDS)
        self._end("closed", "the store is closed")

    # The sign-in

    @property
    def account(self) -> str | None:
        """The name of the account; None while nobody is signed in."""
        return self._device["signedIn"]["accountName"] if "signedIn" in self._device else None

    def sign_in(self, server: str, code: str, *, device_name: str, account_name: str = "",
                allows_plain_http: bool = False, allows_unsealed: bool = False) -> None:
        """Signs in with a code of the server's operator, or of another device. One that begins with
        `ubiquity:` brings the keys of a sealed account, and may have the address for `server`.
        `account_name` is for the code of an empty server: the name of its first account.

        A server that had a sealed account of this device could make up one that is not, to get
        values that it can read: that is `notSealed`, unless `allows_unsealed`."""
        address, _, front = self._ask_keys("code", code=code)["front"].rpartition("#")
        server = checked_address(server or address, allows_plain_http)
        if ";" in front:
            raise UbiquityError("refused", "the server's key, after the ;, cannot be checked here")
        with self._signing:
            self._sign_in(server, code, front, device_name, account_name, allows_unsealed)

    def _sign_in(self, server: str, code: str, front: str, device_name: str, name: str,
                 allows_unsealed: bool) -> None:
        # A disk that does not work does not use up a code.
        self._adopt(self._device)
        body = {"code": front, "deviceName": device_name, "accountName": name}
        answer = exchange("POST", server, "/v1/sign-in", {k: v for k, v in body.items() if v})
        fields = {name: answer.get(name) for name in ("account", "device", "credential")}
        account: Word = {
            name: field for name, field in fields.items() if isinstance(field, str)}
        if len(account) < 3 or not re.fullmatch("[!-~]+", account["credential"]):
            raise UbiquityError("unreachable", f"{server} is not a Ubiquity server")
        account |= {"server": server, "deviceName": device_name,
                    "accountName": str(answer.get("accountName", ""))}
        old = self._device
        # The first account takes over what was written before it. Another one never sees that.
        folders, folder, last = old["folders"], old["folder"], old["lastFolder"]
        if folder in folders.values():
            folder, last = str(last + 1), last + 1
        folder = folders.get(account["account"], folder)
        device = old | {"signedIn": account, "folder": folder, "lastFolder": last,
                        "folders": folders | {account["account"]: folder}}
        try:
            # A secret says that the account is sealed. Without the keys, it is another one.
            if ";" in code:
                device = self._with_keys(device, account, self._keys(code, account))
            elif _is_sealed(account):
                # Kept on the disk: nothing clear is sent, whatever the server says later.
                account["isSealed"] = True
                device = self._with_server(device, account)
            elif not allows_unsealed:
                self._check_unsealed(account)
            self._adopt(device)
        except UbiquityError:
            _revoke(device)
            raise
        _revoke(old)

    def unlock_code(self) -> str:
        """A code to show, and to pass to `unlock`: a device with the account's keys approves it."""
        account = self._signed_in()
        # A device that is confined to some stores must not ask for the keys of all.
        stores = _request("GET", account, f"/v1/devices/{account['device']}").get("stores", [])
        return str(self._ask_keys("code", stores=[*map(str, stores)])["code"])

    def unlock(self, code: str, timeout: float = 900.0) -> None:
        """Takes a sealed account's keys: by a code of `unlock_code`, or by the recovery key."""
        account = self._signed_in()
        keys = self._keys(code, account, timeout)
        with self._signing:
            if self._signed_in()["account"] != account["account"]:
                raise UbiquityError("unauthorized", "this device is signed in to another account")
            self._adopt(self._with_keys(self._device, account, keys))

    def _signed_in(self) -> Word:
        if "signedIn" not in self._device:
            raise UbiquityError("unauthorized", "this device is not signed in")
        return dict(self._device["signedIn"])

    def _keys(self, code: str, account: Word, timeout: float = 0) -> Word:
        """What the engine is asked for the keys of a code, with what the server has answered."""
        named, begun = {"code": code, "account": account["account"]}, time.monotonic()
        told = self._ask_keys("code", **named)
        while True:
            try:
                answer = _json(_request("GET", account, told["path"]))
                # For a recovery key, the answer is the mark itself.
                is_mark = told["path"] == _SEALING
                mark = answer if is_mark else _json(_request("GET", account, _SEALING))
                return named | {"answer": answer, "mark": mark}
            except UbiquityError as error:
                is_waiting = told["isAwaited"] and time.monotonic() - begun < timeout
                if not is_waiting or error.code not in ("not-found", "unreachable", "timeout"):
                    raise
            time.sleep(1)

    def _with_keys(self, device: Word, account: Word, keys: Word) -> Word:
        """Joins keys with those that the device has of an account, or refuses them."""
        keyrings = device.get("keyrings", {})
        known = keyrings.get(account["account"])
        joined = self._ask_keys("unlock", **keys, **({"keyring": known} if known else {}))
        return self._with_server(device, account) | {
            "keyrings": keyrings | {account["account"]: joined["keyring"]}}

    def _with_server(self, device: Word, account: Word) -> Word:
        return device | {"sealedServers": sorted({*device.get("sealedServers", []), account["server"]})}

    def _check_unsealed(self, account: Word) -> None:
        device = self._device
        if account["account"] in device.get("keyrings", {}):
            return
        if account["server"] in device.get("sealedServers", []):
            raise UbiquityError("notSealed", "the account is not sealed, although this device has "
                                "had a sealed one at this server: nobody was signed in, and the "
                                "code is used up")

    def _ask_keys(self, do: str, **fields: Any) -> Word:
        answer = self._ask(lambda engine: engine.handle({"do": do, **fields}))
        if "problem" in answer:
            raise UbiquityError("code-invalid", answer["problem"])
        return answer

    def sign_out(self) -> None:
        """Signs out. The values stay here; the server is asked to revoke the credential."""
        with self._signing:
            old = self._device
            self._adopt({name: field for name, field in old.items() if name != "signedIn"})
            _revoke(old)

    def _adopt(self, device: Word) -> None:
        try:
            if not self.synchronize():
                raise OSError("the store is not saved")
            self._disk.save(_DEVICE, {"entries": [], "meta": encode(device, 5)})
        except DISK_ERRORS as error:
            raise UbiquityError("storage", f"the sign-in cannot be saved: {error}") from None
        self._device = device
        self._tell("accountChanged")
        self.synchronize()

    # What happens

    def _check(self) -> None:
        if self._end_reason:
            raise UbiquityError(*self._end_reason)
        if os.getpid() != self._process:
            raise UbiquityError("closed", "the store belongs to the process that was forked")

    def _ask(self, ask: Callable[[Engine], _T]) -> _T:
        self._check()
        with self._mutex:
            self._check()
            try:
                return ask(self._engine)
            except TRAPS as error:
                self._end("engine", f"the engine failed, open the store again: {error}")
                raise UbiquityError("engine", f"the engine failed: {error}") from None

    def _tell(self, do: str, **fields: Any) -> "Future[Any]":
        self._check()
        with self._mutex:
            self._check()
            future: Future[Any] = Future()
            self._events.put(({"do": do, **fields}, future))
            return future

    def _wait(self, do: str, timeout: float) -> Any:
        try:
            return self._tell(do).result(timeout)
        except TimeoutError:
            raise UbiquityError("timeout", f"{do} did not end within {timeout} seconds") from None

    def _hear(self, event: Word) -> None:
        with suppress(UbiquityError):
            self._tell(**event).result()

    def _run(self) -> None:
        try:
            while not self._end_reason:
                pause = _PAUSE_SECONDS_MAX
                if self._wake is not None:
                    pause = min(max((self._wake - now()[1]) / 1_000, 0), pause)
                try:
                    self._handle(*self._events.get(timeout=pause))
                except queue.Empty:
                    self._handle({"do": "wake"}, Future())
        except Exception as error:
            if not self._end_reason:
                _log.exception("a store has ended")
            self._end("engine", f"the store has ended: {error}")

    def _handle(self, event: Word, future: "Future[Any]") -> None:
        asked: Any = event["do"] if event["do"] in ("synchronize", "close") else future
        match event["do"]:
            case "wake": self._is_wake_planned = False
            case "sync": asked = event["id"] = self._trips = self._trips + 1
        self._asked.setdefault(asked, []).append(future)
        answer = self._ask(lambda engine: engine.handle(event))
        self._wake = answer.get("wake")
        for step in answer["steps"]:
            self._perform(step)
        self._answer(future)

    def _answer(self, asked: Any, result: Any = None) -> None:
        for future in self._asked.pop(asked, []):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _perform(self, step: Word) -> None:
        match step["do"]:
            case "save": self._save(step)
            case "read": self._tell("read")
            case "readAccount": self._tell("account", device=self._device)
            case "open": self._open(f"{step['folder']}/{self.identifier}")
            case "use":
                self._name, self._opened = self._opened, None
                self._tell("leading", file=step["file"], isLeading=True)
            case "request": self._link.send(step)
            case "cancel": self._link.cancel(step["id"])
            case "patience": self._link.set_patience(step["id"], step["milliseconds"])
            case "notify": self._changes.put(Change(step["reason"], tuple(step["keys"])))
            case "synced":
                code = "locked" if step.get("code") == "locked" else "sync"
                error = "error" in step and UbiquityError(code, step["error"], step["refused"])
                self._answer(step["id"], error)
            case "synchronized": self._answer("synchronize", step["isSaved"])
            case "close": self._answer("close")
            case "report": _log.warning(step["detail"])

    def _save(self, step: Word) -> None:
        try:
            if self._name is None:
                raise OSError("the file of the account is not open")
            version = self._disk.save(self._name, step)
            if version is None:
                self._tell("conflict", content=self._disk.load(self._name))
            else:
                self._tell("saved", version=version)
        except DISK_ERRORS as error:
            self._tell("notSaved", why=str(error))

    def _open(self, name: str) -> None:
        try:
            self._tell("opened", content=self._disk.load(name))
            self._opened = name
        except DISK_ERRORS as error:
            self._tell("notOpened", why=str(error))

    def _notify(self) -> None:
        while change := self._changes.get():
            for observer in [*self._observers]:
                try:
                    observer(change)
                except Exception:
                    _log.exception("an observer failed")
            with suppress(UbiquityError):
                self._tell("notified")

    def _end(self, code: str, detail: str) -> None:
        with self._mutex:
            is_first, reason = not self._end_reason, self._end_reason or (code, detail)
            self._end_reason = reason
            while not self._events.empty():
                self._asked.setdefault("events", []).append(self._events.get()[1])
        if is_first:
            atexit.unregister(self.close)
            # Wakes the threads that wait for events and changes.
            self._events.put(({"do": "wake"}, Future()))
            self._changes.put(None)
            self._link.close()
            self._disk.close()
        for asked in [*self._asked]:
            self._answer(asked, UbiquityError(*reason))


def _request(method: str, account: Word, path: str) -> Word:
    return exchange(method, account["server"], path, None, account["credential"])


def _is_sealed(account: Word) -> bool:
    try:
        return bool(_request("GET", account, _SEALING).get("generation"))
    except UbiquityError as error:
        # An older server knows no sealed accounts.
        if error.code == "not-found":
            return False
        raise


def _json(fields: Word) -> bytes:
    return json.dumps(fields).encode()


def _revoke(device: Word) -> None:
    """If the server is away, another device can do it."""
    if account := device.get("signedIn"):
        with suppress(UbiquityError):
            _request("DELETE", account, f"/v1/devices/{account['device']}")
