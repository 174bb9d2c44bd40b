"""Locates the field with invalid UTF-8 in a message that protobuf refuses, since protobuf does not name it.

The contract requires an error that names the field. The message is read by its wire format:
https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


def path_of_bad_utf8(data: bytes, descriptor: Descriptor) -> str | None:
    """Return the path of the first string field with invalid UTF-8; None if there is none, or the message is broken."""
    try:
        return _search(data, descriptor)
    except (IndexError, ValueError):
        return None


def _search(data: bytes, descriptor: Descriptor) -> str | None:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            _, position = _varint(data, position)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        elif wire_type == _LENGTH_DELIMITED:
            size, position = _varint(data, position)
            path = _in_field(data[position : position + size], descriptor.fields_by_number.get(number))
            if path is not None:
                return path
            position += size
        else:
            raise ValueError(f"wire type {wire_type}")
    return None


def _in_field(value: bytes, field: FieldDescriptor | None) -> str | None:
    if field is None:
        return None
    if field.type == FieldDescriptor.TYPE_STRING:
        try:
            value.decode()
        except UnicodeDecodeError:
            return field.name
    elif field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None:
        inner = _search(value, field.message_type)
        return None if inner is None else f"{field.name}.{inner}"
    return None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
