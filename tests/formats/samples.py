"""One format of each type with good and bad records, for tests of all formats."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

from millstream.formats import Format, format_named
from millstream.types.factory import Types
from millstream.types.row import Row

KIND = Types.ROW_NAMED(["id", "name", "score"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])


@dataclass(frozen=True)
class Sample:
    """How a format is made in a directory, a good record, and a bad one, each by its number."""

    name: str
    options: Callable[[Path], dict[str, Any]]
    bad: Callable[[int], bytes]
    kind: Any = KIND

    def format(self, folder: Path, **more: Any) -> Format:
        return format_named(self.name, self.kind, {**self.options(folder), **more})

    def row(self, number: int) -> Row:
        if self.kind is not KIND:
            return Row(number=number)
        return Row(id=number, name=f"name {number}", score=number / 4)


def descriptors(folder: Path) -> dict[str, Any]:
    """The options of protobuf, for a message that is described in a file of its own."""
    file = descriptor_pb2.FileDescriptorProto(name="sample.proto", package="sample", syntax="proto3")
    message = file.message_type.add(name="Sample")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {"id": field.TYPE_INT64, "name": field.TYPE_STRING, "score": field.TYPE_DOUBLE}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    path = folder / "sample.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return {"message-class-name": "sample.Sample", "descriptor-set-file": str(path)}


def nothing(_: Path) -> dict[str, Any]:
    return {}


SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("json", nothing, lambda n: b'{"id": "bad %d' % n),
        Sample("csv", nothing, lambda n: b"bad %d,x,1" % n),
        Sample("raw", nothing, lambda n: b"bad" + b"!" * (n % 4), Types.ROW_NAMED(["number"], [Types.LONG()])),
        Sample("avro", nothing, lambda n: b"\x02\x80" + b"\xff" * (n % 3)),
        Sample("debezium-json", nothing, lambda n: b'{"op": "bad %d"}' % n),
        Sample("canal-json", nothing, lambda n: b'{"type": "BAD", "data": [%d]}' % n),
        Sample("maxwell-json", nothing, lambda n: b'{"type": "bad", "data": %d}' % n),
        Sample("protobuf", descriptors, lambda n: b"\x0a\xff" + struct.pack(">H", n % 1000)),
    )
}
