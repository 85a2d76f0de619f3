# SPDX-License-Identifier: Apache-2.0
"""Devices of a sealed account, with a real server, and beside a device in JavaScript and one in Swift."""

import json
import os
import secrets
import shutil
import subprocess
import unittest
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from unittest import mock
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from support import DEADLINE, IDENTIFIER, ServerTest
from test_sealing import VECTORS, check, proof, recovery, typed

from ubiquity_store import Store, UbiquityError, link

NODE = VECTORS.parents[1] / "Clients/JavaScript/src/node.js"
SCRIPT = f"""
import {{ openStore }} from '{NODE}';
const [home, server, code, recoveryKey] = process.argv.slice(1);
const store = await openStore({{ home, identifier: '{IDENTIFIER}' }});
await store.device.signIn({{ server, code }});
await store.device.unlock(recoveryKey);
await store.synchronizeNow();
store.set('javascript', [...store.values().values()]);
store.increment('count', 2);
await store.synchronizeNow();
await store.close();
"""


def sign_in_code() -> str:
    """The secret of a code that nobody has left keys for."""
    return "ubiquity:unlock;" + typed(secrets.token_bytes(16))


class UnlockingTests(ServerTest):
    def sealed(self, name: str = "a") -> tuple[Store, str]:
        """A device with the key of an account that it has sealed, and the recovery key."""
        store = self.signed_in(name)
        recovery_key = self.seal(store, 1, {})
        store.unlock(recovery_key)
        store.sync()
        return store, recovery_key

    def seal(self, store: Store, generation: int, known: dict[int, bytes]) -> str:
        """Marks an account with a new key after those that are known. Returns the recovery key, which opens all."""
        self.key, recovery_key = secrets.token_bytes(32), secrets.token_bytes(20)
        keys = known | {generation: self.key}
        case = {"recoveryKey": recovery_key.hex(),
                "keys": {str(number): b64encode(key).decode() for number, key in keys.items()}}
        present = max(known, default=0)
        shown = b64encode(proof(known[present], present)).decode() if known else ""
        self.put(store, "/v1/sealing", {
            "generation": generation, "recovery": b64encode(recovery(case)).decode(),
            "check": b64encode(check(self.key, generation)).decode()}, shown)
        return typed(recovery_key)

    def put(self, store: Store, path: str, body: dict[str, object], proof: str = "") -> None:
        request = Request(self.server.url + path, json.dumps(body).encode(), {
            "Authorization": f"Bearer {store._device['signedIn']['credential']}",
            "Content-Type": "application/json", **({"Ubiquity-Key-Proof": proof} if proof else {})}, method="PUT")
        urlopen(request, timeout=DEADLINE).close()

    def locked(self, name: str) -> Store:
        store = self.open(name)
        store.sign_in(self.server.url, self.server.code("ann"), device_name=name)
        with self.assertRaises(UbiquityError) as raised:
            store.sync()
        self.assertEqual(raised.exception.code, "locked")
        self.assertEqual(store.status["connection"], "locked")
        return store

    def test_a_device_without_the_key_says_what_to_do_and_the_recovery_key_unlocks_it(self) -> None:
        a, recovery_key = self.sealed()
        a["secret"] = "a text"
        a.sync()
        b = self.locked("b")
        b["waited"] = 1
        self.assertIn("unlock it with a code", b.status["explanation"])
        self.assertEqual(b.status["pendingKeys"], ["waited"])
        first, rest = recovery_key.lower().split("-", 1)
        b.unlock(f"{first}\n\u00a0" + rest.replace("-", "\u2013"))
        b.sync()
        a.sync()
        self.assertEqual((b["secret"], a["waited"]), ("a text", 1))
        # The keys are on the disk.
        b.close()
        again = self.open("b")
        again.sync()
        again.sign_out()
        again.sign_in(self.server.url, self.server.code("ann"), device_name="b")
        again.sync()

    def test_a_handover_unlocks_a_device_and_a_sign_in_brings_the_keys(self) -> None:
        a, _ = self.sealed()
        a["theme"] = "dark"
        a.sync()
        account = a._device["signedIn"]["account"]
        boxes: dict[str, str] = {}
        real = link.exchange

        def exchange(method: str, server: str, path: str, *more: Any) -> Any:
            if not path.startswith("/v1/handovers/"):
                return real(method, server, path, *more)
            if path in boxes:
                return {"box": boxes[path]}
            # Another device approves it meanwhile.
            hand_over(code)
            raise UbiquityError("not-found", "no")

        def hand_over(code: str) -> None:
            handed = a._ask_keys("handOver", code=code, account=account,
                                   keyring=a._device["keyrings"][account])
            boxes[handed["path"]] = handed["box"]

        with mock.patch("ubiquity_store.store.exchange", exchange):
            b = self.locked("b")
            code = b.unlock_code()
            b.unlock(code)
            b.sync()
            self.assertEqual(b["theme"], "dark")
            c, sign_in = self.open("c"), f"ubiquity:{self.server.url}#{self.server.code('ann')};"
            is_sealed = c.sign_in("", sign_in + typed(secrets.token_bytes(16)), device_name="c")
            self.assertTrue(is_sealed)
            self.assertNotIn(account, c._device.get("keyrings", {}))
            c.sign_out()
            sign_in = f"ubiquity:{self.server.url}#{self.server.code('ann')};{code.split(';')[1]}"
            self.assertTrue(c.sign_in("", sign_in, device_name="c"))
            c.sync()
            self.assertEqual(c["theme"], "dark")

    def test_keys_that_do_not_continue_what_a_device_has_are_refused(self) -> None:
        a, first = self.sealed()
        account, keyrings = a._device["signedIn"], a._device["keyrings"]
        code, handed = sign_in_code(), self.key
        handover = a._ask_keys("handOver", code=code, account=account["account"],
                               keyring=keyrings[account["account"]])
        self.put(a, handover["path"], {"box": handover["box"]})
        second = self.seal(a, 2, {1: handed})
        b = self.locked("b")
        for older in (code, first):
            with self.assertRaises(UbiquityError) as raised:
                b.unlock(older)
            self.assertEqual(raised.exception.code, "code-invalid")
        b.unlock(second)
        a.unlock(second)
        self.assertEqual(a._device["keyrings"], b._device["keyrings"])
        self.assertEqual(sorted(a._device["keyrings"][account["account"]]), ["1", "2"])
        # Whoever is a device of the account, and does not have its key, makes no next one.
        with self.assertRaises(HTTPError) as refused:
            self.seal(a, 3, {})
        self.assertEqual(json.loads(refused.exception.read())["code"], "proof")
        self.assertEqual(a._device["keyrings"], b._device["keyrings"])

    def test_an_account_that_is_not_sealed_is_said_where_a_sealed_one_was(self) -> None:
        a, _ = self.sealed()
        a.sign_out()

        def sign_in(account: str, allows_unsealed: bool = False) -> None:
            a.sign_in(self.server.url, self.server.code(account), device_name="a",
                      allows_unsealed=allows_unsealed)

        with self.assertRaises(UbiquityError) as raised:
            sign_in("bob")
        self.assertEqual(raised.exception.code, "notSealed")
        self.assertIsNone(a.account)
        # Also at another address of the server.
        with self.assertRaises(UbiquityError) as raised:
            a.sign_in(self.server.url.replace("127.0.0.1", "localhost"), self.server.code("bob"),
                      device_name="a")
        self.assertEqual(raised.exception.code, "notSealed")
        sign_in("ann")
        a.sync()
        sign_in("bob", allows_unsealed=True)
        self.assertEqual(a.account, "bob")
        # A new start does not forget it.
        a.close()
        a = self.open("a")
        with self.assertRaises(UbiquityError):
            sign_in("carl")
        self.assertEqual(a.account, "bob")

    def test_a_server_that_keeps_the_keys_back_starts_no_device_in_clear(self) -> None:
        a, _ = self.sealed()
        account = a._device["signedIn"]["account"]
        real, pushed = self.server.url, []

        class Denying(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/v1/sealing":
                    self.answer(200, b"{}")
                elif self.path.startswith("/v1/handovers/"):
                    self.answer(404, b'{"code": "not-found", "detail": "no"}')
                else:
                    self.pass_on()

            def do_POST(self) -> None:
                self.pass_on()

            do_DELETE = do_POST

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pushed.append(body)
                names = ("Authorization", "Content-Type", "Accept")
                headers = {name: self.headers[name] for name in names if name in self.headers}
                request = Request(real + self.path, body or None, headers, method=self.command)
                with urlopen(request, timeout=DEADLINE) as answer:
                    self.answer(answer.status, answer.read())

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Denying)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_port}"
        b, secret = self.open("b"), typed(secrets.token_bytes(16))
        b["mine"] = "in clear text"
        # The account's device has left its keys, at the honest server.
        code = f"ubiquity:unlock;{secret}"
        handed = a._ask_keys("handOver", code=code, account=account, mark=b"{}",
                             keyring=a._device["keyrings"][account])
        self.put(a, handed["path"], {"box": handed["box"]})
        with self.assertRaisesRegex(UbiquityError, "no device of the account has answered") as raised:
            b.sign_in("", f"ubiquity:{url}#{self.server.code('ann')};{secret}", device_name="b")
        self.assertEqual(raised.exception.code, "notSealed")
        self.assertIsNone(b.account)
        self.assertNotIn(b"in clear text", b"".join(pushed))
        code = f"ubiquity:{real}#{self.server.code('ann')};{secret}"
        self.assertTrue(b.sign_in("", code, device_name="b"))
        b.sync()
        # A person may know better.
        c = self.open("c")
        code = f"ubiquity:{url}#{self.server.code('bob')};{secret}"
        self.assertFalse(c.sign_in("", code, device_name="c", allows_unsealed=True))

    def test_who_was_told_that_an_account_is_sealed_sends_it_nothing_clear(self) -> None:
        says: dict[str, int] = {"generation": 1}
        real = link.exchange

        def exchange(method: str, server: str, path: str, *more: Any) -> Any:
            return says if path == "/v1/sealing" else real(method, server, path, *more)

        a = self.open("a")
        with mock.patch("ubiquity_store.store.exchange", exchange):
            a.sign_in(self.server.url, self.server.code("ann"), device_name="a")
            says.clear()
        a["secret"] = "a text"
        for _ in range(2):
            with self.assertRaises(UbiquityError) as raised:
                a.sync()
            self.assertEqual(raised.exception.code, "locked")
            a.close()
            a = self.open("a")
        b = self.signed_in("b")
        self.assertEqual(dict(b), {})
        # A person decides, also when it signs in anew.
        with self.assertRaises(UbiquityError) as raised:
            a.sign_in(self.server.url, self.server.code("ann"), device_name="a")
        self.assertEqual(raised.exception.code, "notSealed")
        a.sign_in(self.server.url, self.server.code("ann"), device_name="a", allows_unsealed=True)
        a.sync()
        b.sync()
        self.assertEqual(b["secret"], "a text")

    def test_who_was_refused_for_the_accounts_key_sends_nothing_clear(self) -> None:
        a, b = self.signed_in("a"), self.signed_in("b")
        a.sync()
        account = dict(b._device["signedIn"])
        self.seal(b, 1, {})
        a["secret"] = "a text"
        with self.assertRaises(UbiquityError) as raised:
            a.sync()
        self.assertEqual(raised.exception.code, "locked")
        self.assertIn("recovery key", a.status["lastError"] or "")
        a.close()
        # A server that says nothing of it any more.
        a = self.open("a")
        self.assertEqual(a._device["sealedAccounts"], [account["account"]])
        self.assertEqual(a.status["connection"], "locked")
        self.assertEqual((a["secret"], a.status["setAsideKeys"]), ("a text", []))

    def test_codes_that_give_no_keys_are_refused(self) -> None:
        b = self.signed_in("b")
        for code in ("7KQ2-M9XD-4TRW", "ubiquity:unlock;7KQ2", typed(bytes(20))[:-1]):
            with self.assertRaises(UbiquityError) as raised:
                b.unlock(code)
            self.assertEqual(raised.exception.code, "code-invalid")
        with self.assertRaisesRegex(UbiquityError, "is not sealed"):
            b.unlock(typed(bytes(20)))
        self.sealed("a")
        with self.assertRaisesRegex(UbiquityError, "an older one, or another account's"):
            b.unlock(typed(bytes(20)))
        for code, sentence in (("7KQ2", "and this has 4"), ("1" + typed(bytes(20))[1:], "mistyped")):
            with self.assertRaisesRegex(UbiquityError, sentence):
                b.unlock(code)
        with self.assertRaises(UbiquityError) as raised:
            b.unlock(sign_in_code(), timeout=0)
        self.assertEqual(raised.exception.code, "not-found")

    @unittest.skipUnless(shutil.which("node") and NODE.exists(), "there is no Node, or no client for it")
    def test_devices_in_three_languages_read_one_anothers_boxes(self) -> None:
        a, recovery_key = self.sealed()
        a.write({"python": {"text": "ü", "list": [1, -0.0, b"x", True]}})
        a.sync()
        self.command("c", "sign-in", "--server", self.server.url, "--code", self.server.code("ann"))
        self.give_keys("c", a)
        self.command("c", "set", "swift", "from the command line")
        self.command("c", "sync")
        words = [str(self.folder / "b"), self.server.url, self.server.code("ann"), recovery_key]
        subprocess.run(["node", "--input-type=module", "--eval", SCRIPT, *words], check=True,
                       timeout=DEADLINE, env=os.environ | {"NODE_NO_WARNINGS": "1"})
        a.sync()
        self.assertEqual(a["swift"], "from the command line")
        self.assertEqual(a["javascript"], [a["python"], a["swift"]])
        self.command("c", "sync")
        self.assertEqual(self.command("c", "get", "count"), "2")
        exact = json.loads(self.command("c", "get", "javascript", "--exact"))
        self.assertEqual(len(exact["array"]["values"]), 2)

    def give_keys(self, name: str, store: Store) -> None:
        """Puts a store's keys into the state of a device of the command line."""
        file = self.folder / name / "account.json"
        state = json.loads(file.read_text())
        file.write_text(json.dumps(state | {"keyrings": store._device["keyrings"]}))


if __name__ == "__main__":
    unittest.main()
