# SPDX-License-Identifier: Apache-2.0
"""A store: it tells the engine what happens and when, and carries out its steps."""

import functools
import json
import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from .engine import DEPTH_MAX, UbiquityError, Word, encoded, reason
from .link import checked_address, exchange
from .plist import Value, encode
from .shell import WAIT_SECONDS, Change, Shell, with_sealed

_log = logging.getLogger("ubiquity_store")
#: The path of an account's mark.
_SEALING = "/v1/sealing"


class Status(TypedDict):
    """What a store does at the moment. Times are in milliseconds since 1970."""
    connection: Literal["signedOut", "connecting", "connected", "polling", "waiting",
                        "unauthorized", "locked"]
    #: Why it syncs, or does not, as a sentence.
    explanation: str
    account: str | None
    accountID: str | None
    lastError: str | None
    lastSync: int | None
    nextRetry: int | None
    pendingKeys: list[str]
    #: Of these, the server has what this device does not take, such as a value that the account's key
    #: does not open. The device keeps what it has; writing the key again replaces what the server has.
    setAsideKeys: list[str]
    isInitialSyncComplete: bool
    #: Why the last save failed; None if it did not.
    diskError: str | None
    usage: dict[str, int]
    limits: dict[str, int]


class Store(MutableMapping[str, Value]):
    """A dictionary that follows a person. Any thread and any signal handler may use it.

    `home` is a folder, which belongs to this store and its process until it is closed; `identifier`
    is such as `TEAMID.com.example.app`. Raises UbiquityError, as all else here does.
    """

    def __init__(self, home: str | os.PathLike[str], identifier: str,
                 first_sync: Literal["serverWins", "timestamps"] = "serverWins") -> None:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,254}", identifier):
            raise UbiquityError("identifier", f"{identifier!r} is not the identifier of a store")
        self.identifier = identifier
        self._observers: list[Callable[[Change], None]] = []
        # What iterators have given last: a key, its value then, and the number of writes until then.
        self._given: dict[object, tuple[str, Value, int]] = {}
        self._writes = 0
        self._signing = threading.Lock()
        # The shell and its threads do not keep the store: nobody may have it any more.
        observe = functools.partial(_observe, weakref.ref(self))
        try:
            self._shell = Shell(Path(home), identifier, first_sync, observe)
        except UbiquityError:
            raise
        except Exception as error:
            raise UbiquityError("storage", f"{home} cannot be used: {reason(error)}") from error
        # At the end of the program too.
        weakref.finalize(self, self._shell.drop)

    def __repr__(self) -> str:
        return f"<Store {self.identifier} of {self.account or 'nobody'}>"

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Values

    def __getitem__(self, key: str) -> Value:
        if isinstance(key, str):
            value: Value | None = self._shell.ask(lambda engine: engine.value(key))
            if value is not None:
                return value
            # What `dict(store)` was just given can be read, although another device has removed it.
            for given, value, writes in [*self._given.values()]:
                if given == key and writes == self._writes:
                    return value
        raise KeyError(key)

    def __setitem__(self, key: str, value: Value) -> None:
        self.write({key: value})

    def __delitem__(self, key: str) -> None:
        self[key]
        self.write({key: None})

    def __iter__(self) -> Iterator[str]:
        iterator, writes = object(), self._writes
        try:
            for key, value in self.items():
                self._given[iterator] = key, value, writes
                yield key
        finally:
            self._given.pop(iterator, None)

    def __len__(self) -> int:
        return len(self._shell.ask(lambda engine: engine.handle({"do": "keys"}))["keys"])

    def items(self) -> ItemsView[str, Value]:
        """All keys with their values, of one moment."""
        values: Word = self._shell.ask(lambda engine: engine.handle({"do": "values"}))["values"]
        return dict(sorted(values.items())).items()

    def values(self) -> ValuesView[Value]:
        """The values of one moment."""
        return dict(self.items()).values()

    def clear(self) -> None:
        """Removes everything, as one transaction."""
        self.write(dict.fromkeys(self))

    def update(self, changes: Any = (), /, **more: Value) -> None:
        """Writes all or nothing, on all devices."""
        self.write(dict(changes, **more))

    def write(self, changes: Mapping[str, Value | None]) -> None:
        """Writes all or nothing, on all devices. None removes. Refuses what no store can hold."""
        for key, value in changes.items():
            try:
                encode({key: "" if value is None else value}, DEPTH_MAX + 1)
            except ValueError as error:
                raise UbiquityError("unsupported-value", f"{key!r}: {error}", [key]) from None
        writes = encoded([{"key": key} | ({} if value is None else {"value": value})
                          for key, value in changes.items()])
        if refusal := self._shell.write(writes):
            raise UbiquityError(refusal["error"], refusal["detail"], changes)
        self._writes += 1

    def subscribe(self, observer: Callable[[Change], None]) -> Callable[[], None]:
        """Calls it after each change, in a thread for that. Returns what ends the subscription."""
        self._observers.append(observer)

        def end() -> None:
            with suppress(ValueError):
                self._observers.remove(observer)

        return end

    @property
    def status(self) -> Status:
        """What the store does at the moment. All fields are there."""
        status: Word = self._shell.ask(lambda engine: engine.handle({"do": "status"}))
        return cast(Status, {name: status.get(name) for name in Status.__annotations__})

    def synchronize(self, timeout: float = WAIT_SECONDS) -> bool:
        """Saves, and hurries the sync. Whether all that was written before is on the disk."""
        return self._shell.synchronize(timeout)

    def sync(self, timeout: float = WAIT_SECONDS) -> None:
        """Makes a round trip: the server has what is here, and what it has is here."""
        self._shell.sync(timeout)

    def close(self) -> None:
        """Saves, and ends everything that is under way. The end of the program does so too.

        The store is closed, and what was written last is not on the disk, if this raises."""
        self._shell.close()

    # The sign-in

    @property
    def account(self) -> str | None:
        """The name of the account; None while nobody is signed in."""
        return self._device["signedIn"]["accountName"] if "signedIn" in self._device else None

    def sign_in(self, server: str, code: str, *, device_name: str, account_name: str = "",
                allows_plain_http: bool = False, allows_unsealed: bool = False) -> bool:
        """Signs in with a code of the server's operator, or of another device. One that begins with
        `ubiquity:` brings the keys of a sealed account, and may have the address for `server`.
        `account_name` is for the code of an empty server: the name of its first account.

        Returns whether the account is sealed. A server could make up one that is not, to get values
        that it can read. So where only the server says so, and this device has had a sealed account,
        or no device has answered the secret of the code, that is `notSealed`, unless
        `allows_unsealed`."""
        address, _, front = self._ask_keys("code", code=code)["front"].rpartition("#")
        server = checked_address(server or address, allows_plain_http)
        if ";" in front:
            raise UbiquityError("refused", "the server's key, after the ;, cannot be checked here")
        with self._alone():
            return self._sign_in(server, code, front, device_name, account_name, allows_unsealed)

    def _sign_in(self, server: str, code: str, front: str, device_name: str, name: str,
                 allows_unsealed: bool) -> bool:
        # A disk that does not work does not use up a code.
        self._shell.adopt(self._device, self._device)
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
            device = self._with_sealing(device, account, code if ";" in code else "", allows_unsealed)
            self._shell.adopt(device, old)
        except UbiquityError:
            _revoke(device)
            raise
        _revoke(old)
        return account["account"] in device.get("sealedAccounts", [])

    def _with_sealing(self, device: Word, account: Word, code: str, allows_unsealed: bool) -> Word:
        """Adds what the device learns of an account that it signs in to, by a code with a secret."""
        name, sealed = account["account"], {*device.get("sealedAccounts", [])}
        keyrings = {**device.get("keyrings", {})}
        asked: Word = {"account": name, "isSealed": name in sealed, "hadSealed": bool(sealed)}
        if keyring := keyrings.pop(name, None):
            asked["keyring"] = keyring
        if code:
            asked["code"] = code
            path = self._ask_keys("code", code=code, account=name)["path"]
            # If the server keeps it to itself, for whatever reason, that is for the person to judge.
            with suppress(UbiquityError):
                asked["answer"] = _json(_request("GET", account, path))
        asked["mark"] = _json(_request("GET", account, _SEALING))
        learned = self._ask_keys("signIn", **asked)
        if "doubt" in learned:
            if not allows_unsealed:
                raise UbiquityError("notSealed", f"{learned['doubt']}: nobody was signed in, and the "
                                    "code is used up")
            learned = {"isSealed": False}
        if "keyring" in learned:
            keyrings[name] = learned["keyring"]
        sealed = sealed | {name} if learned["isSealed"] else sealed - {name}
        return device | {"keyrings": keyrings, "sealedAccounts": sorted(sealed)}

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
        with self._alone():
            if self._signed_in()["account"] != account["account"]:
                raise UbiquityError("unauthorized", "this device is signed in to another account")
            old = self._device
            self._shell.adopt(self._with_keys(old, account, keys), old)

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
        return with_sealed(device, account["account"]) | {
            "keyrings": keyrings | {account["account"]: joined["keyring"]}}

    def _ask_keys(self, do: str, **fields: Any) -> Word:
        answer: Word = self._shell.ask(lambda engine: engine.handle({"do": do, **fields}))
        if "problem" in answer:
            raise UbiquityError("code-invalid", answer["problem"])
        return answer

    def sign_out(self) -> None:
        """Signs out. The values stay here; the server is asked to revoke the credential."""
        with self._alone():
            old = self._device
            device = {name: field for name, field in old.items() if name != "signedIn"}
            self._shell.adopt(device, old)
            _revoke(old)

    @property
    def _device(self) -> Word:
        return self._shell.device

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # Who waits for a lock in a signal handler may wait for what it has interrupted.
        if not self._signing.acquire(blocking=False):
            raise UbiquityError("busy", "another sign-in or sign-out is under way: try again then")
        try:
            yield
        finally:
            self._signing.release()


def _observe(store: "weakref.ref[Store]", change: Change) -> None:
    for observer in [*getattr(store(), "_observers", ())]:
        try:
            observer(change)
        except BaseException:
            _log.exception("an observer failed")


def _request(method: str, account: Word, path: str) -> Word:
    return exchange(method, account["server"], path, None, account["credential"])


def _json(fields: Word) -> bytes:
    return json.dumps(fields).encode()


def _revoke(device: Word) -> None:
    """If the server is away, another device can do it."""
    if account := device.get("signedIn"):
        with suppress(UbiquityError):
            _request("DELETE", account, f"/v1/devices/{account['device']}")
