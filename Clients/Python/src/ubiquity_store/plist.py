# SPDX-License-Identifier: Apache-2.0
"""Property lists in the binary form ("bplist00"), which is what the engine speaks.

The standard library's plistlib rounds dates, writes -0.0 as 0.0, and recurses into deep values.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Union

_REFERENCE = datetime(2001, 1, 1, tzinfo=timezone.utc)
_OBJECTS_MAX = 1 << 21


@dataclass(frozen=True)
class ExactDate:
    """A date that no datetime represents exactly, in seconds since 2001-01-01 (UTC)."""
    seconds: float


#: What a key can have. An int stays an int, and a float a float. A datetime has a time zone.
Value = Union[
    str, bool, int, float, bytes, datetime, ExactDate, Sequence["Value"], Mapping[str, "Value"]]


def encode(root: Any, depth_max: int) -> bytes:
    """Raises ValueError for what no store can hold."""
    objects, offsets, encoded = [(root, 1)], list[int](), bytearray(b"bplist00")
    # What is in a container gets consecutive numbers, after all that are known so far.
    for value, depth in objects:
        offsets.append(len(encoded))
        if isinstance(value, Mapping):
            parts, marker = [*value.keys(), *value.values()], 0xD0
            if not all(isinstance(key, str) for key in value):
                raise ValueError("a key of a dictionary is a string")
        elif isinstance(value, (list, tuple)):
            parts, marker = [*value], 0xA0
        else:
            encoded += _scalar(value)
            continue
        if parts and depth >= depth_max or len(objects) + len(parts) > _OBJECTS_MAX:
            raise ValueError("a value has at most 512 levels, and not millions of elements")
        numbers = range(len(objects), len(objects) + len(parts))
        encoded += _sized(marker, len(value)) + struct.pack(f">{len(parts)}I", *numbers)
        objects += [(part, depth + 1) for part in parts]
    trailer = struct.pack(">6xBBQQQ", 8, 4, len(offsets), 0, len(encoded))
    return bytes(encoded) + struct.pack(f">{len(offsets)}Q", *offsets) + trailer


def decode(data: bytes | bytearray) -> Any:
    """Reads what the engine wrote, or `encode`: it is trusted."""
    offset_bytes, reference_bytes, count, root, table = struct.unpack(">6xBBQQQ", data[-32:])

    def numbers(at: int, size: int, count: int) -> list[int]:
        places = range(at, at + size * count, size)
        return [int.from_bytes(data[place:place + size], "big") for place in places]

    objects: list[Any] = []
    containers: list[tuple[Any, list[int]]] = []
    for at in numbers(table, offset_bytes, count):
        kind, size, at = data[at] >> 4, data[at] & 0xF, at + 1
        if kind >= 4 and size == 0xF:
            length = 1 << (data[at] & 0xF)
            [size], at = numbers(at + 1, length, 1), at + 1 + length
        match kind:
            case 0: objects.append(size == 9)
            case 1:
                objects.append(int.from_bytes(data[at:at + (1 << size)], "big", signed=size >= 3))
            case 2: objects.append(*struct.unpack_from(">d", data, at))
            case 3: objects.append(_date(*struct.unpack_from(">d", data, at)))
            case 4: objects.append(bytes(data[at:at + size]))
            case 5: objects.append(data[at:at + size].decode("ascii"))
            case 6: objects.append(data[at:at + 2 * size].decode("utf-16-be"))
            case _:
                objects.append([] if kind == 0xA else {})
                references = numbers(at, reference_bytes, size if kind == 0xA else 2 * size)
                containers.append((objects[-1], references))
    for container, references in containers:
        parts = [objects[reference] for reference in references]
        if isinstance(container, list):
            container += parts
        else:
            half = len(parts) // 2
            container |= zip(parts[:half], parts[half:])
    return objects[root]


def _scalar(value: Any) -> bytes:
    match value:
        case bool(): return b"\x09" if value else b"\x08"
        case int() if -(1 << 63) <= value < 1 << 63: return b"\x13" + struct.pack(">q", value)
        case int() if 0 < value < 1 << 64: return b"\x14" + struct.pack(">QQ", 0, value)
        case float(): return b"\x23" + struct.pack(">d", value)
        case str() if value.isascii(): return _sized(0x50, len(value)) + value.encode()
        case str(): return _sized(0x60, len(wide := value.encode("utf-16-be")) // 2) + wide
        case bytes() | bytearray(): return _sized(0x40, len(value)) + value
        case ExactDate(): return b"\x33" + struct.pack(">d", value.seconds)
        case datetime() if value.utcoffset() is not None:
            return b"\x33" + struct.pack(">d", (value - _REFERENCE).total_seconds())
    raise ValueError(f"{value!r:.80} is no value: its type, its size, or no time zone")


def _date(seconds: float) -> datetime | ExactDate:
    try:
        date = _REFERENCE + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return ExactDate(seconds)
    return date if _scalar(date) == _scalar(ExactDate(seconds)) else ExactDate(seconds)


def _sized(marker: int, count: int) -> bytes:
    return bytes([marker | min(count, 0xF)]) + (_scalar(count) if count >= 0xF else b"")
