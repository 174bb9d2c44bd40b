"""``memarena judge --answers``: every good row gets a verdict, every bad one is named by its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.judging import JudgeError
from memarena_dataset.gold import AbstainGold, ClozeGold, PermissionGold
from memarena_dataset.io.reading import open_dataset
from typer.testing import CliRunner, Result

DATASET = Path(__file__).parents[1] / "data" / "example"


def rows() -> list[dict[str, str]]:
    """A right answer to every question whose gold says one outright."""
    found = []
    with open_dataset(DATASET) as dataset:
        for instance in dataset.instances:
            gold = instance.gold
            if isinstance(gold, ClozeGold):
                answer = gold.answer_letter
            elif isinstance(gold, AbstainGold):
                answer = "I have no record of that."
            elif isinstance(gold, PermissionGold):
                answer = gold.fact if gold.expected_action == "disclose" else "I can't share that."
            else:
                continue
            found.append({"instance_id": instance.instance_id, "answer": answer})
    return found


def judge(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["judge", *map(str, arguments)])


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return path


def test_every_row_gets_a_verdict_and_the_dimensions_their_scores(answers: Path) -> None:
    done = judge("--answers", answers, "--dataset", DATASET, "--format", "jsonl")
    assert done.exit_code == 0, done.stderr
    *verdicts, scores = map(json.loads, done.stdout.splitlines())
    assert [v["instance_id"] for v in verdicts] == [row["instance_id"] for row in rows()]
    assert all(v["correct"] and v["reason"] for v in verdicts), verdicts
    permission = [v for v in verdicts if v["dimension"] == "D6"]
    assert permission
    assert all(v["disclosed"] == (v["label"] == "disclose_correct") for v in permission)
    assert scores["answered"] == len(verdicts)
    assert {scores["scores"][name] for name in ("D1", "D5")} == {1.0}


def test_bad_rows_are_named_by_line_and_lose_nothing(answers: Path) -> None:
    good = answers.read_text(encoding="utf-8").splitlines()
    first = json.loads(good[0])["instance_id"]
    bad = ["{", "[1]", '{"answer": "x"}', json.dumps({"instance_id": first}), '{"instance_id": "q", "answer": "x"}']
    bad += [json.dumps({"instance_id": first, "answer": 3}), good[0]]
    answers.write_text("\n".join([good[0], *bad, "", *good[1:]]), encoding="utf-8")
    done = judge("--answers", answers, "--dataset", DATASET, "--format", "json")
    assert done.exit_code == 2
    assert len(json.loads(done.stdout)["verdicts"]) == len(good)
    named = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in named[:-1]] == [f"line {n}" for n in range(2, 9)]
    for line, said in zip(
        named, ("JSON", "list", "instance_id", "answer: missing", "no such", "text", "already"), strict=False
    ):
        assert said in line


@pytest.mark.parametrize("arguments", [["--dataset", DATASET], []])
def test_a_file_that_is_not_there_and_a_missing_data_set_are_bad_input(tmp_path: Path, arguments: list[Path]) -> None:
    done = judge("--answers", tmp_path / "none.jsonl", *arguments)
    assert isinstance(done.exception, JudgeError)
    assert done.stdout == ""
