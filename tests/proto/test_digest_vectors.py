"""Tests the committed vectors of the digest against the library and an independent reading without protobuf.

Vendors check their own implementation with these vectors, so the vectors must not be wrong in the way of our library.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "proto" / "vectors" / "digest.v1.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
VECTORS: list[dict[str, Any]] = DOCUMENT["vectors"]
ROLES = {
    "PARTICIPANT_ROLE_OWNER": 1,
    "PARTICIPANT_ROLE_PERSON": 2,
    "PARTICIPANT_ROLE_ASSISTANT": 3,
}


def text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(4, "big") + data


def optional(message: dict[str, Any], field: str) -> bytes:
    return text(message[field]) if message.get(field) else b"\xff\xff\xff\xff"


def number(value: int) -> bytes:
    return text(f"{value:d}")


def person(value: dict[str, Any]) -> bytes:
    return text(value["participant_id"]) + text(value["display_name"]) + number(ROLES[value["role"]])


def session(value: dict[str, Any], turns: list[dict[str, Any]]) -> bytes:
    out = text(value["session_id"]) + number(len(value["participants"]))
    out += b"".join(person(participant) for participant in value["participants"])
    out += text(value["started_at"]) + text(value["ended_at"])
    out += optional(value, "modality") + optional(value, "place") + optional(value, "group") + number(len(turns))
    for turn in turns:
        out += text(turn["turn_id"]) + text(turn["speaker_id"]) + optional(turn, "text") + text(turn["said_at"])
    return out


def by_the_table(frames: list[dict[str, Any]]) -> bytes:
    """The encoding read off the table of DIG-6, from the JSON alone: what a vendor would write."""
    header = frames[0]["header"]
    out = text(header["namespace"]) + number(header["day_index"]) + text(header["date"]) + text(header["batch_id"])
    out += person(header["owner"])
    parts = [frame["session"] for frame in frames if "session" in frame]
    opened = [part for part in parts if not part.get("continuation")]
    out += number(len(opened))
    for value in opened:
        same = [part for part in parts if part["session_id"] == value["session_id"]]
        out += session(value, [turn for part in same for turn in part["turns"]])
    events = [frame["event"] for frame in frames if "event" in frame]
    out += number(len(events))
    for event in events:
        out += text(event["event_id"]) + text(event["happened_at"]) + text(event["text"]) + optional(event, "category")
    return out


def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "digest_vectors.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["name"]))
def test_a_vector_agrees_with_the_table_read_a_second_time(vector: dict[str, Any]) -> None:
    encoded = by_the_table(vector["frames"])
    assert encoded.hex() == vector["encoded_hex"]
    assert hashlib.sha256(encoded).hexdigest() == vector["digest_hex"]


def test_the_library_agrees_with_every_vector() -> None:
    result = run_script()
    assert result.stderr == ""
    assert result.stdout == f"{len(VECTORS)} digest vectors agree\n"
    assert result.returncode == 0


@pytest.mark.parametrize("key", ["digest_hex", "encoded_hex", "turn_count"])
def test_a_vector_with_another_result_is_found_and_named(tmp_path: Path, key: str) -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    vector = document["vectors"][3]
    vector[key] = vector[key] + 1 if isinstance(vector[key], int) else vector[key][:-1] + "x"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document), encoding="utf-8")
    result = run_script("--file", str(changed))
    assert result.returncode == 1
    assert f"changed.json: {vector['name']}.{key}:" in result.stderr


def test_filling_never_rewrites_a_result(tmp_path: Path) -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    wrong, missing = document["vectors"][0], document["vectors"][1]
    wrong["digest_hex"] = "00" * 32
    for key in ("session_count", "turn_count", "event_count", "encoded_hex", "digest_hex"):
        del missing[key]
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps(document), encoding="utf-8")
    result = run_script("--fill", "--file", str(copy))
    after = json.loads(copy.read_text(encoding="utf-8"))["vectors"]
    assert result.returncode == 1
    assert after[0]["digest_hex"] == "00" * 32
    assert after[1]["digest_hex"] == VECTORS[1]["digest_hex"]


def test_the_vectors_are_usable_from_any_language() -> None:
    """Names are unique, the file is ASCII, look-alikes differ and twins are the same."""
    assert FILE.read_bytes().isascii()
    names = [vector["name"] for vector in VECTORS]
    assert len(set(names)) == len(names) >= 10
    digests = {vector["name"]: vector["digest_hex"] for vector in VECTORS}
    for vector in VECTORS:
        if "same_digest_as" in vector:
            assert digests[vector["name"]] == digests[vector["same_digest_as"]]
    distinct = {vector["digest_hex"] for vector in VECTORS if "same_digest_as" not in vector}
    assert len(distinct) == sum("same_digest_as" not in vector for vector in VECTORS)
