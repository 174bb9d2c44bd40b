"""Tests damaged, huge and special files as data sets: each is refused in one line before a run starts."""

from __future__ import annotations

import gzip
import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.files import MAX_LINE_BYTES
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.validate import refuse_invalid, validate

from .refusing import refusal

CORPUS = "corpus_sessions.jsonl"
DIGITS = "9" * 5000
DAMAGED = 100
MOST_KB = 1 << 20

Spoil = Callable[[Any], object]


def in_text(file: str, old: str, new: str) -> Spoil:
    def spoil(data: Any) -> None:
        path = data.path / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return spoil


def time_of(value: float) -> Spoil:
    return lambda data: data.session("sess_0004", lambda row: row.update(start_time=value, end_time=value))


def report(**values: object) -> Spoil:
    return lambda data: data.value("pipeline_report.json", lambda fields: fields.update(values))


REFUSED_ROWS: dict[str, tuple[Spoil, str]] = {
    "long integer in a session": (in_text(CORPUS, '"session_id": ', f'"x": {DIGITS}, "session_id": '), "5,000 digits"),
    "long integer in a persona": (
        in_text("agents_personas.jsonl", '"agent_id": ', f'"x": -{DIGITS}, "agent_id": '),
        "digits; at most 18 are expected",
    ),
    "infinite number": (in_text(CORPUS, '"session_id": ', '"x": 1e400, "session_id": '), "1e400 is too large"),
    "time of 3e6 days": (time_of(3e6), "below 36,525, is expected"),
    "time of 1e300 days": (time_of(1e300), "below 36,525, is expected"),
    "epoch of year 9999": (report(calendar_epoch="9999-12-31"), "between 1900-01-01 and 2999-12-31"),
    "a million days": (report(day_count=1_000_000), "1 to 36,525"),
}


@pytest.mark.parametrize("name", REFUSED_ROWS)
def test_a_number_out_of_range_is_refused_in_one_line(spoilable: Any, name: str) -> None:
    spoil, message = REFUSED_ROWS[name]
    spoil(spoilable)
    assert message in refusal(spoilable.path)
    assert not validate(spoilable.path).valid


def test_long_digits_within_a_text_are_accepted(spoilable: Any) -> None:
    spoilable.session("sess_0004", lambda row: row["turns"][0].update(text=f"The number is {DIGITS}, or 1e999."))
    with open_dataset(spoilable.path) as dataset:
        assert DIGITS in dataset.session("sess_0004").turns[0].text


@pytest.mark.parametrize("folder", ["", "eval_instances"])
@pytest.mark.timeout(60)
def test_a_special_file_is_refused_by_name(spoilable: Any, folder: str) -> None:
    """Opening a pipe without a writer would never return."""
    path = sorted((spoilable.path / folder).glob("*.jsonl" if folder else "events.jsonl"))[0]
    path.unlink()
    os.mkfifo(path)
    assert refusal(spoilable.path) == f"{path.relative_to(spoilable.path)}: is no plain file"


def test_a_device_is_refused_by_name(spoilable: Any) -> None:
    (spoilable.path / CORPUS).unlink()
    (spoilable.path / CORPUS).symlink_to("/dev/zero")
    assert refusal(spoilable.path) == f"{CORPUS}: is no plain file"


def pack(path: Path, block: bytes, times: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as packed:
        for _ in range(times):
            packed.write(block)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [CORPUS, "events.jsonl", "groups.json"])
@pytest.mark.parametrize(
    "block", [b" " * (1 << 20), b"\n" * (1 << 20), b"x" * (1 << 20)], ids=["blank", "lines", "one"]
)
def test_a_gzip_file_that_expands_too_far_is_refused(spoilable: Any, name: str, block: bytes) -> None:
    (spoilable.path / name).unlink()
    pack(spoilable.path / f"{name}.gz", block, 160)
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(spoilable.path).startswith(name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before < 4 * MAX_LINE_BYTES >> 10


INVALID: dict[str, Spoil] = {
    "turn id twice": lambda d: d.session("sess_0004", lambda row: row["turns"][-1].update(turn_id="sess_0005_t01")),
    "speaker who is nobody": lambda d: d.session("sess_0004", lambda row: row["turns"][0].update(speaker_id="nobody")),
    "ends before it starts": lambda d: d.session("sess_0004", lambda row: row.update(end_time=0.0)),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_run_refuses_what_validate_refuses(spoilable: Any, name: str) -> None:
    INVALID[name](spoilable)
    validation = validate(spoilable.path)
    assert not validation.valid
    with open_dataset(spoilable.path) as dataset, pytest.raises(DatasetError) as refused:
        refuse_invalid(dataset)
    assert str(refused.value).startswith(str(validation.errors[0].problem))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "date", "date": "2025-02-30"}, "no day, month or year of the calendar"),
        ({"type": "date", "date": "2025-13"}, "no day, month or year of the calendar"),
        ({"type": "amount", "amount": -3}, "greater than or equal to 0"),
        ({"type": "duration", "days": -1}, "greater than or equal to 0"),
    ],
)
def test_an_impossible_gold_value_is_refused(spoilable: Any, value: dict[str, object], message: str) -> None:
    spoilable.question("qa_0001", lambda row: row["ground_truth"].update(values=[value]))
    assert message in refusal(spoilable.path)


@pytest.mark.timeout(120)
def test_a_damaged_folder_gives_one_line_or_is_still_a_data_set(spoilable: Any) -> None:
    """Flipped bits, noise and truncation in any file: only DatasetError is raised, by both ways of opening."""
    files = sorted(path for path in spoilable.path.rglob("*.json*"))
    refused = 0
    for seed in range(DAMAGED):
        draw = random.Random(seed)
        path = draw.choice(files)
        original = path.read_bytes()
        content = bytearray(original)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(content))
            way = draw.randrange(4)
            if way == 0:
                content[at] ^= 1 << draw.randrange(8)
            elif way == 1:
                content[at : at + 40] = draw.randbytes(40)
            elif way == 2:
                content[at:at] = draw.choice([b"9" * 6000, b"[" * 3000, b"null", b"1e999", b"-", b"\0"])
            else:
                del content[max(1, at) :]
        path.write_bytes(content)
        try:
            with open_dataset(spoilable.path) as dataset:
                refuse_invalid(dataset)
        except DatasetError as error:
            refused += 1
            assert "\n" not in str(error), f"seed {seed}"
            assert len(str(error)) < 2000, f"seed {seed}"
        path.write_bytes(original)
    assert refused > DAMAGED // 2
