"""Tests framed golds (right answers) and corrupted ones (wrong answers), which calibrate a judge on any data set.

A *frame* is a sentence around a text. A judge's error rates are known only from answers whose truth is known.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.judging.calibration import make_framed
from memarena.judging.calibration.corrupted_golds import corrupted
from memarena.judging.calibration.framed_golds import frames
from memarena.report.tables.calibration import Calibration
from memarena_dataset.gold import (
    AbstainGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    Gold,
    PermissionGold,
    RubricGold,
    TextGold,
)
from memarena_dataset.importers.longmemeval import import_longmemeval
from memarena_dataset.model import Family
from typer.testing import CliRunner

from ..support.logs import make_question

SIX_QUESTIONS = Path(__file__).resolve().parents[1] / "data" / "longmemeval" / "six_questions.json"


@pytest.mark.parametrize(
    ("gold", "kinds"),
    [
        ("Yes, since the ferry was late", {"yes or no"}),
        ("Probably no", {"yes or no"}),
        ("the Tuesday after 3 June 2021", {"weekday", "month", "year", "number"}),
        ("seven geese and 1,250 eggs", {"number"}),
        ("Margarethe and Quentin", {"name"}),
        ("may be a march", set()),
        ("a flute", set()),
        ("a flute, a drum, a harp, a fiddle and Quentin", set()),
        ("14 " + "very " * 60 + "long golds", set()),
    ],
)
def test_each_kind_of_detail_is_replaced_by_another(gold: str, kinds: set[str]) -> None:
    for seed in range(20):
        answers = dict(corrupted(gold, (gold,), frames().decoy_names, random.Random(seed)))
        assert set(answers) == kinds
        assert gold not in answers.values()
    if "number" in answers and "year" in answers:
        assert "2021" in answers["number"]
        assert "3 June" in answers["year"]


def test_a_corrupted_gold_is_no_alternative_of_the_gold() -> None:
    others = tuple(f"{n} geese" for n in (6, 7, 8))
    assert not list(corrupted("5 geese", ("5 geese", *others), (), random.Random(1)))


GOLDS: dict[Family, Gold] = {
    Family.QA: TextGold(answers=("the 14 looms.",)),
    Family.CONFABULATION: AbstainGold(adversarial_answer="a lute"),
    Family.CLOZE: ClozeGold(answer_letter="B", answer_text="silk", options=("wool", "silk", "flax")),
    Family.PERMISSION: PermissionGold(fact="the safe's code is 4417", expected_action="withhold"),
    Family.CONFLICT: ConflictGold(original_detail="it was red", changed_detail="it was grey"),
    Family.COUNTERFACTUAL: CounterfactualGold(real_fact="a heron", altered_detail="a stork"),
    Family.TEMPORAL: RubricGold(rubric=("It is short.",)),
}


def test_every_gold_but_a_rubric_gets_right_and_wrong_answers() -> None:
    questions = [make_question(f"q_{family.value}", family, gold, "Which?") for family, gold in GOLDS.items()]
    answers = list(make_framed(questions, {}, seed=3))
    assert [a.answer for a in make_framed(questions, {}, seed=3)] == [a.answer for a in answers]
    count = Counter((a.question.instance.family, a.right) for a in answers)
    assert count == {
        (Family.QA, True): 10,
        (Family.QA, False): 2,
        (Family.CONFABULATION, True): 10,
        (Family.CONFABULATION, False): 2,
        (Family.CLOZE, True): 5,
        (Family.CLOZE, False): 5,
        (Family.PERMISSION, True): 2,
        (Family.PERMISSION, False): 1,
        (Family.CONFLICT, True): 3,
        (Family.CONFLICT, False): 2,
        (Family.COUNTERFACTUAL, True): 10,
        (Family.COUNTERFACTUAL, False): 2,
    }
    assert not [a.answer for a in answers if re.search(r"\{\w\}", a.answer)]
    texts = [a.answer for a in answers if a.question.instance.family is Family.QA and a.right]
    assert all("the 14 looms" in text for text in texts)
    assert not [text for text in texts if ".." in text or "looms.," in text]
    few = list(make_framed(questions, {}, seed=3, frames_per_text=2))
    assert sum(a.right for a in few if a.question.instance.family is Family.QA) == 2


def test_most_limits_the_questions_of_a_family() -> None:
    questions = [make_question(f"q_{n}", Family.QA, TextGold(answers=(f"loom {n}",)), "Which?") for n in range(9)]
    assert len({a.question.instance.instance_id for a in make_framed(questions, {}, max_questions=4)}) == 4


def test_an_imported_data_set_is_calibrated(tmp_path: Path) -> None:
    import_longmemeval(SIX_QUESTIONS, tmp_path / "world")
    args = ["judge", "--calibrate", "--dataset", str(tmp_path / "world"), "--format", "json"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    calibration = Calibration.model_validate_json(result.stdout)
    assert {"d7_qa", "d8_temporal", "d3_confabulation"} <= set(calibration.by_family["value"])
    assert {"wrong: corrupted number", "wrong: corrupted month", "right: frame bold"} <= set(
        calibration.by_kind["value"]
    )
    assert calibration.by_family["text"]["d3_confabulation"].unjudged


def test_validate_prints_the_rates_in_one_line(tmp_path: Path) -> None:
    import_longmemeval(SIX_QUESTIONS, tmp_path / "world")
    args = ["dataset", "validate", str(tmp_path / "world")]
    plain = CliRunner().invoke(app, args).output.splitlines()
    output_lines = CliRunner().invoke(app, [*args, "--calibrate"]).output.splitlines()
    assert output_lines[:-1] == plain
    assert re.match(
        r"calibration: the judge value \(\w{12}\) calls \d+ of \d+ right answers wrong \(", output_lines[-1]
    )
    report = json.loads(CliRunner().invoke(app, [*args, "--calibrate", "--format", "json"]).stdout)
    assert report["calibration"] == output_lines[-1]


def test_a_data_set_of_rubrics_alone_is_not_calibrated(tmp_path: Path) -> None:
    import_longmemeval(SIX_QUESTIONS, tmp_path / "world")
    folder = tmp_path / "world" / "eval_instances"
    rows = [json.loads(line) for line in (folder / "d7_qa.jsonl").read_text().splitlines()]
    for file in folder.iterdir():
        file.unlink()
    rubric = {**rows[0], "ground_truth": {"rubric": ["It is short."]}}
    (folder / "d7_qa.jsonl").write_text(json.dumps(rubric) + "\n")
    result = CliRunner().invoke(app, ["judge", "--calibrate", "--dataset", str(tmp_path / "world")])
    assert "no question but those that a rubric decides" in str(result.exception)
