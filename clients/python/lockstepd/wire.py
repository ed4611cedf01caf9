"""The values of docs/PROTOCOL.md as bytes: each type encodes and decodes one kind of value, within its limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class WireError(ValueError):
    """Bytes that are no value, or a value that has no bytes: the sender's fault."""


class Reader:
    """Bytes being decoded."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise WireError("ends too early")
        taken, self.position = self.data[self.position : end], end
        return taken


class Kind(Protocol):
    """What can be encoded and decoded."""

    def encode(self, value: Any, out: bytearray) -> None: ...

    def decode(self, reader: Reader) -> Any: ...


class Unsigned:
    """u16, u32, u64: one byte below 251, else a marker and 2, 4 or 8 bytes, little endian."""

    def __init__(self, bits: int) -> None:
        self.limit = 1 << bits

    def encode(self, value: int, out: bytearray) -> None:
        if not 0 <= value < self.limit:
            raise WireError(f"{value} does not fit")
        if value < 251:
            out.append(value)
            return
        for marker, size in ((251, 2), (252, 4), (253, 8)):
            if value < 1 << (8 * size):
                out.append(marker)
                out += value.to_bytes(size, "little")
                return

    def decode(self, reader: Reader) -> int:
        first = reader.take(1)[0]
        if first < 251:
            return first
        if first > 253:
            raise WireError(f"no integer begins with {first}")
        value = int.from_bytes(reader.take(2 << (first - 251)), "little")
        if value >= self.limit:
            raise WireError(f"{value} is too large")
        return value


class Signed:
    """i32 by zigzag; a Fixed is its raw value, metres or radians × 65,536."""

    def encode(self, value: int, out: bytearray) -> None:
        if not -(1 << 31) <= value < 1 << 31:
            raise WireError(f"{value} does not fit")
        U32.encode(value * 2 if value >= 0 else -value * 2 - 1, out)

    def decode(self, reader: Reader) -> int:
        value = U32.decode(reader)
        return -(value // 2) - 1 if value & 1 else value // 2


class Byte:
    """u8; a bool if limit is 2."""

    def __init__(self, limit: int = 256) -> None:
        self.limit = limit

    def encode(self, value: int, out: bytearray) -> None:
        if not 0 <= value < self.limit:
            raise WireError(f"{value} does not fit")
        out.append(value)

    def decode(self, reader: Reader) -> int:
        value = reader.take(1)[0]
        if value >= self.limit:
            raise WireError(f"{value} is too large")
        return bool(value) if self.limit == 2 else value


class Exactly:
    """[u8; N]."""

    def __init__(self, count: int) -> None:
        self.count = count

    def encode(self, value: bytes, out: bytearray) -> None:
        if len(value) != self.count:
            raise WireError(f"not {self.count} bytes")
        out += value

    def decode(self, reader: Reader) -> bytes:
        return reader.take(self.count)


class Blob:
    """Vec<u8> of at most limit bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def encode(self, value: bytes, out: bytearray) -> None:
        if len(value) > self.limit:
            raise WireError(f"more than {self.limit} bytes")
        U64.encode(len(value), out)
        out += value

    def decode(self, reader: Reader) -> bytes:
        count = U64.decode(reader)
        if count > self.limit:
            raise WireError(f"more than {self.limit} bytes")
        return reader.take(count)


class Text:
    """String of at most limit bytes."""

    def __init__(self, limit: int = 64) -> None:
        self.blob = Blob(limit)

    def encode(self, value: str, out: bytearray) -> None:
        self.blob.encode(value.encode(), out)

    def decode(self, reader: Reader) -> str:
        try:
            return self.blob.decode(reader).decode()
        except UnicodeDecodeError as error:
            raise WireError(str(error)) from error


class Vec:
    """Vec<T> of at most limit elements."""

    def __init__(self, kind: Kind, limit: int) -> None:
        self.kind, self.limit = kind, limit

    def encode(self, value: list[Any], out: bytearray) -> None:
        if len(value) > self.limit:
            raise WireError(f"more than {self.limit} elements")
        U64.encode(len(value), out)
        for element in value:
            self.kind.encode(element, out)

    def decode(self, reader: Reader) -> list[Any]:
        count = U64.decode(reader)
        if count > self.limit:
            raise WireError(f"more than {self.limit} elements")
        return [self.kind.decode(reader) for _ in range(count)]


class Option:
    """Option<T>: None or the value."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def encode(self, value: Any, out: bytearray) -> None:
        out.append(value is not None)
        if value is not None:
            self.kind.encode(value, out)

    def decode(self, reader: Reader) -> Any:
        there = BOOL.decode(reader)
        return self.kind.decode(reader) if there else None


class Pair:
    """A tuple, or a point as (x, z)."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def encode(self, value: tuple[Any, ...], out: bytearray) -> None:
        for kind, part in zip(self.kinds, value, strict=True):
            kind.encode(part, out)

    def decode(self, reader: Reader) -> tuple[Any, ...]:
        return tuple(kind.decode(reader) for kind in self.kinds)


class Struct:
    """Named fields in order, as a dict."""

    def __init__(self, **fields: Kind) -> None:
        self.fields = fields

    def encode(self, value: dict[str, Any], out: bytearray) -> None:
        for name, kind in self.fields.items():
            kind.encode(value[name], out)

    def decode(self, reader: Reader) -> dict[str, Any]:
        return {name: kind.decode(reader) for name, kind in self.fields.items()}


class Enum:
    """Variants by number, as (name, fields)."""

    def __init__(self, variants: Iterable[tuple[str, Kind]]) -> None:
        self.variants = list(variants)
        self.numbers = {name: number for number, (name, _) in enumerate(self.variants)}

    def has(self, name: str, field: str) -> bool:
        """Whether a variant has this field."""
        return field in getattr(self.variants[self.numbers[name]][1], "fields", {})

    def encode(self, value: tuple[str, Any], out: bytearray) -> None:
        name, fields = value
        number = self.numbers[name]
        U32.encode(number, out)
        self.variants[number][1].encode(fields, out)

    def decode(self, reader: Reader) -> tuple[str, Any]:
        number = U32.decode(reader)
        if number >= len(self.variants):
            raise WireError(f"no variant {number}")
        name, kind = self.variants[number]
        return name, kind.decode(reader)


class InIdOrder:
    """Vec<Change>: the difference of the id to the one before, a mask, and the fields whose bits are set."""

    def __init__(self, mask: Kind, fields: list[tuple[str, Kind]], whole: int) -> None:
        self.mask, self.fields, self.whole = mask, fields, whole

    def encode(self, value: list[dict[str, Any]], out: bytearray) -> None:
        U64.encode(len(value), out)
        before = 0
        for change in value:
            U32.encode(change["id"] - before, out)
            before = change["id"]
            mask = sum(1 << bit for bit, (name, _) in enumerate(self.fields) if name in change)
            self.mask.encode(mask, out)
            for name, kind in self.fields:
                if name in change:
                    kind.encode(change[name], out)

    def decode(self, reader: Reader) -> list[dict[str, Any]]:
        changes, before = [], 0
        for _ in range(U64.decode(reader)):
            difference = U32.decode(reader)
            if difference == 0:
                raise WireError("ids do not ascend")
            before += difference
            mask = self.mask.decode(reader)
            if mask >> len(self.fields) or (mask & self.whole and mask != (1 << len(self.fields)) - 1):
                raise WireError(f"no such mask: {mask}")
            change: dict[str, Any] = {"id": before}
            for bit, (name, kind) in enumerate(self.fields):
                if mask >> bit & 1:
                    change[name] = kind.decode(reader)
            changes.append(change)
        return changes


U16, U32, U64 = Unsigned(16), Unsigned(32), Unsigned(64)
U8, BOOL, FIXED = Byte(), Byte(2), Signed()
POINT = Pair(FIXED, FIXED)


def encode(kind: Kind, value: Any) -> bytes:
    """The bytes of a value."""
    out = bytearray()
    kind.encode(value, out)
    return bytes(out)


def decode(kind: Kind, data: bytes) -> Any:
    """The one value that these bytes are."""
    reader = Reader(data)
    value = kind.decode(reader)
    if reader.position != len(data):
        raise WireError(f"{len(data) - reader.position} bytes after the end")
    return value
