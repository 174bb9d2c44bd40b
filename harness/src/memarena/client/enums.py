"""Names values of proto enums for messages, including values that the contract does not define."""

from __future__ import annotations

from google.protobuf.descriptor import EnumDescriptor


def enum_name(enum: EnumDescriptor, number: int) -> str:
    """Return a value's name in the proto file, or ``unknown_7`` for an undefined number.

    Enums of proto3 are open: any number may arrive, and ``Name()`` raises for undefined ones.
    """
    value = enum.values_by_number.get(number)
    return f"unknown_{number}" if value is None else str(value.name)
