# SPDX-License-Identifier: Apache-2.0
"""Requests to a server. All that it sends has a bound in bytes and time. No redirects."""

import _thread
import functools
import json
import os
import queue
import selectors
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from itertools import zip_longest
from typing import Any, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from .engine import UbiquityError, Word, reason

VERSION = "0.9.0"
_BYTES_MAX = 1 << 26
#: For JSON that is read here, of which each byte may take a hundred.
_FIELDS_BYTES_MAX = 1 << 20
_SILENCE_SECONDS = 30.0
#: For a whole answer, or the head of a stream.
_ANSWER_SECONDS = 300.0
#: Until a host's next address is tried, beside the one before.
_NEXT_SECONDS = 0.25
_thread_kind = threading.local()
_tls = functools.cache(ssl.create_default_context)


def checked_address(server: str, allows_plain_http: bool) -> str:
    """The address of a server, without a slash at the end."""
    try:
        url = urlsplit(server)
        is_address = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or {*"@?#"} & {*server}:
        raise UbiquityError("address", f"{server!r} is no address such as https://ubiquity.example")
    is_here = url.hostname in ("localhost", "127.0.0.1", "::1")
    if url.scheme == "http" and not is_here and not allows_plain_http:
        raise UbiquityError("address", f"{server} is plain HTTP: anybody could read the credential")
    return server.rstrip("/")


def start(run: Callable[[], None]) -> None:
    """Runs it in a thread of a store's own. Raises OSError if there cannot be another thread.

    A `threading.Thread` would wait for a lock that a signal handler may have interrupted."""
    def body() -> None:
        _thread_kind.is_own = True
        run()

    try:
        _thread.start_new_thread(body, ())
    except RuntimeError as error:
        raise OSError(f"no thread can be started: {error}") from None


def is_own_thread() -> bool:
    """Whether a finalizer of the app's is what runs: Python calls them in any thread."""
    return getattr(_thread_kind, "is_own", False)


class _Request:
    """Who sets one of these looks at the other one then, so that they need no lock."""

    def __init__(self, step: Word, deadline: float) -> None:
        self.step = step
        self.is_wanted = True
        self.socket: socket.socket | None = None
        #: For the answer; None once a stream has begun.
        self.deadline: float | None = deadline

    def cancel(self) -> None:
        self.is_wanted = False
        with suppress(OSError):
            if self.socket:
                # Not TLS's own method, which would leave the thread that reads without it.
                socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


class Link:
    """Carries out requests in the engine's words. `report` returns when an event was heard.

    One thread calls it, and is not the one that waits in `report`."""

    def __init__(self, report: Callable[[Word], None]) -> None:
        self._report = report
        # Those that are wanted.
        self._requests: dict[int, _Request] = {}

    def send(self, step: Word) -> Word | None:
        """The answer is reported, or returned if there is none."""
        request = _Request(step, time.monotonic() + _ANSWER_SECONDS)
        self._requests[step["id"]] = request
        try:
            start(functools.partial(self._carry_out, request))
        except OSError as error:
            self.cancel(step["id"])
            return _failure(step, error)
        return None

    def cancel(self, number: int) -> None:
        if request := self._requests.pop(number, None):
            request.cancel()

    def set_patience(self, number: int, milliseconds: int) -> None:
        """How long a stream may be silent from now on."""
        with suppress(OSError):
            if (request := self._requests.get(number)) and request.socket:
                request.socket.settimeout(milliseconds / 1_000)

    def close(self) -> None:
        for number in [*self._requests]:
            self.cancel(number)

    @property
    def deadline(self) -> float:
        """When to call `expire`, by the monotonic clock."""
        return min((request.deadline for request in [*self._requests.values()] if request.deadline),
                   default=float("inf"))

    def expire(self) -> list[Word]:
        """Gives up what has taken too long."""
        now = time.monotonic()
        late = [request for request in [*self._requests.values()]
                if request.deadline and request.deadline <= now]
        for request in late:
            self.cancel(request.step["id"])
        return [_failure(request.step, TimeoutError()) for request in late]

    def _carry_out(self, request: _Request) -> None:
        step = request.step

        def say(do: str, **fields: Any) -> None:
            if request.is_wanted:
                self._report({"do": do, "request": step["id"], **fields})

        try:
            with closing(_connection(urlsplit(step["server"]))) as connection:
                response = _answer(connection, request)
                answer = {"status": response.status, "headers": dict(response.getheaders())}
                is_stream = step["headers"]["Accept"] == "text/event-stream"
                if response.status != 200 or not is_stream:
                    return say("answer", **answer, body=_body(response))
                if response.headers.get_content_type() != "text/event-stream":
                    raise ValueError("it is not a stream of events")
                request.deadline = None
                say("answer", **answer, body=b"")
                _hear(response, say)
                say("end")
        except Exception as error:
            # Whatever it is, who waits for an answer hears that there is none.
            say(**_failure(step, error))
        finally:
            self._requests.pop(step["id"], None)
            request.cancel()


def _failure(step: Word, error: Exception) -> Word:
    words = {"do": "fail", "request": step["id"], "why": "unreachable"}
    if isinstance(error, TimeoutError):
        detail = f"the server at {step['server']} does not answer"
        return words | {"why": "timeout", "detail": detail}
    why = getattr(error, "strerror", None) or reason(error)
    return words | {"detail": f"no server answers at {step['server']} ({why})"}


def _answer(connection: HTTPConnection, request: _Request) -> HTTPResponse:
    request.socket = connection.sock
    if not request.is_wanted:
        raise ConnectionError("it is not wanted any more")
    step = request.step
    path = urlsplit(step["server"]).path + step["path"]
    connection.request(step["method"], path, step.get("body"),
                       step["headers"] | {"User-Agent": f"ubiquity-store-python/{VERSION}"})
    return connection.getresponse()


def _connection(url: SplitResult) -> HTTPConnection:
    """A connection that is made, through a proxy if the environment names one for HTTPS."""
    host, seconds = url.hostname or "", _SILENCE_SECONDS
    if url.scheme == "http":
        connection = HTTPConnection(host, url.port, timeout=seconds)
        connection.sock = _connected(host, connection.port)
        return connection
    if (address := getproxies().get("https")) and not proxy_bypass(host):
        proxy = urlsplit(address if "//" in address else f"http://{address}")
        if proxy.scheme != "http" or not proxy.hostname:
            raise ValueError("HTTPS_PROXY is not an address such as http://proxy.example:3128")
        user = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
        basic = {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}
        tunnel = HTTPSConnection(proxy.hostname, proxy.port or 80, timeout=seconds, context=_tls())
        tunnel.set_tunnel(host, url.port or 443, basic if proxy.username else {})
        try:
            tunnel.connect()
        except BaseException:
            tunnel.close()
            raise
        return tunnel
    connection = HTTPSConnection(host, url.port, timeout=seconds, context=_tls())
    connection.sock = _tls().wrap_socket(_connected(host, connection.port), server_hostname=host)
    return connection


def _connected(host: str, port: int) -> socket.socket:
    """Tries the addresses of a host by turns of their families, the next one when one fails or is
    slow, until one is connected: RFC 8305."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    waiting = [each for pair in zip_longest(first, others) for each in pair if each]
    error, deadline = OSError(), time.monotonic() + _SILENCE_SECONDS
    with ExitStack() as opened, selectors.DefaultSelector() as selector:
        while waiting or selector.get_map():
            if waiting:
                family, kind, protocol, _, address = waiting.pop(0)
                try:
                    one = opened.enter_context(socket.socket(family, kind, protocol))
                    one.setblocking(False)
                    with suppress(BlockingIOError):
                        one.connect(address)
                    selector.register(one, selectors.EVENT_WRITE)
                except OSError as failure:
                    error = failure
                    continue
            pause = deadline - time.monotonic()
            if pause <= 0:
                raise TimeoutError
            for key, _ in selector.select(min(pause, _NEXT_SECONDS) if waiting else pause):
                one = cast(socket.socket, key.fileobj)
                selector.unregister(one)
                if number := one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    error = OSError(number, os.strerror(number))
                    continue
                connected = one.dup()
                connected.settimeout(_SILENCE_SECONDS)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connected
    raise error


def _body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while piece := response.read(1 << 16):
        body += piece
        if len(body) > _BYTES_MAX:
            raise ValueError("its answer is too large")
    if response.length:
        raise ValueError("its answer ended early")
    return bytes(body)


def _hear(response: HTTPResponse, say: Callable[..., None]) -> None:
    """Reads events until the stream ends. Says once a second that something has come."""
    line, name, data, size, told = bytearray(), "", list[bytes](), 0, 0.0
    while piece := response.readline(1 << 16):
        line += piece
        size += len(piece)
        if size > _BYTES_MAX:
            raise ValueError("an event is too large")
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            say("progress")
        if not piece.endswith(b"\n"):
            continue
        field, line = bytes(line).rstrip(b"\r\n"), bytearray()
        if field.startswith(b"event:"):
            name = field[6:].strip().decode()
        elif field.startswith(b"data:"):
            data.append(field[5:].removeprefix(b" "))
        elif not field:
            if name:
                say("event", name=name, data=b"\n".join(data))
            name, data, size = "", [], 0


def exchange(method: str, server: str, path: str, body: Word | None, credential: str = "") -> Word:
    """Sends a request outside the sync. Raises UbiquityError for anything but a success."""
    words: queue.SimpleQueue[Word] = queue.SimpleQueue()
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {credential}"} if credential else {}
    link = Link(words.put)
    answer = link.send({"id": 0, "method": method, "server": server, "path": path,
                        "headers": headers, "body": body and json.dumps(body).encode()})
    while not answer:
        try:
            answer = words.get(timeout=_ANSWER_SECONDS)
        except queue.Empty:
            answer = next(iter(link.expire()), None)
    if answer["do"] == "fail":
        raise UbiquityError(answer["why"], answer["detail"])
    try:
        fields: Word = dict(json.loads(answer["body"][:_FIELDS_BYTES_MAX] or b"{}"))
    except (TypeError, ValueError, RecursionError):
        fields = {}
    if not 200 <= answer["status"] < 300:
        detail = str(fields.get("detail") or f"{server} answered {answer['status']}")
        raise UbiquityError(str(fields.get("code") or "unreachable"), detail.removesuffix("."))
    return fields
