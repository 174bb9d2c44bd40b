"""Reads a limit out of a message for people, however it is spelled: ``262144``, ``262,144 bytes``, ``256 KiB``."""

from __future__ import annotations

import re

_GROUPED = re.compile(r"(?<=\d)[,_.'’\u00a0\u2009\u202f ](?=\d{3}(?:\D|$))")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(kib|kb|k|mib|mb|m)?(?![a-z])", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1024, "m": 1024 * 1024}


def sizes_in(message: str) -> set[int]:
    """Return every number of a message as a count; units of memory are read as powers of 1024."""
    returned: set[int] = set()
    for text in (message, _ungrouped(message)):
        for number, unit in _SIZE.findall(text):
            size = float(number) * _FACTORS[unit[:1].lower()]
            if size == int(size):
                returned.add(int(size))
    return returned


def names_field(message: str, field: str) -> bool:
    """Whether a message names a field: ``turn_id``, ``turnId``, ``Turn ID`` and ``turn-id`` are one name."""
    return _plain(field) in _plain(message)


def _ungrouped(message: str) -> str:
    before = ""
    while before != message:
        before, message = message, _GROUPED.sub("", message)
    return message


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
