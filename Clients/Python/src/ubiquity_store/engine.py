# SPDX-License-Identifier: Apache-2.0
"""The engine: Ubiquity's rules as a WebAssembly module. Protocol/engine.md has its words."""

import functools
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import wasmtime

from .plist import decode, encode

_MODULE = Path(__file__).with_name("engine.wasm")
_MEMORY_MAX = 1 << 30
#: The levels of a value, within the words around it.
DEPTH_MAX = 512
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
Word = dict[str, Any]
#: What an instance raises that traps. It is of no use from then on.
TRAPS = (wasmtime.Trap, wasmtime.WasmtimeError)


class UbiquityError(Exception):
    """What did not work, as a sentence, and a `code` for programs."""

    def __init__(self, code: str, detail: str, keys: Iterable[str] = ()) -> None:
        super().__init__(detail)
        self.code, self.keys = code, tuple(keys)

    def __reduce__(self) -> tuple[type["UbiquityError"], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.code, str(self), self.keys)


def reason(error: BaseException) -> str:
    """What an error says, which is never nothing."""
    return str(error) or type(error).__name__


def boot() -> str:
    """A text that differs after a restart of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        return os.urandom(8).hex()


def now() -> tuple[float, float]:
    """The wall clock, and one that also counts while the machine sleeps; in milliseconds."""
    return time.time() * 1_000, time.clock_gettime(_UPTIME) * 1_000


@functools.cache
def _linked() -> tuple[wasmtime.Engine, wasmtime.Linker, wasmtime.Module]:
    """Takes a second, unless wasmtime's cache has the module from another process."""
    config = wasmtime.Config()
    # Without these, an instance reserves 4 GB of addresses, which not every process may have.
    config.memory_reservation, config.memory_guard_size = 0, 1 << 16
    config.memory_reservation_for_growth = 1 << 20
    try:
        config.cache = True
    except wasmtime.WasmtimeError:
        pass  # There is no place for it.
    engine = wasmtime.Engine(config)
    linker, i32, f64 = wasmtime.Linker(engine), wasmtime.ValType.i32(), wasmtime.ValType.f64()
    # They are of no instance, for they live as long as the linker.
    random, number = wasmtime.FuncType([i32, i32], []), wasmtime.FuncType([i32, i32], [f64])
    linker.define_func("shell", "random", random, _random, access_caller=True)
    linker.define_func("shell", "number", number, _number, access_caller=True)
    return engine, linker, wasmtime.Module.from_file(engine, str(_MODULE))


def _random(caller: Any, at: int, count: int) -> None:
    caller["memory"].write(caller, os.urandom(count), at % (1 << 32))


def _number(caller: Any, at: int, count: int) -> float:
    return float(caller["memory"].read(caller, at % (1 << 32), at % (1 << 32) + count))


def encoded(writes: list[Word]) -> bytes:
    return encode({"writes": writes}, DEPTH_MAX + 3)


class Engine:
    """One store in one process. One thread at a time may call it."""

    def __init__(self, clock: Callable[[], tuple[float, float]] = now) -> None:
        self._clock = clock
        try:
            engine, linker, module = _linked()
            self._store = wasmtime.Store(engine)
            self._store.set_limits(memory_size=_MEMORY_MAX)
            self._exports: Any = linker.instantiate(self._store, module).exports(self._store)
        except TRAPS as error:
            raise UbiquityError("engine", f"the engine cannot be started: {error}") from None

    def handle(self, event: Word) -> Word:
        """Tells it what has happened. The answer has what to do, in `steps`, and `wake`."""
        answer: Word = self._call("handle", encode(event, DEPTH_MAX + 3), *self._clock())
        if "error" in answer:
            raise UbiquityError("engine", f"{event['do']} is not understood: {answer['detail']}")
        return answer

    def write(self, writes: list[Word]) -> Word | None:
        """Writes as one transaction, or says why not. What follows are steps of the next event."""
        return self.take(encoded(writes))

    def take(self, writes: bytes) -> Word | None:
        """The same, of what `encoded` has made."""
        answer: Word | None = self._call("write", writes, *self._clock())
        return answer

    def value(self, key: str) -> Any:
        """The value of a key; None if there is none."""
        return self._call("value", str.encode(key, errors="surrogatepass"))

    def _call(self, name: str, data: bytes, *clock: float) -> Any:
        memory, buffer = self._exports["memory"], self._exports["buffer"]
        memory.write(self._store, data, buffer(self._store, len(data)) % (1 << 32))
        count = self._exports[name](self._store, len(data), *clock)
        at = buffer(self._store, 0) % (1 << 32)
        return decode(memory.read(self._store, at, at + count)) if count else None
