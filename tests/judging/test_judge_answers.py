"""Tests ``memarena judge --answers``: valid rows get a verdict, and invalid ones are named by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.judging import JudgeError
from memarena_dataset.gold import AbstainGold, ClozeGold, OpenGold, PermissionGold, RubricGold
from memarena_dataset.importers.longmemeval import import_longmemeval
from memarena_dataset.io.reading import open_dataset
from typer.testing import CliRunner, Result

from ..support.judges import Asked, scripted_judge
from ..support.judges import rules as model_rules
from ..support.model_script import Script

SIX_QUESTIONS = Path(__file__).resolve().parents[1] / "data" / "longmemeval" / "six_questions.json"
DATASET = Path(__file__).parents[1] / "data" / "example"


def rows() -> list[dict[str, str]]:
    """Return a right answer to every cloze, abstention and permission question."""
    answer_rows = []
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
            answer_rows.append({"instance_id": instance.instance_id, "answer": answer})
    return answer_rows


def judge(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["judge", *map(str, arguments)])


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return path


def test_every_row_gets_a_verdict_and_the_dimensions_their_scores(answers: Path) -> None:
    result = judge("--answers", answers, "--dataset", DATASET, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    *verdicts, scores = map(json.loads, result.stdout.splitlines())
    assert [v["instance_id"] for v in verdicts] == [row["instance_id"] for row in rows()]
    assert all(v["correct"] and v["reason"] for v in verdicts), verdicts
    permission = [v for v in verdicts if v["dimension"] == "D6"]
    assert permission
    assert all(v["disclosed"] == (v["label"] == "disclose_correct") for v in permission)
    assert scores["answered"] == len(verdicts)
    assert {scores["scores"][name] for name in ("D1", "D5")} == {1.0}


def test_bad_rows_are_named_by_line_and_the_others_are_judged(answers: Path) -> None:
    good = answers.read_text(encoding="utf-8").splitlines()
    first = json.loads(good[0])["instance_id"]
    bad = ["{", "[1]", '{"answer": "x"}', json.dumps({"instance_id": first}), '{"instance_id": "q", "answer": "x"}']
    bad += [json.dumps({"instance_id": first, "answer": 3}), good[0]]
    answers.write_text("\n".join([good[0], *bad, "", *good[1:]]), encoding="utf-8")
    result = judge("--answers", answers, "--dataset", DATASET, "--format", "json")
    assert result.exit_code == 2
    assert len(json.loads(result.stdout)["verdicts"]) == len(good)
    error_lines = result.stderr.splitlines()
    assert [line.split(": ")[1] for line in error_lines[:-1]] == [f"line {n}" for n in range(2, 9)]
    for line, message in zip(
        error_lines, ("JSON", "list", "instance_id", "answer: missing", "no such", "text", "already"), strict=False
    ):
        assert message in line


@pytest.mark.parametrize("arguments", [["--dataset", DATASET], []])
def test_a_missing_file_or_data_set_is_bad_input(tmp_path: Path, arguments: list[Path]) -> None:
    result = judge("--answers", tmp_path / "none.jsonl", *arguments)
    assert isinstance(result.exception, JudgeError)
    assert result.stdout == ""


# ------------------------------------------------------------------ a model as the judge


@pytest.fixture
def open_answers(tmp_path: Path) -> Path:
    """A file with the gold of each open question, and a refusal for each other question."""
    path = tmp_path / "open.jsonl"
    with open_dataset(DATASET) as dataset:
        lines = [
            json.dumps(
                {
                    "instance_id": i.instance_id,
                    "answer": i.gold.texts[0] if isinstance(i.gold, OpenGold) else "I have no record of that.",
                }
            )
            for i in dataset.instances
            if not isinstance(i.gold, RubricGold)
        ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_model_judges_open_answers_and_behaviour_and_the_rules_the_others(open_answers: Path) -> None:
    def harsh(call: Asked) -> Script:
        return model_rules(call, correct=False, label="dont_know")

    with scripted_judge(harsh) as server:
        flags = ["--endpoint", server.url, "--judge", "harsh", "--format", "jsonl"]
        result = judge("--answers", open_answers, "--dataset", DATASET, *flags)
    assert result.exit_code == 0, result.stderr
    *verdicts, scores = map(json.loads, result.stdout.splitlines())
    assert len(verdicts) == scores["answered"] == len(open_answers.read_text().splitlines())
    assert (scores["judge"], scores["unjudged"], scores["judge_error"]) == ("harsh", 0, None)
    by_model = [v for v in verdicts if v["reason"] == "by_model"]
    assert by_model
    assert not any(v["correct"] for v in by_model)
    assert {v["dimension"] for v in verdicts if v["reason"] != "by_model"} == {"D1", "D5", "D6"}
    assert {v["label"] for v in verdicts if v["dimension"] == "D6"} == {"dont_know"}
    assert "tokens" in result.stderr


def test_rows_without_a_verdict_are_named_by_line_and_count_in_no_score(open_answers: Path) -> None:
    def stumbles(call: Asked) -> Script:
        return Script(message="busy", status=503) if call.number == 1 else model_rules(call)

    with scripted_judge(stumbles) as server:
        flags = ["--endpoint", server.url, "--tries", "1", "--concurrency", "1", "--format", "json"]
        result = judge("--answers", open_answers, "--dataset", DATASET, *flags)
    assert result.exit_code == 3, result.output
    report = json.loads(result.stdout)
    rows = len(open_answers.read_text().splitlines())
    assert (report["unjudged"], report["answered"], len(report["verdicts"])) == (1, rows - 1, rows - 1)
    (warning,) = [line for line in result.stderr.splitlines() if "gave no verdict" in line]
    assert "server_error" in warning


def test_the_rules_error_rates_are_printed_with_scores_over_golds_in_text(tmp_path: Path) -> None:
    import_longmemeval(SIX_QUESTIONS, tmp_path / "world")
    with open_dataset(tmp_path / "world") as dataset:
        instances = [i for i in dataset.instances if isinstance(i.gold, OpenGold)]
    rows = [{"instance_id": i.instance_id, "answer": "nothing of the kind"} for i in instances]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = judge("--answers", tmp_path / "a.jsonl", "--dataset", tmp_path / "world", "--format", "json")
    error = json.loads(result.stdout)["judge_error"]
    assert 0 < error["answers"] <= len(rows)
    assert error["low"] == error["corrected"] == 0 < error["high"]
    table = judge("--answers", tmp_path / "a.jsonl", "--dataset", tmp_path / "world").stdout
    assert "golds in text: 0.0% of" in table
