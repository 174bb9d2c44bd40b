"""Tests the statistics of a data set against an independent count of its files."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.errors import DatasetError
from memarena_dataset.stats import LAG_BUCKETS, NO_EVIDENCE, lag_bucket, markdown, stats, table

PEOPLE = ("ines_okafor", "priya_raman", "tomas_lindqvist")


def test_the_summary_agrees_with_a_count_by_hand(example: Path) -> None:
    summary = stats(example)
    rows = [json.loads(line) for line in (example / "corpus_sessions.jsonl").read_text().splitlines()]
    texts = [turn["text"] for row in rows for turn in row["turns"]]
    assert (summary.agents, summary.days, summary.sessions, summary.turns) == (3, 2, len(rows), len(texts))
    assert summary.words == sum(len(text.split()) for text in texts)
    assert summary.bytes == sum(len(text.encode()) for text in texts)
    per_session = [len(row["turns"]) for row in rows]
    assert summary.turns_per_session is not None
    assert summary.turns_per_session.mean == statistics.fmean(per_session)
    assert (summary.turns_per_session.min, summary.turns_per_session.max) == (min(per_session), max(per_session))
    own = [sum(person in row["participants"] for row in rows) for person in PEOPLE]
    assert summary.ego_sessions_per_agent is not None
    assert summary.ego_sessions_per_agent.mean == statistics.fmean(own)
    words = [
        sum(len(turn["text"].split()) for row in rows if person in row["participants"] for turn in row["turns"])
        for person in PEOPLE
    ]
    assert summary.ego_words_per_agent_day is not None
    assert summary.ego_words_per_agent_day.mean == statistics.fmean(words) / 2
    assert summary.ego_words_per_agent_day.max == max(words) / 2


def test_tokens_of_a_day_are_split_by_whether_an_assistant_takes_part(example: Path) -> None:
    summary = stats(example)
    rows = [json.loads(line) for line in (example / "corpus_sessions.jsonl").read_text().splitlines()]
    sizes: dict[bool, list[float]] = {True: [], False: []}
    for person in PEOPLE:
        for assisted, tokens in sizes.items():
            own = [row for row in rows if person in row["participants"]]
            texts = [
                t["text"] for row in own if (not {*row["participants"]} <= {*PEOPLE}) is assisted for t in row["turns"]
            ]
            tokens.append(sum(len(text.encode()) for text in texts) / 4 / 2)
    assert min(max(tokens) for tokens in sizes.values()) > 0
    for spread, tokens in (
        (summary.pa_tokens_per_agent_day, sizes[True]),
        (summary.pp_tokens_per_agent_day, sizes[False]),
    ):
        assert spread is not None
        assert spread.mean == pytest.approx(statistics.fmean(tokens))
        assert (spread.min, spread.max) == (min(tokens), max(tokens))


def test_questions_are_counted_by_family_dimension_and_lag(example: Path) -> None:
    summary = stats(example)
    assert summary.instances == 35
    assert summary.instances_per_family["d4_permission"] == 11
    assert summary.instances_per_dimension == {"D1": 3, "D2": 4, "D3": 9, "D4": 4, "D5": 4, "D6": 11}
    assert sum(summary.instances_per_family.values()) == sum(summary.lag_days.values()) == 35
    assert summary.lag_days[NO_EVIDENCE] == 2
    assert summary.lag_days["0"] == 17


@given(st.integers(0, 400))
def test_every_lag_has_one_bucket(days: int) -> None:
    name = lag_bucket(days)
    matching = [bucket for bucket, first, last in LAG_BUCKETS if first <= days and (last is None or days <= last)]
    assert matching == [name]


def test_a_lag_without_evidence_is_not_zero() -> None:
    assert lag_bucket(None) == NO_EVIDENCE
    assert lag_bucket(-1) == "0"


def test_a_data_set_without_questions_has_no_spread_of_evidence(tiny: Any) -> None:
    (tiny.path / "eval_instances" / "d7_qa.jsonl").unlink()
    summary = stats(tiny.path)
    assert summary.instances == 0
    assert summary.evidence_sessions_per_instance is None
    assert dict(table(summary))["Evidence sessions per question, mean [min, max]"] == "n/a"


def test_assistants_are_not_counted_as_agents(tiny: Any) -> None:
    tiny.session("s1", lambda row: row.update(participants=["ada", "assistant_ada"]))
    assert stats(tiny.path).agents == 1


def test_figures_over_half_a_data_set_are_refused(tiny: Any) -> None:
    with (tiny.path / "corpus_sessions.jsonl").open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(DatasetError, match=r"corpus_sessions.jsonl:2: session_id: missing"):
        stats(tiny.path)


def test_markdown_is_a_table_of_two_columns(example: Path) -> None:
    lines = markdown(stats(example)).splitlines()
    assert lines[:2] == ["| example | |", "| --- | ---: |"]
    assert all(line.count("|") == 3 for line in lines)
    assert "| Sessions / turns | 16 / 140 |" in lines
