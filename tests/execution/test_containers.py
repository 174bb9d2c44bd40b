"""Containers without Docker: what a run says where there is none, and what its reaper would remove."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.execution.backends.containers import bounded
from memarena.execution.backends.reaper import remaining
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_a_docker_that_does_not_answer_is_one_line_before_there_is_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    values = {"dataset": EXAMPLE, "backends": ["image:memory"], "readers": [{"spec": "extractive"}]}
    with pytest.raises(RunError, match="--backend image: Docker cannot be reached"):
        execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))
    assert not (tmp_path / "run" / "run.sqlite").exists()


@pytest.mark.parametrize("sizes", [(), (10,), (5, 5), (4, 7), (400,), (1,) * 400])
def test_of_a_printout_so_many_bytes_are_read(sizes: tuple[int, ...]) -> None:
    taken: list[int] = []

    def printed() -> Iterator[bytes]:
        for size in sizes:
            taken.append(size)
            yield b"x" * size

    kept = b"".join(bounded(printed(), 10))
    assert kept.count(b"x") == min(10, sum(sizes))
    assert (b"left out" in kept) == (sum(sizes) > 10)
    assert sum(taken[:-1]) <= 10


THINGS = st.tuples(st.sampled_from(["container", "network"]), st.sampled_from("abcd"))


@given(events=st.lists(st.tuples(st.sampled_from("+-"), THINGS), max_size=30))
def test_what_was_announced_and_not_taken_back_is_removed_containers_first(
    events: list[tuple[str, tuple[str, str]]],
) -> None:
    left = remaining(f"{sign} {kind} {identity}\n" for sign, (kind, identity) in events)
    expected = {thing for n, (sign, thing) in enumerate(events) if sign == "+" and ("-", thing) not in events[n:]}
    assert set(left) == expected
    kinds = [kind for kind, _ in left]
    assert kinds == sorted(kinds)
