# SPDX-License-Identifier: Apache-2.0
"""Values, as the engine reads and writes them."""

import math
import plistlib
import unittest
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any

from ubiquity_store import ExactDate
from ubiquity_store.engine import Engine, boot
from ubiquity_store.plist import decode, encode

#: One of each kind of value, and of each size in which it is written.
SAMPLES: list[Any] = [
    0, 255, 256, 65_536, 1 << 31, 1 << 32, 1 << 40, -1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
    -(1 << 63), 1.5, 3.0, 0.0, -0.0, math.nan, -math.inf, 5e-324, 1.7976931348623157e308, 0.1,
    datetime(2026, 11, 27, 18, 0, 0, 123_456, timezone.utc), datetime(1, 1, 1, tzinfo=timezone.utc),
    ExactDate(0.123456789), ExactDate(math.inf), ExactDate(-0.0), ExactDate(1e300),
    "", "a\0b", "é😀", "e\u0301", "x" * 70, "é" * 300, True, False, b"\0\xff", bytes(70_000),
    [], {}, [[1], {"a": [{}]}], {"e\u0301": 2, "é": 1}, list(range(300)),
    # The most levels that a value may have.
    reduce(lambda inner, _: [inner], range(511), 1),  # type: ignore[arg-type, return-value]
]
UNSUPPORTED: list[Any] = [
    None, [None], {"a": {1}}, {1: 2}, 1 << 64, -(1 << 63) - 1, "\ud800", {"\ud800": 1}, 1j,
    datetime(2026, 1, 1), reduce(lambda inner, _: [inner], range(512), 1)]  # type: ignore


class PropertyListTests(unittest.TestCase):
    def test_a_property_list_is_read_as_it_was_written(self) -> None:
        # Types differ where values are equal, so texts are compared.
        self.assertEqual(repr(decode(encode(SAMPLES, 600))), repr(SAMPLES))

    def test_other_implementations_read_it(self) -> None:
        value = {"a": [1, 2.5, -3, True, b"x", {"é": 1 << 63}], "b": "x" * 20, "c": []}
        self.assertEqual(plistlib.loads(encode(value, 9)), value)
        self.assertEqual(decode(plistlib.dumps(value, fmt=plistlib.FMT_BINARY)), value)

    def test_the_engine_keeps_each_value_exactly(self) -> None:
        engine = Engine()
        engine.handle({"do": "start", "boot": boot(), "seed": "1", "store": "s"})
        for value in SAMPLES:
            self.assertEqual(engine.write([{"key": "k", "value": value}]), {})
            self.assertEqual(repr(engine.value("k")), repr(value))

    def test_what_no_store_can_hold_is_refused(self) -> None:
        for value in UNSUPPORTED:
            with self.subTest(value=repr(value)[:40]), self.assertRaises(ValueError):
                encode(value, 512)
        itself: list[Any] = []
        itself += [itself, itself]
        with self.assertRaises(ValueError):
            encode(itself, 512)

    def test_a_date_in_another_time_zone_is_the_same_moment(self) -> None:
        date = datetime(2026, 11, 27, 20, tzinfo=timezone(timedelta(hours=2)))
        self.assertEqual(decode(encode(date, 1)), datetime(2026, 11, 27, 18, tzinfo=timezone.utc))
