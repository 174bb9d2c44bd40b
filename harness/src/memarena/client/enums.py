"""Names of enum values for people, also of those that the contract does not have."""

from __future__ import annotations

from google.protobuf.descriptor import EnumDescriptor


def enum_name(enum: EnumDescriptor, number: int) -> str:
    """The value's name as the proto file has it, ``unknown_7`` for a number that it does not have.

    An enum of proto3 is open: any number arrives, and ``Name()`` raises for those that it does not know.
    """
    value = enum.values_by_number.get(number)
    return f"unknown_{number}" if value is None else str(value.name)
