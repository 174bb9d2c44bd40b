"""Tests corrections of a data set: corrected golds, and questions that are moved or left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memarena.cli.dataset import app
from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import TextGold
from memarena_dataset.importers.locomo import import_locomo
from memarena_dataset.importers.longmemeval import import_longmemeval
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.validate import validate
from typer.testing import CliRunner


def talk(name: str) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ida",
        "speaker_b": "Olu",
        "session_1": [
            {"speaker": "Ida", "dia_id": "D1:1", "text": "The loom arrived."},
            {"speaker": "Ida", "dia_id": "D1:2", "text": "I wove three scarves, two of wool."},
        ],
        "session_1_date_time": "10:00 am on 3 May, 2023",
    }
    questions = [
        {"question": "What arrived?", "answer": "a loom", "evidence": ["D1:2"], "category": 4},
        {"question": "How many scarves did Ida weave?", "answer": "two", "evidence": ["D1:2"], "category": 1},
    ]
    return {"sample_id": name, "conversation": conversation, "qa": questions}


def correction(**changed: Any) -> dict[str, Any]:
    right = {
        "question_id": "locomo_1_qa1",
        "question": "How many scarves did  Ida weave?",
        "golden_answer": "two",
        "correct_answer": "three (D1:2)",
        "correct_evidence": ["D1:2"],
        "error_type": "HALLUCINATION",
        "reasoning": "Two are of wool.",
    }
    return right | changed


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_corrected_golds_and_evidence_keep_the_published_ones_in_metadata(tmp_path: Path) -> None:
    evidence_only = correction(
        question_id="locomo_0_qa0",
        question="What arrived?",
        golden_answer="a loom",
        correct_answer="A loom. (answer is correct, citation is wrong)",
        correct_evidence=["D1:1"],
    )
    errors = [correction(), evidence_only, correction(question_id="locomo_0_qa7")]
    source = write(tmp_path / "in.json", [talk("c1"), talk("c2")] + [talk(f"d{n}") for n in range(8)])
    args = ["import", "locomo", str(source), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*args, "--corrections", str(write(tmp_path / "errors.json", errors))])
    assert result.exit_code == 0, result.output
    unused = "skipped: correction locomo_0_qa7: no question 7 reads 'How many scarves did  Ida weave?'"
    assert [line for line in result.output.splitlines() if "correction" in line] == [unused]
    assert "2 questions corrected" in result.output
    assert validate(tmp_path / "out").errors == ()
    with open_dataset(tmp_path / "out") as dataset:
        by_id = {instance.instance_id: instance for instance in dataset.instances}
    scarf_question, loom_question = by_id["c2_q002"], by_id["c1_q001"]
    assert isinstance(scarf_question.gold, TextGold)
    assert scarf_question.gold.answers == ("three",)
    correction_record = scarf_question.metadata["correction"]
    assert correction_record["published_ground_truth"]["answer"] == "two"
    assert (correction_record["id"], correction_record["kind"], correction_record["reason"]) == (
        "locomo_1_qa1",
        "HALLUCINATION",
        "Two are of wool.",
    )
    assert isinstance(loom_question.gold, TextGold)
    assert (loom_question.gold.answers, loom_question.evidence_turn_ids) == (("a loom",), ("c1_D1:1",))
    assert "published_ground_truth" not in loom_question.metadata["correction"]
    assert loom_question.metadata["correction"]["published_evidence_turn_ids"] == ["c1_D1:2"]
    assert "correction" not in by_id["c1_q002"].metadata


def test_corrections_apply_to_part_of_a_data_set_by_the_questions_text(tmp_path: Path) -> None:
    errors = write(tmp_path / "errors.json", [correction(question_id="locomo_8_qa1")])
    account = import_locomo(write(tmp_path / "in.json", talk("c9")), tmp_path / "out", errors)
    assert account.counts["questions corrected"] == 1


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ({}, "file: a list of corrections is expected"),
        ([7], "0: an object is expected"),
        ([correction(), correction()], "question_id: 'locomo_1_qa1' is there more than once"),
        ([correction(question_id="q1")], "0.question_id: 'q1'; an id like 'locomo_3_qa12' is expected"),
        ([correction(correct_answer=" ")], "0.correct_answer: missing; a text is expected"),
        ([correction(correct_evidence="D1:1")], "0.correct_evidence: missing; a list of texts is expected"),
    ],
)
def test_an_invalid_file_of_corrections_is_refused(tmp_path: Path, errors: Any, message: str) -> None:
    source = write(tmp_path / "in.json", talk("c1"))
    with pytest.raises(DatasetError) as caught:
        import_locomo(source, tmp_path / "out", write(tmp_path / "errors.json", errors))
    assert message in str(caught.value)


def question(name: str, question_date: str, **changed: Any) -> dict[str, Any]:
    turns = [
        {"role": "user", "content": "The mill is sold.", "has_answer": True},
        {"role": "assistant", "content": "Ok"},
    ]
    row = {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "What is sold?",
        "answer": "the mill",
        "question_date": question_date,
        "haystack_dates": ["2023/05/08 (Mon) 19:30"],
        "haystack_session_ids": [f"{name}_s"],
        "haystack_sessions": [turns],
        "answer_session_ids": [f"{name}_s"],
    }
    return row | changed


def test_a_question_before_its_evidence_moves_to_the_end_of_the_day(tmp_path: Path) -> None:
    rows = [question("early", "2023/05/08 (Mon) 07:00"), question("after", "2023/05/08 (Mon) 23:00")]
    rows.append(question("day_before", "2023/05/07 (Sun) 07:00"))
    account = import_longmemeval(write(tmp_path / "in.json", rows), tmp_path / "out")
    assert [(note.kind, note.what) for note in account.notes] == [("changed", "early")]
    assert {fault.problem.reason[:14] for fault in validate(tmp_path / "out").errors} == {
        "session 'user_",
        "turn 'user_day",
    }
    with open_dataset(tmp_path / "out") as dataset:
        moments = {row.instance_id: dataset.moment(row.query_timestamp or -1) for row in dataset.instances}
    assert f"{moments['early']:%d %H:%M:%S}" == "08 23:59:59"
    assert f"{moments['after']:%d %H:%M}" == "08 23:00"


def test_questions_are_left_out_by_name(tmp_path: Path) -> None:
    rows = [question("good", "2023/05/09 (Tue) 07:00"), question("bad", "soon", haystack_dates=[])]
    source = write(tmp_path / "in.json", rows)
    with pytest.raises(DatasetError, match=r"bad question_date: 'soon'; a date like"):
        import_longmemeval(source, tmp_path / "no")
    args = ["import", "longmemeval", str(source), "--out", str(tmp_path / "out"), "--leave-out", "bad"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    assert "skipped: bad: left out as asked" in result.output
    with open_dataset(tmp_path / "out") as dataset:
        assert [instance.instance_id for instance in dataset.instances] == ["good"]
    with pytest.raises(DatasetError, match=r"--leave-out gone: no question has this id"):
        import_longmemeval(source, tmp_path / "no", ["bad", "gone"])
