# SPDX-License-Identifier: Apache-2.0
"""Sealed values as docs/PROTOCOL.md describes them, written a second time: by Protocol/vectors/sealing.json, this and
UbiquityCore check each other. `python3 test_sealing.py --write` makes that file of values.json."""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import struct
import sys
import unittest
from typing import Any, Union

VECTORS = pathlib.Path(
    os.environ.get("UBIQUITY_VECTORS") or pathlib.Path(__file__).resolve().parents[3] / "Protocol/vectors")
Case = dict[str, Any]


def mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def hkdf(secret: bytes, info: bytes, blocks: int) -> list[bytes]:
    key, derived = mac(bytes(32), secret), [b""]
    for number in range(blocks):
        derived.append(mac(key, derived[-1] + info + bytes([number + 1])))
    return derived[1:]


def fields(*values: Union[str, int]) -> bytes:
    encoded = [one.encode() if isinstance(one, str) else struct.pack(">Q", one) for one in values]
    return b"".join(struct.pack(">I", len(one)) + one for one in encoded)


def chacha20(key: bytes, text: bytes) -> bytes:
    first = list(struct.unpack("<16I", b"expand 32-byte k" + key + bytes(16)))
    stream = bytearray()
    for block in range((len(text) + 63) // 64):
        first[12] = block
        s = first.copy()
        for _ in range(10):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                               (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    s[x] = s[x] + s[y] & 0xFFFFFFFF
                    mixed = s[z] ^ s[x]
                    s[z] = (mixed << bits | mixed >> 32 - bits) & 0xFFFFFFFF
        stream += struct.pack("<16I", *(x + y & 0xFFFFFFFF for x, y in zip(s, first)))
    return bytes(x ^ y for x, y in zip(text, stream))


def padded(count: int) -> int:
    count = max(count, 32)
    exponent = count.bit_length() - 1
    step = 1 << exponent - exponent.bit_length()
    return (count + step - 1) // step * step


def stamp(record: Case) -> tuple[int, int, int, int]:
    return (int(record["milliseconds"]), record.get("counter", 0), int(record["device"], 16),
            int(record.get("digest", 0)))


class Keys:
    def __init__(self, case: Case) -> None:
        account, generation, store = bytes.fromhex(case["accountKey"]), case["generation"], case["store"]
        self.store = hkdf(account, fields("ubiquity store 1", generation, store), 1)[0]
        self.mac, self.encryption, self.digests, self.counts = hkdf(
            self.store, fields("ubiquity store keys 1"), 4)

    def box(self, record: Case, text: bytes) -> bytes:
        place = fields("ubiquity box 1", record["key"], record.get("part", ""), *stamp(record))
        tag = mac(self.mac, place + text)[:16]
        return b"\x01" + tag + chacha20(mac(self.encryption, tag), text)

    def seal(self, record: Case, canonical: bytes) -> bytes:
        text = struct.pack(">I", len(canonical)) + canonical
        return self.box(record, text + bytes(padded(len(text)) - len(text)))

    def open(self, record: Case, box: bytes) -> Union[bytes, None]:
        """The value's canonical form; None if the box does not open here."""
        text = chacha20(mac(self.encryption, box[1:17]), box[17:])
        if len(text) < 32 or not hmac.compare_digest(box, self.box(record, text)):
            return None
        end = 4 + int(struct.unpack(">I", text[:4])[0])
        return text[4:end] if padded(end) == len(text) and not any(text[end:]) else None

    def count(self, record: Case) -> bytes:
        times, total = record["value"]["array"]["values"]
        number = struct.pack(">q", int(total["integer"])) if "integer" in total else struct.pack(">d", total["real"])
        tag = mac(self.counts, fields("ubiquity count 1", record["key"]))[:8]
        return struct.pack(">Bqb", 2, int(times["integer"]), "real" in total) + number + tag

    def digest(self, record: Case) -> str:
        code = mac(self.digests, fields("ubiquity digest 1", *stamp(record)))
        return str(int.from_bytes(code[:8], "big") or 1)


DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def typed(secret: bytes) -> str:
    """A secret as people type it: base32 and four more digits, which find mistakes."""
    bits = len(secret) * 8
    number = int.from_bytes(secret, "big") << -bits % 5
    digits = [number >> 5 * place & 31 for place in reversed(range((bits + 4) // 5))]
    check = 0
    for digit in digits:
        check = (check * 37 + digit) % 1_048_573
    text = "".join(DIGITS[digit] for digit in digits + [check >> shift & 31 for shift in (15, 10, 5, 0)])
    return "-".join(text[start:start + 4] for start in range(0, len(text), 4))


def field(tag: int, data: bytes) -> bytes:
    count, length = len(data), b""
    while count > 127:
        length, count = length + bytes([count & 127 | 128]), count >> 7
    return bytes([tag]) + length + bytes([count]) + data


def canonical(keys: Union[str, Case]) -> bytes:
    """A text or a dictionary as a `Value`."""
    if isinstance(keys, str):
        return field(0x0A, keys.encode())
    return field(0x4A, b"".join(
        field(0x0A, field(0x0A, name.encode()) + field(0x12, canonical(keys[name])))
        for name in sorted(keys, key=str.encode)))


def wrap(secret: bytes, word: str, info: bytes, keys: Case) -> bytes:
    """Keys under a secret: a handover, or what the recovery key opens."""
    value = canonical(keys)
    text = struct.pack(">I", len(value)) + value
    text += bytes(padded(len(text)) - len(text))
    mac_key, encryption = hkdf(secret, info, 2)
    tag = mac(mac_key, fields(word) + text)[:16]
    return b"\x01" + tag + chacha20(mac(encryption, tag), text)


def handover(case: Case) -> bytes:
    word = "ubiquity handover 1"
    return wrap(bytes.fromhex(case["secret"]), word, fields(word, case["account"]), case["keys"])


def recovery(case: Case) -> bytes:
    word = "ubiquity recovery 1"
    return wrap(bytes.fromhex(case["recoveryKey"]), word, fields(word), case["keys"])


def proof(key: bytes, generation: int) -> bytes:
    return hkdf(key, fields("ubiquity proof 1", generation), 1)[0]


def check(key: bytes, generation: int) -> bytes:
    return hashlib.sha256(proof(key, generation)).digest()


def proven(case: Case) -> Case:
    key, generation = bytes.fromhex(case["accountKey"]), case["generation"]
    return {"proof": proof(key, generation).hex(), "check": check(key, generation).hex()}


def handover_name(case: Case) -> str:
    info = fields("ubiquity handover name 1", case["account"])
    return hkdf(bytes.fromhex(case["secret"]), info, 1)[0][:16].hex()


NAMES = ("store", "mac", "encryption", "digests", "counts")


class SealingTests(unittest.TestCase):
    def setUp(self) -> None:
        self.vectors = json.loads((VECTORS / "sealing.json").read_text())

    def test_boxes_are_what_the_vectors_say_and_open(self) -> None:
        for case in self.vectors["cases"]:
            box, canonical = base64.b64decode(case["box"]), base64.b64decode(case["canonical"])
            self.assertEqual(Keys(case).seal(case["record"], canonical), box)
            self.assertEqual(Keys(case).open(case["record"], box), canonical)
        for case in self.vectors["unopened"]:
            self.assertIsNone(Keys(case).open(case["record"], base64.b64decode(case["box"])), case["why"])

    def test_keys_digests_counts_and_padding_are_what_the_vectors_say(self) -> None:
        for case in self.vectors["keys"]:
            self.assertEqual({name: getattr(Keys(case), name).hex() for name in NAMES}, case["derived"])
        for case in self.vectors["digests"]:
            self.assertEqual(Keys(case).digest(case["record"]), case["digest"])
        for case in self.vectors["counts"]:
            self.assertEqual(Keys(case).count(case["record"]), base64.b64decode(case["box"]))
        for case in self.vectors["padding"]:
            self.assertEqual(padded(case["bytes"]), case["padded"])

    def test_keys_are_handed_over_and_recovered_as_the_vectors_say(self) -> None:
        for case in self.vectors["proofs"]:
            self.assertEqual(proven(case), {name: case[name] for name in ("proof", "check")})
        for case in self.vectors["handovers"]:
            self.assertEqual(handover(case), base64.b64decode(case["box"]))
            self.assertEqual(handover_name(case), case["name"])
            self.assertTrue(case["code"].endswith(";" + typed(bytes.fromhex(case["secret"]))))
        for case in self.vectors["recoveries"]:
            self.assertEqual(typed(bytes.fromhex(case["recoveryKey"])), case["text"])
            self.assertEqual(recovery(case), base64.b64decode(case["wrap"]))


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def place(index: int, **more: Any) -> Case:
    account = ("".join(f"{byte:02x}" for byte in range(32)), "ff" * 32)[index & 1]
    return {"accountKey": account, "generation": 1 + index % 3, "store": ("com.example.app", "b-2")[index >> 1 & 1],
            **more}


def record(index: int, **more: Any) -> Case:
    part = {"part": f"a\u00e9{index}"} if index % 4 == 1 else {}
    return {"key": f"key/{index % 5}", **part, **more, "milliseconds": str(1_800_000_000_000 + index * index),
            "counter": index * 257 % 65_536, "device": f"{index * 0x9E3779B97F4A7C15 % 2**64:016x}",
            "digest": str(index * 0xD1B54A32D192ED03 % 2**64)}


def unopened(first: Case) -> list[Case]:
    box, keys = base64.b64decode(first["box"]), Keys(first)
    boolean = struct.pack(">I", 2) + b"\x10\x01"
    records: dict[str, Case] = {
        "another key": {"key": "key/9"}, "another part": {"part": "b"}, "no part": {"part": ""},
        "another time": {"milliseconds": "1"}, "another counter": {"counter": 1},
        "another device": {"device": "0000000000000001"}, "another digest": {"digest": "3"}}
    places: dict[str, Case] = {
        "another account": {"accountKey": "00" * 32}, "another generation": {"generation": 1},
        "another store": {"store": "other"}}
    boxes = {"another version": b"\x03" + box[1:], "a changed tag": box[:1] + bytes(1) + box[2:],
             "a changed text": box[:-1] + bytes([box[-1] ^ 1]), "cut off": box[:-1], "a byte more": box + bytes(1),
             "the header alone": box[:17], "nothing": b"",
             "padding that is not zero": keys.box(first["record"], boolean + bytes(25) + b"\x01"),
             "too much padding": keys.box(first["record"], boolean + bytes(28)),
             "a length beyond the end": keys.box(first["record"], struct.pack(">I", 29) + bytes(28))}
    common = {name: first[name] for name in ("accountKey", "generation", "store", "record", "box")}
    return ([{"why": why, **common, "record": {**first["record"], **change}} for why, change in records.items()]
            + [{"why": why, **common, **change} for why, change in places.items()]
            + [{"why": why, **common, "box": text_of(bad)} for why, bad in boxes.items()])


def write() -> None:
    values = json.loads((VECTORS / "values.json").read_text())["cases"]
    values.append({"json": {"string": "x" * 1_000}, "protobuf": text_of(b"\x0a\xe8\x07" + b"x" * 1_000)})
    cases = [place(index, record=record(index, value=value["json"]), canonical=value["protobuf"])
             for index, value in enumerate(values)]
    for case in cases:
        case["box"] = text_of(Keys(case).seal(case["record"], base64.b64decode(case["canonical"])))
    totals = ((1, {"integer": "5"}), (3, {"integer": "-7"}), (2, {"real": 0.5}), (2**53, {"integer": str(2**63 - 1)}))
    counts = [place(index, record=record(
        index, part=("c0123456789abcdef", "c-0123456789abcdef", "c+", "c-+")[index],
        value={"array": {"values": [{"integer": str(times)}, total]}})) for index, (times, total) in enumerate(totals)]
    for case in counts:
        case["box"] = text_of(Keys(case).count(case["record"]))
    digests = [place(index, record=record(index)) for index in range(4)]
    key = [text_of(bytes(range(first, first + 32))) for first in (0, 64, 128)]
    rings: list[Case] = [{"1": key[0]}, {"1": key[0], "2": key[1], "10": key[2]},
                         {"1": {"com.example.app": key[1]}, "2": {"b-2": key[0], "com.example.app": key[2]}}]
    proofs = [place(index) for index in range(4)]
    handovers: list[Case] = [
        {"secret": bytes(range(index, index + 16)).hex(), "account": f"{index + 10:016x}", "keys": ring}
        for index, ring in enumerate(rings)]
    recoveries: list[Case] = [{"recoveryKey": bytes(range(index * 9, index * 9 + 20)).hex(), "keys": ring}
                              for index, ring in enumerate(rings)]
    for case in handovers:
        case["box"] = text_of(handover(case))
        case["name"] = handover_name(case)
        case["code"] = "ubiquity:7KQ2-M9XD-4TRW;" + typed(bytes.fromhex(case["secret"]))
    for case in recoveries:
        case["text"] = typed(bytes.fromhex(case["recoveryKey"]))
        case["wrap"] = text_of(recovery(case))
    lists = {
        "keys": [place(index, derived={name: getattr(Keys(place(index)), name).hex() for name in NAMES})
                 for index in range(4)],
        "cases": cases, "unopened": unopened(cases[1]), "counts": counts,
        "digests": [{**case, "digest": Keys(case).digest(case["record"])} for case in digests],
        "proofs": [{**case, **proven(case)} for case in proofs],
        "handovers": handovers, "recoveries": recoveries,
        "padding": [{"bytes": count, "padded": padded(count)} for count in
                    (4, 31, 32, 33, 34, 63, 64, 65, 127, 128, 129, 1_000, 4_095, 65_537, 1_048_590)]}
    rows = [f'  "{name}": [\n' + ",\n".join("    " + json.dumps(row) for row in some) + "\n  ]"
            for name, some in lists.items()]
    about = '  "about": "What is sealed, and what opens. docs/PROTOCOL.md, \\"Sealed values\\"."'
    (VECTORS / "sealing.json").write_text("{\n" + ",\n".join([about, *rows]) + "\n}\n")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        unittest.main()
