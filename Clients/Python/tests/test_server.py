# SPDX-License-Identifier: Apache-2.0
"""Stores with a real server, and with servers that are none."""

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

from support import DEADLINE, PROGRAM, Changes, Server, ServerTest, StoreTest, free_port
from test_plist import SAMPLES

from ubiquity_store import Change, UbiquityError, link
from ubiquity_store.engine import Word


class SyncTests(ServerTest):
    def test_what_one_device_writes_reaches_others(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        changes = Changes(b)
        a.write({f"k{index}": value for index, value in enumerate(SAMPLES)})
        change = changes.wait(lambda change: change.reason == "serverChange")
        # All of a transaction, at once.
        self.assertEqual(len(change.keys), len(SAMPLES))
        for index, value in enumerate(SAMPLES):
            self.assertEqual(repr(b[f"k{index}"]), repr(value))
        a.sync()
        self.assertEqual(a.status["pendingKeys"], [])
        self.assertEqual(a.status["connection"], "connected")
        self.command("c", "sign-in", "--server", self.server.url, "--code", self.server.code("ann"))
        self.assertEqual(self.command("c", "get", "k2"), "256")
        self.command("c", "set", "k2", "from the command line")
        changes.wait(lambda change: change.keys == ("k2",))
        self.assertEqual(b["k2"], "from the command line")
        del b["k2"]
        b.sync()
        a.sync()
        self.assertNotIn("k2", a)

    def test_what_is_cleared_is_one_change_for_others(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        a.update({f"key {index}": index for index in range(900)})
        a.sync()
        b.sync()
        changes = Changes(b)
        a.clear()
        change = changes.wait(lambda change: change.reason == "serverChange")
        self.assertEqual(len(change.keys), 900)
        self.assertEqual(dict(b), {})

    def test_what_was_written_before_the_sign_in_is_sent(self) -> None:
        a = self.open("a")
        a["early"] = 1
        a.sign_in(self.server.url, self.server.code("ann"), device_name="a")
        a.sync()
        self.assertEqual(self.signed_in("b")["early"], 1)

    def test_what_is_written_offline_is_sent_after_a_restart(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        self.server.kill()
        a["offline"] = 1
        with self.assertRaises(UbiquityError):
            a.sync()
        self.assertIn("127.0.0.1", str(a.status["lastError"]))
        a.close()
        self.server.start()
        again = self.open("a")
        self.assertEqual(again["offline"], 1)
        again.sync()
        b.sync()
        self.assertEqual(b["offline"], 1)

    def test_a_server_that_was_killed_is_found_again(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        changes = Changes(b)
        self.server.kill()
        a["later"] = 1
        self.server.start()
        changes.wait(lambda change: change.keys == ("later",))

    def test_another_account_never_sees_the_values_of_the_first(self) -> None:
        a = self.signed_in("a")
        a["mine"] = 1
        a.sync()
        a.sign_out()
        a["unsent"] = 1
        changes = Changes(a)
        a.sign_in(self.server.url, self.server.code("bob"), device_name="a")
        changes.wait(lambda change: change == Change("accountChange", ("mine", "unsent")))
        self.assertEqual(a.account, "bob")
        self.assertNotIn("mine", a)
        a["his"] = 2
        a.sync()
        a.close()
        a = self.open("a")
        self.assertEqual(dict(a), {"his": 2})
        a.sign_in(self.server.url, self.server.code("ann"), device_name="a")
        a.sync()
        self.assertEqual(dict(a), {"mine": 1, "unsent": 1})

    def test_a_device_that_was_signed_out_keeps_its_values(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        a["kept"] = True
        a.sync()
        a.sign_out()
        self.assertIsNone(a.account)
        self.assertEqual(a["kept"], True)
        b.sync()
        # The server knows it, and the sign-in before another one is revoked too.
        b.sign_in(self.server.url, self.server.code("ann"), device_name="again")
        b.sync()
        self.command("c", "sign-in", "--server", self.server.url, "--code", self.server.code("ann"))
        devices = self.command("c", "device", "list")
        self.assertIn("again", devices)
        self.assertEqual(len([line for line in devices.splitlines() if line.strip()]), 3, devices)

    def test_a_revoked_device_says_so_and_keeps_its_values(self) -> None:
        a = self.signed_in("a")
        a["kept"] = 1
        a.sync()
        device = a._device["signedIn"]
        link.exchange("DELETE", self.server.url, f"/v1/devices/{device['device']}", {},
                      device["credential"])
        with self.assertRaises(UbiquityError):
            while True:
                a.sync()
        self.assertEqual(a.status["connection"], "unauthorized")
        self.assertEqual(a["kept"], 1)

    def test_an_observer_may_do_what_it_likes(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        seen: list[object] = []
        observers: list[threading.Thread] = []
        ended = threading.Event()

        def observe(change: Change) -> None:
            seen.append(b["question"])
            b["answer"] = 42
            b.sync()
            b.close()
            observers.append(threading.current_thread())
            ended.set()
            raise RuntimeError("an observer's own mistake")

        b.subscribe(observe)
        with self.assertLogs("ubiquity_store", "ERROR"):
            a["question"] = "?"
            self.assertTrue(ended.wait(DEADLINE))
            # It is logged after that.
            observers[0].join(DEADLINE)
        a.sync()
        self.assertEqual(seen, ["?"])
        self.assertEqual(a["answer"], 42)

    def test_a_credential_is_in_no_text(self) -> None:
        a = self.signed_in("a")
        credential = a._device["signedIn"]["credential"]
        self.assertNotIn(credential, f"{a!r} {a} {a.status}")
        self.assertIn("ann", repr(a))

    def test_the_example_of_the_readme_runs(self) -> None:
        text = Path(__file__).parents[1].joinpath("README.md").read_text()
        (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
        for old, new in (("https://ubiquity.example", self.server.url), ('"data"', "home"),
                         ("CODE", self.server.code("ann"))):
            self.assertIn(old, example)
            example = example.replace(old, new)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(example, {"home": self.folder / "a"})
        self.assertEqual(output.getvalue(), "dark\nconnected\n")

    def test_a_wrong_code_is_an_error_with_a_sentence(self) -> None:
        a = self.open("a")
        with self.assertRaises(UbiquityError) as caught:
            a.sign_in(self.server.url, "AAAA-BBBB-CCCC", device_name="a")
        self.assertEqual(caught.exception.code, "code-invalid")
        self.assertIsNone(a.account)


@unittest.skipUnless(PROGRAM and shutil.which("openssl"), "there is no server or no `openssl`")
class TLSTests(StoreTest):
    def test_only_a_certificate_that_the_system_trusts_is_taken(self) -> None:
        key, certificate = str(self.folder / "key.pem"), str(self.folder / "certificate.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
             "-out", certificate, "-days", "2", "-subj", "/CN=test",
             "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        os.chmod(key, 0o600)
        server = Server(self.folder, "--tls-certificate", certificate, "--tls-key", key)
        self.addCleanup(server.kill)
        server.start()
        self.assertTrue(server.url.startswith("https://"))
        store = self.open("a")
        code = server.code("ann")
        with self.assertRaises(UbiquityError) as caught:
            store.sign_in(server.url, code, device_name="a")
        self.assertIn("certificate verify failed", str(caught.exception))
        self.addCleanup(link._tls.cache_clear)
        link._tls.cache_clear()
        with mock.patch.dict(os.environ, {"SSL_CERT_FILE": certificate}):
            store.sign_in(server.url, code, device_name="a")
        store["a"] = 1
        store.sync()
        self.assertEqual(store.status["connection"], "connected")
        # While its stream is read.
        store.close()


@contextlib.contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answers each connection in a thread. The value is the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=carry_out, args=(connection,), daemon=True).start()

        def carry_out(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(1 << 16)
                    answer(connection)
                    # What of the request is unread would make the end a reset.
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    pass

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def sends(text: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


class ForeignServerTests(StoreTest):
    def refusal(self, server: str) -> UbiquityError:
        with self.open("a") as store, self.assertRaises(UbiquityError) as caught:
            store.sign_in(server, "CODE", device_name="a")
        return caught.exception

    def test_only_addresses_that_protect_a_credential_are_taken(self) -> None:
        store = self.open("a")
        for server in ("http://ubiquity.example", "ftp://a", "https://", "a", "https://a@b",
                       "https://a?b", "https://a#b", "https://[", "https://a:99999", "https://a:0",
                       "http://localhost.example"):
            with self.subTest(server), self.assertRaises(UbiquityError) as caught:
                store.sign_in(server, "CODE", device_name="a")
            self.assertEqual(caught.exception.code, "address")
        with self.assertRaises(UbiquityError) as caught:
            store.sign_in("https://a.example", "CODE;KEY", device_name="a")
        self.assertEqual(caught.exception.code, "refused")
        self.assertEqual(link.checked_address("http://10.0.0.1:8/u/", True), "http://10.0.0.1:8/u")
        self.assertEqual(link.checked_address("http://[::1]:7717", False), "http://[::1]:7717")

    def test_a_redirect_is_not_followed(self) -> None:
        visits: list[None] = []
        with served(lambda _: visits.append(None)) as other:
            head = f"HTTP/1.1 302 Found\r\nLocation: {other}/\r\nContent-Length: 0\r\n\r\n"
            with served(sends(head.encode())) as server:
                self.assertEqual(self.refusal(server).code, "unreachable")
        self.assertEqual(visits, [])

    def test_what_is_no_answer_of_a_server_is_an_error(self) -> None:
        for text in (b"", b"HTTP/1.1 200", b"SSH-2.0-x\r\n", HEAD + b"Content-Length: 99\r\n\r\n{",
                     HEAD + b"Content-Length: 2\r\n\r\n[]", HEAD + b"Content-Length: 1\r\n\r\n{",
                     HEAD + b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc",
                     HEAD + b"\r\n" + b"[" * 100_000, HEAD + b'\r\n{"account": [1]}',
                     HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", HEAD + b"A: b\r\n" * 200):
            with self.subTest(text[:80]), served(sends(text)) as server:
                self.assertEqual(self.refusal(server).code, "unreachable")

    def test_an_answer_that_ends_early_is_not_taken(self) -> None:
        with served(sends(HEAD + b"Content-Length: 99\r\n\r\n{}")) as server:
            self.assertIn("ended early", str(self.refusal(server)))

    def test_an_answer_has_a_bound_in_bytes(self) -> None:
        def answer(connection: socket.socket) -> None:
            connection.sendall(HEAD + b"\r\n")
            while True:
                connection.sendall(bytes(1 << 16))

        with served(answer) as server, mock.patch.object(link, "_BYTES_MAX", 1 << 20):
            self.assertIn("too large", str(self.refusal(server)))

    def test_an_answer_has_a_bound_in_time(self) -> None:
        def answer(connection: socket.socket) -> None:
            connection.sendall(HEAD + b"\r\n")
            while True:
                connection.sendall(b" ")
                time.sleep(0.01)

        with served(answer) as server, mock.patch.object(link, "_ANSWER_SECONDS", 0.2):
            self.assertEqual(self.refusal(server).code, "timeout")

    def test_silence_has_a_bound(self) -> None:
        with served(lambda connection: time.sleep(DEADLINE)) as server:
            with mock.patch.object(link, "_SILENCE_SECONDS", 0.2):
                self.assertEqual(self.refusal(server).code, "timeout")

    def test_a_store_whose_server_never_answers_can_be_closed(self) -> None:
        store = self.open("a")
        with served(lambda connection: time.sleep(DEADLINE)) as server:
            account = {"account": "1", "accountName": "ann", "device": "0" * 15 + "1",
                       "credential": "ubd_x", "server": server, "deviceName": "a"}
            store._shell.adopt(store._device | {"signedIn": account}, store._device)
            with self.assertRaises(UbiquityError) as caught:
                store.sync(0.2)
            self.assertEqual(caught.exception.code, "timeout")
            waiting: list[str] = []

            def wait() -> None:
                try:
                    store.sync()
                except UbiquityError as error:
                    waiting.append(error.code)

            thread = threading.Thread(target=wait)
            thread.start()
            while 2 not in store._shell._trips:
                time.sleep(0.01)
            store.close()
            thread.join(DEADLINE)
            self.assertEqual(waiting, ["closed"])


class ConnectionTests(StoreTest):
    def test_an_address_that_leads_nowhere_costs_no_time(self) -> None:
        nowhere = socket.socket()
        self.addCleanup(nowhere.close)
        nowhere.bind(("127.0.0.1", 0))
        nowhere.listen(0)
        # Its queue is full: whatever comes now is never answered.
        for _ in range(4):
            one = socket.socket()
            self.addCleanup(one.close)
            one.setblocking(False)
            one.connect_ex(nowhere.getsockname())
        refused = ("127.0.0.1", free_port())
        with served(sends(HEAD + b"Content-Length: 2\r\n\r\n{}")) as server:
            there = ("127.0.0.1", urlsplit(server).port)
            found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address)
                     for address in (nowhere.getsockname(), refused, there)]
            begun = time.monotonic()
            with mock.patch.object(link, "_SILENCE_SECONDS", DEADLINE), \
                    mock.patch.object(socket, "getaddrinfo", return_value=found):
                self.assertEqual(link.exchange("GET", "http://several.example", "/", None), {})
            self.assertLess(time.monotonic() - begun, DEADLINE)
        with mock.patch.object(link, "_SILENCE_SECONDS", 0.5), \
                mock.patch.object(socket, "getaddrinfo", return_value=found[:2]):
            with self.assertRaises(UbiquityError) as caught:
                link.exchange("GET", "http://several.example", "/", None)
            self.assertEqual(caught.exception.code, "timeout")
        with mock.patch.object(socket, "getaddrinfo", return_value=found[1:2]):
            with self.assertRaises(UbiquityError) as caught:
                link.exchange("GET", "http://several.example", "/", None)
            self.assertIn("refused", str(caught.exception))

    def test_a_proxy_for_https_is_asked_for_a_tunnel(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            asked: list[bytes] = []

            def refuse() -> None:
                connection, _ = proxy.accept()
                with connection:
                    asked.append(connection.recv(1 << 16))
                    connection.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

            thread = threading.Thread(target=refuse)
            thread.start()
            address = f"http://user:word@127.0.0.1:{proxy.getsockname()[1]}"
            with mock.patch.dict(os.environ, {"HTTPS_PROXY": address, "NO_PROXY": "near.example"}):
                with self.assertRaises(UbiquityError) as caught:
                    link.exchange("GET", "https://far.example", "/", None)
                thread.join(DEADLINE)
                self.assertIn("403", str(caught.exception))
                self.assertIn(b"CONNECT far.example:443 ", asked[0])
                self.assertIn(b"Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n", asked[0])
                with mock.patch.object(link, "_connected", side_effect=OSError("directly")):
                    with self.assertRaises(UbiquityError) as caught:
                        link.exchange("GET", "https://near.example", "/", None)
                self.assertIn("directly", str(caught.exception))
            with mock.patch.dict(os.environ, {"HTTPS_PROXY": "socks5://127.0.0.1:1"}):
                with self.assertRaises(UbiquityError) as caught:
                    link.exchange("GET", "https://far.example", "/", None)
                self.assertIn("HTTPS_PROXY", str(caught.exception))


class StreamTests(StoreTest):
    def test_a_stream_is_read_however_it_is_cut(self) -> None:
        text = (b": hello\r\n\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: unnamed\n\n"
                b"event:b\ndata: " + b"x" * 100_000 + b"\n\nevent: c\ndata: never ended")
        pieces = [text[at:at + 7] for at in range(0, 70, 7)] + [text[70:]]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        chunked = STREAM[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"
        for answer in (STREAM + text, chunked + chunks):
            with served(sends(answer)) as server:
                events = self.heard(server)
            self.assertEqual([event["do"] for event in events if event["do"] != "progress"],
                             ["answer", "event", "event", "end"])
            named = [(event["name"], event["data"]) for event in events if "name" in event]
            self.assertEqual(named, [("a", b"1\n2"), ("b", b"x" * 100_000)])
            self.assertIn("progress", [event["do"] for event in events])

    def test_an_event_has_a_bound(self) -> None:
        def answer(connection: socket.socket) -> None:
            connection.sendall(STREAM + b"data: ")
            while True:
                connection.sendall(b"x" * (1 << 16))

        with served(answer) as server, mock.patch.object(link, "_BYTES_MAX", 1 << 20):
            events = self.heard(server)
        self.assertEqual(events[-1]["do"], "fail")
        self.assertIn("too large", events[-1]["detail"])

    def test_what_is_no_stream_is_not_taken_for_one(self) -> None:
        with served(sends(HEAD + b"\r\nevent: a\n\n")) as server:
            self.assertEqual([event["do"] for event in self.heard(server)], ["fail"])

    def test_patience_counts_from_the_next_byte_on(self) -> None:
        goes_on, heard = threading.Event(), threading.Event()

        def answer(connection: socket.socket) -> None:
            connection.sendall(STREAM + b"event: a\n\n")
            goes_on.wait(DEADLINE)
            connection.sendall(b"event: b\n\n")

        def hear(event: Word) -> None:
            words.append(event["do"])
            if event["do"] == "event":
                connection.set_patience(1, 1_000 * int(DEADLINE))
            if words.count("event") == 2 or event["do"] == "fail":
                heard.set()

        words: list[str] = []
        connection = link.Link(hear)
        with served(answer) as server, mock.patch.object(link, "_SILENCE_SECONDS", 3):
            connection.send({"id": 1, "method": "GET", "server": server, "path": "/",
                             "headers": {"Accept": "text/event-stream"}})
            self.assertFalse(heard.wait(4))
            goes_on.set()
            self.assertTrue(heard.wait(DEADLINE))
        self.assertNotIn("fail", words)

    def heard(self, server: str) -> list[Word]:
        events: list[Word] = []
        ended = threading.Event()

        def hear(event: Word) -> None:
            events.append(event)
            if event["do"] in ("end", "fail"):
                ended.set()

        connection = link.Link(hear)
        connection.send({"id": 1, "method": "GET", "server": server, "path": "/",
                         "headers": {"Accept": "text/event-stream"}})
        self.assertTrue(ended.wait(DEADLINE))
        return events
