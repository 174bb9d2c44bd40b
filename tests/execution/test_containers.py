"""Tests backends in containers, without Docker: the error if Docker is missing, and what the reaper would remove.

The reaper is the process that removes a run's containers and networks if the run dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.execution.backends.containers import truncate_output
from memarena.execution.backends.reaper import remaining
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_an_unreachable_docker_is_an_error_before_the_log_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    values = {"dataset": EXAMPLE, "backends": ["image:memory"], "readers": [{"spec": "extractive"}]}
    with pytest.raises(RunError, match="--backend image: Docker cannot be reached"):
        execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))
    assert not (tmp_path / "run" / "run.sqlite").exists()


@pytest.mark.parametrize("sizes", [(), (10,), (5, 5), (4, 7), (400,), (1,) * 400])
def test_bounded_reads_at_most_the_limit_and_notes_the_cut(sizes: tuple[int, ...]) -> None:
    sizes_read: list[int] = []

    def printed() -> Iterator[bytes]:
        for size in sizes:
            sizes_read.append(size)
            yield b"x" * size

    output = b"".join(truncate_output(printed(), 10))
    assert output.count(b"x") == min(10, sum(sizes))
    assert (b"left out" in output) == (sum(sizes) > 10)
    assert sum(sizes_read[:-1]) <= 10


THINGS = st.tuples(st.sampled_from(["container", "network"]), st.sampled_from("abcd"))


@given(events=st.lists(st.tuples(st.sampled_from("+-"), THINGS), max_size=30))
def test_remaining_lists_what_was_added_and_not_removed_containers_first(
    events: list[tuple[str, tuple[str, str]]],
) -> None:
    things = remaining(f"{sign} {kind} {identity}\n" for sign, (kind, identity) in events)
    expected = {thing for n, (sign, thing) in enumerate(events) if sign == "+" and ("-", thing) not in events[n:]}
    assert set(things) == expected
    kinds = [kind for kind, _ in things]
    assert kinds == sorted(kinds)
