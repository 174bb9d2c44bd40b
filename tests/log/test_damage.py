"""Tests logs damaged by a disk, a copy or a file system: a one-line error or the same facts, never different facts.

A wrong fact would become a wrong score without any sign.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.evaluation import load_facts
from memarena.log.store import LOCK_NAME, LOG_NAME, LogError, LogReader, LogWriter
from memarena.scoring.errors import ScoringError
from memarena.scoring.run_facts import RunFacts

from ..support import golden_run

PAGE = 4096
EACH = 24
"""Number of damaged logs for each kind of damage."""
WAL = f"{LOG_NAME}-wal"


@dataclass(frozen=True)
class Logs:
    """A closed log, the same log at half its length, another log, and one whose writer was killed."""

    whole: Path
    earlier: Path
    other: Path
    killed: Path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = tmp_path_factory.mktemp("logs")
    paths = Logs(*(folder / name for name in ("whole", "earlier", "other", "killed")))
    records = golden_run.records()
    half = len(records) // 2
    with LogWriter(paths.whole) as log:
        log.append(*records[:half])
    shutil.copytree(paths.whole, paths.earlier)
    with LogWriter(paths.whole) as log:
        log.append(*records[half:])
    with LogWriter(paths.other) as log:
        log.append(*(record.model_copy(update={"day": 3}) if record.kind == "asked" else record for record in records))
    with LogWriter(folder / "writing") as log:
        for start in range(0, len(records), 40):
            log.append(*records[start : start + 40])
        shutil.copytree(folder / "writing", paths.killed, ignore=shutil.ignore_patterns("*-shm"))
    return paths


def pages(content: bytearray) -> range:
    return range(0, len(content), PAGE)


def flip_bits(content: bytearray, draw: random.Random, logs: Logs) -> None:
    for _ in range(draw.randint(1, 8)):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def copy_page(content: bytearray, draw: random.Random, logs: Logs) -> None:
    source, target = draw.choice(pages(content)), draw.choice(pages(content))
    content[target : target + PAGE] = content[source : source + PAGE]


def swap_pages(content: bytearray, draw: random.Random, logs: Logs) -> None:
    first, second = draw.sample(pages(content), 2)
    content[first : first + PAGE], content[second : second + PAGE] = (
        content[second : second + PAGE],
        content[first : first + PAGE],
    )


def stale_page(content: bytearray, draw: random.Random, logs: Logs) -> None:
    earlier = (logs.earlier / LOG_NAME).read_bytes()
    offset = draw.choice(range(0, len(earlier), PAGE))
    content[offset : offset + PAGE] = earlier[offset : offset + PAGE]


def strange_page(content: bytearray, draw: random.Random, logs: Logs) -> None:
    """Replace a page with the intact page of another log at the same offset."""
    other_content = (logs.other / LOG_NAME).read_bytes()
    offset = draw.choice(range(0, min(len(other_content), len(content)), PAGE))
    content[offset : offset + PAGE] = other_content[offset : offset + PAGE]


def empty_page(content: bytearray, draw: random.Random, logs: Logs) -> None:
    offset = draw.choice(pages(content))
    content[offset : offset + PAGE] = bytes(PAGE)


def noise(content: bytearray, draw: random.Random, logs: Logs) -> None:
    offset, size = draw.randrange(len(content)), draw.randint(1, 3000)
    content[offset : offset + size] = draw.randbytes(size)


def truncate(content: bytearray, draw: random.Random, logs: Logs) -> None:
    del content[draw.randrange(len(content)) :]


def word(content: bytearray, draw: random.Random, logs: Logs) -> None:
    """Replace a fact with another of the same length, which only a checksum detects."""
    offset = draw.choice([match.start() for match in re.finditer(rb"Porto", content)])
    content[offset : offset + 5] = b"Porti"


IN_FILE: list[Callable[[bytearray, random.Random, Logs], None]] = [
    flip_bits, copy_page, swap_pages, stale_page, strange_page, empty_page, noise, truncate, word,
]  # fmt: skip
IN_WAL = [flip_bits, noise, truncate, empty_page]


def facts_or_line(run_dir: Path) -> RunFacts | None:
    """Return the facts that scoring would read; None if the log is refused with one line."""
    try:
        return load_facts(run_dir)
    except (LogError, ScoringError) as error:
        assert "\n" not in str(error)
        assert str(run_dir) in str(error)
        return None


@pytest.mark.parametrize("damage", IN_FILE, ids=lambda damage: damage.__name__)
def test_a_damaged_log_is_refused_or_gives_the_same_facts(
    logs: Logs, tmp_path: Path, damage: Callable[[bytearray, random.Random, Logs], None]
) -> None:
    expected = load_facts(logs.whole)
    refused = 0
    for seed in range(EACH):
        run = shutil.copytree(logs.whole, tmp_path / f"run-{seed}")
        content = bytearray((run / LOG_NAME).read_bytes())
        damage(content, random.Random(seed), logs)
        (run / LOG_NAME).write_bytes(content)
        facts = facts_or_line(run)
        refused += facts is None
        assert facts in (None, expected), f"seed {seed}"
    assert refused, "some of it has to be noticed, or nothing was damaged"


@pytest.mark.parametrize("damage", IN_WAL, ids=lambda damage: damage.__name__)
def test_a_damaged_write_ahead_log_is_refused_or_gives_the_same_facts(
    logs: Logs, tmp_path: Path, damage: Callable[[bytearray, random.Random, Logs], None]
) -> None:
    expected = load_facts(logs.whole)
    for seed in range(EACH):
        run = shutil.copytree(logs.killed, tmp_path / f"run-{seed}")
        content = bytearray((run / WAL).read_bytes())
        damage(content, random.Random(seed), logs)
        (run / WAL).write_bytes(content)
        assert facts_or_line(run) in (None, expected), f"seed {seed}"


def test_a_missing_write_ahead_log_is_named_and_an_existing_one_is_read(logs: Logs, tmp_path: Path) -> None:
    assert load_facts(logs.killed) == load_facts(logs.whole)
    run = shutil.copytree(logs.killed, tmp_path / "run")
    (run / WAL).unlink()
    with pytest.raises(LogError, match=r"is run\.sqlite-wal missing\?|not a run log"):
        load_facts(run)


def test_a_log_copied_without_its_neighbouring_files_is_read(logs: Logs, tmp_path: Path) -> None:
    shutil.copy(logs.whole / LOG_NAME, tmp_path / LOG_NAME)
    assert not (tmp_path / LOCK_NAME).exists()
    assert load_facts(tmp_path) == load_facts(logs.whole)


def test_a_log_that_is_to_be_kept_is_read_to_its_last_text(logs: Logs, tmp_path: Path) -> None:
    run = shutil.copytree(logs.whole, tmp_path / "run")
    with LogReader(run) as log:
        log.verify()
    content = bytearray((run / LOG_NAME).read_bytes())
    refused = 0
    for at in pages(content)[1:]:
        bad = bytearray(content)
        bad[at + PAGE // 2 : at + PAGE] = bytes(PAGE // 2)
        (run / LOG_NAME).write_bytes(bad)
        try:
            with LogReader(run) as log:
                log.verify()
        except LogError:
            refused += 1
    assert refused > len(pages(content)) // 2
