# SPDX-License-Identifier: Apache-2.0
"""The shell around an engine: it tells it what happens and when, and carries out its steps."""

import functools
import logging
import os
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .disk import DISK_ERRORS, Disk
from .engine import Engine, UbiquityError, Word, boot, now, reason
from .link import Link, is_own_thread, start
from .plist import decode, encode

_log = logging.getLogger("ubiquity_store")
_T = TypeVar("_T")
WAIT_SECONDS = 60.0
#: Short, because what is left of it does not count while the machine sleeps.
_PAUSE_SECONDS_MAX = 60.0
_RETRY_MILLISECONDS = 1_000.0
#: So many engines a store may have in a minute, after the first.
_ENGINES_MAX = 3
_MINUTE_SECONDS = 60.0
#: What a server has said, and made an engine trap, is not met again so soon that the store would end.
_LEADING_MILLISECONDS = 30_000.0
#: As many transactions are written again after a trap while the disk fails.
_UNSAVED_MAX = 4_096
#: Where the sign-in is on the disk.
_DEVICE = "device"
#: What is said of a disk whose content the engine does not understand.
_UNREAD = {"conflict": "notSaved", "opened": "notOpened", "account": "noAccount"}
#: What a server has said.
_OF_SERVER = frozenset(("answer", "event", "progress", "end", "fail"))


@dataclass(frozen=True)
class Change:
    """Keys that have changed, and why: `serverChange`, `initialSync`, `accountChange`, ..."""
    reason: str
    keys: tuple[str, ...]


class Answer:
    """What a thread waits for. Neither side takes a lock that a signal handler could interrupt."""

    def __init__(self) -> None:
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def give(self, result: Any = None) -> None:
        self._results.put(result)

    def get(self, seconds: float | None = None) -> Any:
        """Raises what was given, if it is an error, and queue.Empty after the time."""
        result = self._results.get(timeout=seconds)
        if isinstance(result, Exception):
            raise result
        return result


_Act = Callable[[Answer], None]


def with_sealed(device: Word, *accounts: str) -> Word:
    """Keeps that accounts are sealed, whatever a server says later."""
    return device | {"sealedAccounts": sorted({*device.get("sealedAccounts", []), *accounts})}


class Shell:
    """A store's engine, disk and connection, and the threads that own them.

    One thread owns the engine. Who calls it puts an act into a queue and waits for the answer: a
    signal handler too, whatever it has interrupted. It does no work that takes time, takes no lock,
    and runs nothing of the app's. Another thread owns the disk, a third one calls the app, and each
    request has one (`link.py`). In all but the third, a finalizer of the app's may run that nothing
    can wait for: it is refused.
    """

    def __init__(self, home: Path, identifier: str, first_sync: str,
                 observe: Callable[[Change], None]) -> None:
        self.identifier, self._first_sync, self._observe = identifier, first_sync, observe
        self._process = os.getpid()
        # Set once, by any thread: a code and a sentence.
        self._end_reason: tuple[str, str] | None = None
        # Any thread puts something into these, and one takes it out.
        self._acts: queue.SimpleQueue[tuple[_Act, Answer]] = queue.SimpleQueue()
        self._works: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._news: queue.SimpleQueue[Change | str | None] = queue.SimpleQueue()
        # All of these are the engine's thread's.
        self._engine: Engine | None = None
        self._name: str | None = None
        self._opened: str | None = None
        self._wake: float | None = None
        self._leads_at: float | None = None
        # Who waits for a round trip, for the disk, and for the end.
        self._trips: dict[int, Answer] = {}
        self._savers: list[Answer] = []
        self._closers: list[Answer] = []
        self._trip_count = 0
        # What was written and is not on the disk; of it, so many are being saved.
        self._unsaved: list[bytes] = []
        self._saving: int | None = None
        self._disk_error = ""
        # When engines trapped in the last minute, whether the last one did at what a server had
        # said, and whether something that was written is lost, of which nobody has been told.
        self._traps: list[float] = []
        self._is_of_server = False
        self._has_lost = False
        self._link = Link(self._hear)
        self._disk = Disk(home)
        # Given when the disk is closed.
        self._closed = Answer()
        try:
            meta = self._disk.load(_DEVICE).get("meta")
            # The engine's `device`: the account, with its credential, and the folders of all. Set
            # by the disk's thread.
            self.device: Word = decode(meta) if meta else {
                "folder": "1", "folders": {}, "lastFolder": 1}
            start(self._run)
        except BaseException:
            self._disk.close()
            raise
        try:
            threading.Thread(target=self._notify, name=f"{identifier} changes", daemon=True).start()
            self.ask(lambda _: None)
        except BaseException as error:
            self._end("closed", "the store could not be opened")
            if isinstance(error, Exception):
                self._closed.get()
            raise

    # What any thread may call

    def ask(self, question: Callable[[Engine], _T]) -> _T:
        """The answer of the engine to a question."""
        answer: _T = self._wait(lambda answer: answer.give(self._use(question)))
        return answer

    def write(self, writes: bytes) -> Word | None:
        """Writes as one transaction, or says why not. `engine.encoded` makes the bytes."""
        def write(answer: Answer) -> None:
            if self._closers:
                raise UbiquityError("closed", "the store is closed")
            refusal = self._use(lambda engine: engine.take(writes))
            if not refusal:
                self._unsaved.append(writes)
                if len(self._unsaved) > _UNSAVED_MAX:
                    del self._unsaved[0]
                    self._saving = self._saving and self._saving - 1
            answer.give(refusal)
            # What is written during a save is in the next one.
            if self._saving is None:
                self._handle({"do": "wake"})

        refusal: Word | None = self._wait(write)
        return refusal

    def synchronize(self, seconds: float = WAIT_SECONDS) -> bool:
        def synchronize(answer: Answer) -> None:
            self._savers.append(answer)
            self._handle({"do": "synchronize"})

        return bool(self._wait(synchronize, seconds, "synchronize"))

    def sync(self, seconds: float = WAIT_SECONDS) -> None:
        def sync(answer: Answer) -> None:
            self._trip_count += 1
            self._trips[self._trip_count] = answer
            self._handle({"do": "sync", "id": self._trip_count})

        self._wait(sync, seconds, "sync")

    def adopt(self, device: Word, old: Word) -> None:
        """Follows a sign-in or a sign-out, which is on the disk when this returns. What was noted
        since `old`, of which `device` was made, stays."""
        def save(answer: Answer) -> None:
            try:
                if self._end_reason:
                    raise self._ended()
                noted = {*self.device.get("sealedAccounts", [])} - {*old.get("sealedAccounts", [])}
                self._save_device(with_sealed(device, *noted) if noted else device)
                answer.give()
            except Exception as error:
                answer.give(_unsaved_sign_in(reason(error)))

        if not self.synchronize():
            raise _unsaved_sign_in(self._disk_error or "the store is not saved")
        self._wait(lambda answer: self._works.put(lambda: save(answer)))
        self._wait(functools.partial(self._tell, {"do": "accountChanged"}))
        self.synchronize()

    def close(self) -> None:
        """Raises UbiquityError if something that was written is not on the disk."""
        if os.getpid() != self._process:
            return
        try:
            self._wait(self._close, WAIT_SECONDS, "close")
        except UbiquityError as error:
            if error.code == "timeout":
                self._end("closed", "the store is closed")
                raise UbiquityError("timeout", f"{self._unsaved_text()}: it does not answer") from None
            if error.code != "closed":
                raise

    def drop(self) -> None:
        """Closes a store that nobody has any more."""
        if is_own_thread():
            return self._post(self._close, Answer())
        try:
            self.close()
        except UbiquityError as error:
            _log.error("%s", error)

    def _check(self) -> None:
        if self._end_reason:
            raise self._ended()
        if os.getpid() != self._process:
            raise UbiquityError("closed", "the store belongs to the process that was forked")

    def _wait(self, act: _Act, seconds: float | None = None, what: str = "") -> Any:
        self._check()
        if is_own_thread():
            raise UbiquityError("busy", "Python has called a finalizer in a thread of the store's "
                                "own, where it cannot use a store")
        answer = Answer()
        self._post(act, answer)
        try:
            return answer.get(seconds and min(max(seconds, 0.0), threading.TIMEOUT_MAX))
        except queue.Empty:
            detail = f"{what} did not end within {seconds} seconds"
            raise UbiquityError("timeout", detail) from None

    def _post(self, act: _Act, answer: Answer) -> None:
        self._acts.put((act, answer))
        # Nobody may take it out any more.
        if self._end_reason:
            self._drain()

    def _drain(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._acts.get_nowait()[1].give(self._ended())
        # The thread of the engine looks.
        self._acts.put((lambda _: None, Answer()))

    def _ended(self) -> UbiquityError:
        code, detail = self._end_reason or ("closed", "the store is closed")
        return UbiquityError(code, detail)

    def _end(self, code: str, detail: str) -> None:
        self._end_reason = self._end_reason or (code, detail)
        self._drain()

    def _hear(self, event: Word) -> None:
        """Of a request's thread, which goes on when the engine has heard."""
        answer = Answer()
        self._post(functools.partial(self._tell, event), answer)
        with suppress(UbiquityError):
            answer.get()

    # The thread of the engine

    def _run(self) -> None:
        try:
            start(self._run_disk)
        except OSError as error:
            self._end("storage", reason(error))
            self._disk.close()
            self._closed.give()
        while not self._end_reason:
            if (pause := self._pause()) <= 0:
                self._carry_out(self._wake_up, Answer())
            with suppress(queue.Empty):
                self._carry_out(*self._acts.get(timeout=max(pause, 0)))
        self._link.close()
        self._engine = None
        self._fail(*self._end_reason)
        self._news.put(None)
        self._works.put(None)

    def _carry_out(self, act: _Act, answer: Answer) -> None:
        try:
            act(answer)
        except UbiquityError as error:
            answer.give(error)
        except Exception as error:
            self._news.put("".join(traceback.format_exception(error)))
            self._end("engine", f"the store has ended: {reason(error)}")
            answer.give(UbiquityError("engine", f"the store has ended: {reason(error)}"))

    def _pause(self) -> float:
        times = [time for time in (self._wake, self._leads_at) if time is not None]
        pauses = [(time - now()[1]) / 1_000 for time in times]
        return min(*pauses, self._link.deadline - time.monotonic(), _PAUSE_SECONDS_MAX)

    def _wake_up(self, _: Answer) -> None:
        self._wake = None
        if self._leads_at is not None and self._leads_at <= now()[1]:
            self._leads_at = None
            self._handle({"do": "leading", "file": 0, "isLeading": True})
        self._handle(*self._link.expire(), {"do": "wake"})

    def _use(self, question: Callable[[Engine], _T], is_of_server: bool = False) -> _T:
        engine = self._running()
        try:
            return question(engine)
        except UbiquityError:
            raise
        except Exception as error:
            # Its steps are lost, if it was not a trap.
            self._trapped(error, is_of_server)
            raise UbiquityError("engine", f"the engine has stopped: {reason(error)}") from None

    def _handle(self, *told: Word) -> None:
        """Tells the engine, and then what follows from its steps."""
        events = deque(told)
        while events:
            event = events.popleft()
            tell = functools.partial(Engine.handle, event=event)
            try:
                events += self._take(self._use(tell, event["do"] in _OF_SERVER))
            except UbiquityError as error:
                if self._engine is None:
                    raise
                # It goes on.
                if event["do"] in _UNREAD:
                    events.appendleft({"do": _UNREAD[event["do"]], "why": reason(error)})
                else:
                    self._news.put(str(error))

    def _take(self, answer: Word) -> list[Word]:
        """Carries out the steps. Returns what happens in consequence."""
        self._wake = answer.get("wake")
        if any(step["do"] == "save" for step in answer["steps"]):
            self._saving = len(self._unsaved)
        return [event for step in answer["steps"] for event in self._perform(step)]

    def _perform(self, step: Word) -> list[Word]:
        match step["do"]:
            case "save": self._on_disk("notSaved", functools.partial(self._save, self._name, step))
            case "read": return [{"do": "read"}]
            case "readAccount": return [{"do": "account", "device": self.device}]
            case "noteSealed":
                self._on_disk("noAccount", functools.partial(self._note_sealed, step["account"]))
            case "open":
                self._opened = f"{step['folder']}/{self.identifier}"
                self._on_disk("notOpened", functools.partial(self._open, self._opened))
            case "release": self._opened = None
            case "use":
                # It was saved, or belongs to nobody any more; but not what waits for a file.
                if self._name:
                    self._unsaved.clear()
                self._name, self._opened = self._opened, None
                return [{"do": "leading", "file": step["file"], "isLeading": True}]
            case "request":
                failure = self._link.send(step)
                return [failure] if failure else []
            case "cancel": self._link.cancel(step["id"])
            case "patience": self._link.set_patience(step["id"], step["milliseconds"])
            case "notify": self._news.put(Change(step["reason"], tuple(step["keys"])))
            case "synced":
                code = "locked" if step.get("code") == "locked" else "sync"
                error = "error" in step and UbiquityError(code, step["error"], step["refused"])
                if trip := self._trips.pop(step["id"], None):
                    trip.give(error)
            case "synchronized": self._synchronized(step["isSaved"])
            case "close": self._end("closed", "the store is closed")
            case "report": self._news.put(step["detail"])
        return []

    def _synchronized(self, is_saved: bool) -> None:
        if is_saved:
            # What was there already was not saved again.
            self._unsaved.clear()
        if self._savers:
            is_saved, self._has_lost = is_saved and not self._has_lost, False
        for saver in self._savers:
            saver.give(is_saved)
        self._savers.clear()

    def _tell(self, event: Word, answer: Answer) -> None:
        self._handle(event)
        answer.give()

    def _close(self, answer: Answer) -> None:
        self._closers.append(answer)
        if len(self._closers) == 1:
            # The engine is told again if it traps, and the disk's thread answers.
            with suppress(UbiquityError):
                self._handle({"do": "synchronize"}, {"do": "close"})

    def _fail(self, code: str, detail: str) -> None:
        """Whoever waits is told that it is in vain."""
        for answer in [*self._trips.values(), *self._savers]:
            answer.give(UbiquityError(code, detail))
        self._trips.clear()
        self._savers.clear()

    # An engine that has trapped

    def _trapped(self, error: Exception, is_of_server: bool) -> None:
        self._engine, self._saving, self._is_of_server = None, None, is_of_server
        begun = time.monotonic()
        self._traps = [time for time in self._traps if begun - time < _MINUTE_SECONDS] + [begun]
        self._link.close()
        self._news.put(f"the engine has stopped, and is started again: {reason(error)}")
        self._wake = now()[1]

    def _running(self) -> Engine:
        """The engine, which is started with what is on the disk, and with what is not there yet."""
        while self._engine is None:
            try:
                self._begin()
            except UbiquityError as error:
                self._fail(error.code, str(error))
                self._wake = now()[1] + _RETRY_MILLISECONDS
                if self._closers:
                    self._end("closed", "the store is closed")
                raise
        return self._engine

    def _begin(self) -> None:
        if len(self._traps) > _ENGINES_MAX:
            self._end("engine", "the engine has stopped again and again: open the store again")
            raise self._ended()
        name = f"{self.device['folder']}/{self.identifier}"
        content = self._load(name)
        # What was written may be the cause.
        lost = self._lose() if len(self._traps) > 1 and not self._is_of_server else set()
        engine, unsaved, self._unsaved = Engine(), self._unsaved, []
        begin = {"do": "start", "boot": boot(), "seed": os.urandom(8).hex(), "content": content,
                 "store": self.identifier, "firstSync": self._first_sync, "device": self.device}
        try:
            answer = engine.handle(begin)
            for writes in unsaved:
                engine.take(writes)
            keys = engine.handle({"do": "keys"})["keys"] if self._traps else []
        except UbiquityError as error:
            self._unsaved = unsaved
            detail = f"the values of {self.identifier} cannot be read: {error}"
            raise UbiquityError("storage", detail) from None
        except Exception as error:
            self._unsaved = unsaved
            return self._trapped(error, False)
        self._engine, self._name, self._opened = engine, name, None
        events = self._take(answer)
        self._unsaved = unsaved
        if self._traps:
            # What the app has seen last may be different now.
            self._news.put(Change("serverChange", tuple(sorted({*keys, *lost}))))
        if self._is_of_server:
            self._leads_at = now()[1] + _LEADING_MILLISECONDS
        else:
            events.append({"do": "leading", "file": 0, "isLeading": True})
        trips = [{"do": "sync", "id": number} for number in self._trips]
        waiting = [{"do": "synchronize"}] if self._savers or self._closers else []
        closing = [{"do": "close"}] if self._closers else []
        self._handle(*events, {"do": "wake"}, *trips, *waiting, *closing)

    def _load(self, name: str) -> Word:
        """The one thing that the engine's thread waits for."""
        def load() -> None:
            try:
                loaded.give(self._disk.load(name))
            except Exception as error:
                loaded.give(_unusable(self._disk.home, error))

        loaded = Answer()
        self._works.put(load)
        content: Word = loaded.get()
        return content

    def _lose(self) -> set[str]:
        """Gives up what was written."""
        keys = {str(write["key"]) for writes in self._unsaved for write in decode(writes)["writes"]}
        if keys:
            self._unsaved.clear()
            self._has_lost = True
            self._news.put(f"what was written last is lost, because the engine stops at it: {keys}")
        return keys

    # The thread of the disk

    def _run_disk(self) -> None:
        while work := self._works.get():
            work()
        with suppress(*DISK_ERRORS):
            self._disk.close()
        is_lost = self._unsaved or self._has_lost
        for closer in self._closers:
            closer.give(UbiquityError("storage", self._unsaved_text()) if is_lost else None)
        self._closed.give()

    def _on_disk(self, failure: str, work: Callable[[], Word]) -> None:
        """Tells the engine what becomes of it, if it is still the same."""
        engine = self._engine

        def carry_out() -> None:
            try:
                event = work()
            except Exception as error:
                event = {"do": failure, "why": reason(error)}
            self._post(lambda _: self._hear_of_disk(engine, event), Answer())

        self._works.put(carry_out)

    def _hear_of_disk(self, engine: Engine | None, event: Word) -> None:
        if engine is not self._engine:
            return
        match event["do"]:
            case "saved": del self._unsaved[:self._saving]
            case "notSaved": self._disk_error = event["why"]
            case "notOpened": self._opened = None
        if event["do"] in ("saved", "conflict", "notSaved"):
            self._saving = None
        self._handle(event)

    def _save(self, name: str | None, step: Word) -> Word:
        if name is None:
            raise OSError("the file of the account is not open")
        version = self._disk.save(name, step)
        if version is None:
            return {"do": "conflict", "content": self._disk.load(name)}
        return {"do": "saved", "version": version}

    def _open(self, name: str) -> Word:
        return {"do": "opened", "content": self._disk.load(name)}

    def _note_sealed(self, account: str) -> Word:
        self._save_device(with_sealed(self.device, account))
        return {"do": "account", "device": self.device}

    def _save_device(self, device: Word) -> None:
        self._disk.save(_DEVICE, {"entries": [], "meta": encode(device, 5)})
        self.device = device

    def _unsaved_text(self) -> str:
        why = f": {self._disk_error}" if self._disk_error else ""
        return f"{self.identifier} is closed, and what was written last is not on the disk{why}"

    # The thread that calls the app

    def _notify(self) -> None:
        while (news := self._news.get()) is not None:
            # Whatever it raises, the next one is told.
            with suppress(BaseException):
                if isinstance(news, str):
                    _log.warning("%s", news)
                else:
                    self._observe(news)
            if isinstance(news, Change):
                self._post(lambda _: self._handle({"do": "notified"}), Answer())


def _unusable(home: Path, error: Exception) -> UbiquityError:
    return UbiquityError("storage", f"{home} cannot be used: {reason(error)}")


def _unsaved_sign_in(why: str) -> UbiquityError:
    return UbiquityError("storage", f"the sign-in cannot be saved: {why}")
