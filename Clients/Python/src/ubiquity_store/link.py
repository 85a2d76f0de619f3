# SPDX-License-Identifier: Apache-2.0
"""Requests to a server. All that it sends has a bound in bytes and time. No redirects."""

import functools
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

from .engine import UbiquityError, Word

VERSION = "0.9.0"
_BYTES_MAX = 1 << 26
#: For JSON that is read here, of which each byte may take a hundred.
_FIELDS_BYTES_MAX = 1 << 20
_SILENCE_SECONDS = 30.0
#: For a whole answer, or the head of a stream.
_ANSWER_SECONDS = 300.0
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


class Link:
    """Carries out requests in the engine's words. `report` returns when an event was heard."""

    def __init__(self, report: Callable[[Word], None]) -> None:
        self._report = report
        self._mutex = threading.Lock()
        # Of the requests that are wanted.
        self._sockets: dict[int, socket.socket | None] = {}

    def send(self, step: Word) -> None:
        self._sockets[step["id"]] = None
        threading.Thread(target=self._carry_out, args=(step,), daemon=True).start()

    def cancel(self, number: int) -> None:
        with self._mutex, suppress(OSError):
            if wanted := self._sockets.pop(number, None):
                # Not TLS's own method, which would leave the thread that reads without it.
                socket.socket.shutdown(wanted, socket.SHUT_RDWR)

    def set_patience(self, number: int, milliseconds: int) -> None:
        """How long a stream may be silent from now on."""
        with suppress(OSError):
            if wanted := self._sockets.get(number):
                wanted.settimeout(milliseconds / 1_000)

    def close(self) -> None:
        for number in list(self._sockets):
            self.cancel(number)

    def _carry_out(self, step: Word) -> None:
        def say(do: str, **fields: Any) -> None:
            if step["id"] in self._sockets:
                self._report({"do": do, "request": step["id"], **fields})

        def expire() -> None:
            say("fail", why="timeout", detail=f"the server at {step['server']} does not answer")
            self.cancel(step["id"])

        timer = threading.Timer(_ANSWER_SECONDS, expire)
        timer.daemon = True
        timer.start()
        try:
            with closing(_connection(urlsplit(step["server"]))) as connection:
                response = self._answer(connection, step)
                answer = {"status": response.status, "headers": dict(response.getheaders())}
                is_stream = step["headers"]["Accept"] == "text/event-stream"
                if response.status != 200 or not is_stream:
                    return say("answer", **answer, body=_body(response))
                if response.headers.get_content_type() != "text/event-stream":
                    raise ValueError("it is not a stream of events")
                timer.cancel()
                say("answer", **answer, body=b"")
                _hear(response, say)
                say("end")
        except TimeoutError:
            expire()
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            detail = f"no server answers at {step['server']} ({reason})"
            say("fail", why="unreachable", detail=detail)
        finally:
            timer.cancel()
            self.cancel(step["id"])

    def _answer(self, connection: HTTPConnection, step: Word) -> HTTPResponse:
        connection.connect()
        with self._mutex:
            if step["id"] not in self._sockets:
                raise ConnectionError("it is not wanted any more")
            self._sockets[step["id"]] = connection.sock
        path = urlsplit(step["server"]).path + step["path"]
        connection.request(step["method"], path, step.get("body"),
                           step["headers"] | {"User-Agent": f"ubiquity-store-python/{VERSION}"})
        return connection.getresponse()


def _connection(url: SplitResult) -> HTTPConnection:
    host, seconds = url.hostname or "", _SILENCE_SECONDS
    if url.scheme == "http":
        return HTTPConnection(host, url.port, timeout=seconds)
    return HTTPSConnection(host, url.port, timeout=seconds, context=_tls())


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
    Link(words.put).send({"id": 0, "method": method, "server": server, "path": path,
                          "headers": headers, "body": body and json.dumps(body).encode()})
    answer = words.get()
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
