"""Tests the importers of HaluMem and PersonaMem v1 with small files in their form: no silent loss."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memarena.cli.dataset import app
from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import AbstainGold, ClozeGold, TextGold
from memarena_dataset.importers.halumem import import_halumem
from memarena_dataset.importers.personamem_v1 import import_personamem_v1
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.validate import validate
from memarena_dataset.values import AmountValue
from typer.testing import CliRunner

Rows = list[dict[str, Any]]


def imported(name: str, source: Path, out: Path) -> str:
    result = CliRunner().invoke(app, ["import", name, str(source), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert validate(out).errors == ()
    return result.output


# ------------------------------------------------------------------ HaluMem


def user() -> dict[str, Any]:
    def session(
        start: str | None, texts: list[str], points: list[str], questions: Rows | None = None
    ) -> dict[str, Any]:
        turns = [
            {"role": ("user", "assistant")[n % 2], "content": text, "timestamp": start} for n, text in enumerate(texts)
        ]
        row: dict[str, Any] = {"start_time": start, "end_time": start, "dialogue": turns}
        row["memory_points"] = [{"index": 1, "memory_content": point} for point in points]
        return {**row, "questions": questions} if questions is not None else row

    def question(kind: str, text: str, answer: Any, evidence: list[str], **more: Any) -> dict[str, Any]:
        points = [{"memory_content": point, "memory_type": "Event Memory"} for point in evidence]
        row = {"question": text, "answer": answer, "evidence": points, "question_type": kind, "difficulty": "easy"}
        return {**row, **more}

    first = [
        question("Basic Fact Recall", "How many hens has Vera?", "4", ["Vera has four  hens.", "Vera moved."]),
        question("Memory Boundary", "What is her blood type?", "Not known", []),
        question("Riddle", "Why?", "so", []),
        question("Dynamic Update", "Where does Vera live?", " ", []),
    ]
    second = [
        question(
            "Dynamic Update", "Where now?", "Porto. Oporto is also acceptable.", ["Vera moved.", "Vera has a cow."]
        )
    ]
    return {
        "uuid": "u-1",
        "persona_info": "Name: Vera Lund; Gender: Female",
        "sessions": [
            session("Mar 03, 2025, 09:00:00", ["I keep four hens.", "Nice."], ["Vera has four hens."], first),
            session("Mar 03, 2025, 18:00:00", ["I moved to Porto.", "Oh."], ["Vera moved."], second),
            session("Mar 05, 2025, 08:30:00", [" "], []),
            {**session(None, ["What is 7 times 8?", "56"], []), "is_generated_qa_session": True},
        ],
    }


def halumem(path: Path, *users: Any) -> Path:
    rows = users or (user(),)
    for row in rows:
        for session in row.get("sessions", ()) if isinstance(row, dict) else ():
            if isinstance(session, dict) and session.get("is_generated_qa_session"):
                session["dialogue"][0]["timestamp"] = "Mar 04, 2025, 10:00:00"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    return path


def test_halumem_is_imported_with_its_questions_in_their_families(tmp_path: Path) -> None:
    output = imported("halumem", halumem(tmp_path / "in.jsonl"), tmp_path / "out")
    with open_dataset(tmp_path / "out") as dataset:
        by_query = {instance.query: instance for instance in dataset.instances}
        sessions = list(dataset.corpus.sessions())
        assert dataset.agents["user_halumem_01"].name == "Vera Lund"
        assert {row.query: dataset.question_day(row) for row in dataset.instances}["Where now?"] == 0
    assert [(session.day, session.metadata.get("generated")) for session in sessions] == [
        (0, None),
        (0, None),
        (1, True),
    ]
    hens, blood, now = (by_query[text] for text in ("How many hens has Vera?", "What is her blood type?", "Where now?"))
    assert (hens.family, hens.gold) == (Family.QA, TextGold(answers=("4",), values=(AmountValue(amount=4.0),)))
    assert hens.evidence_session_ids == ("user_halumem_01_s001",)
    assert (blood.gold, blood.metadata["stated_answer"]) == (AbstainGold(), "Not known")
    assert isinstance(now.gold, TextGold)
    assert now.gold.answers == ("Porto", "Oporto")
    assert (now.metadata["question_type"], now.difficulty) == ("Dynamic Update", "easy")
    expected = [
        "skipped: user_halumem_01_s003_t000: not a turn with role",
        "skipped: user_halumem_01_s003: holds no turns",
        "skipped: user_halumem_01 memory points: 2: what a memory stores is not compared",
        "skipped: user_halumem_01_s001_q01 evidence: user_halumem_01_s002: later than the question",
        "skipped: user_halumem_01_s001_q03: question_type: 'Riddle'; one of Basic Fact Recall",
        "skipped: user_halumem_01_s001_q04: answer: missing",
        "skipped: user_halumem_01_s002_q01 evidence: 1 of 2 memory points are listed by no session",
        "changed: user_halumem_01 questions: 4 have later sessions on their day",
    ]
    lines = output.splitlines()
    assert len(lines) == len(expected) + 1
    assert all(line.startswith(text) for line, text in zip(lines, expected, strict=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("sessions"), "in.jsonl:1: sessions: missing; a user with a list of sessions"),
        (
            lambda row: row["sessions"][1].update(start_time="soon"),
            "1: sessions.1.start_time: 'soon'; a time like 'Dec 15",
        ),
        (lambda row: row["sessions"].__setitem__(0, 7), "in.jsonl:1: sessions.0: an object is expected"),
        (lambda row: row.update(sessions=row["sessions"][2:3]), "in.jsonl:1: sessions: none holds a turn"),
        (lambda row: row.update(sessions=[]), "in.jsonl: no session with a time"),
    ],
)
def test_a_file_that_is_not_halumem_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    row = user()
    change(row)
    with pytest.raises(DatasetError) as caught:
        import_halumem(halumem(tmp_path / "in.jsonl", row), tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ PersonaMem v1


def row(**changed: Any) -> dict[str, Any]:
    return {
        "persona_id": "7",
        "question_id": "q-1",
        "question_type": "track_full_preference_evolution",
        "topic": "music",
        "user_question_or_message": "What shall I play?",
        "correct_answer": "(b)",
        "all_options": "['(a) The drums.', \"(b) The harp,\\n as you don't like noise.\"]",
        "shared_context_id": "h1",
        "end_index_in_shared_context": "3",
        "stereotypical": "No",
    } | changed


def history() -> Rows:
    texts = ["I like the harp.", "Good.", "Now the drums.", "Fine.", "Enough."]
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return [{"role": "system", "content": "Current user persona: a harpist"}, *messages]


def personamem(folder: Path, *rows: dict[str, Any], contexts: Any = None) -> Path:
    source = folder / "questions_32k.csv"
    with source.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        writer.writerows(rows or [row(), row(question_id="q-2", end_index_in_shared_context="5")])
    lines = [{"h0": history()}, {"h1": history()}] if contexts is None else contexts
    (folder / "shared_contexts_32k.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return source


def test_personamem_v1_has_the_history_up_to_each_question(tmp_path: Path) -> None:
    output = imported("personamem", personamem(tmp_path), tmp_path / "out")
    with open_dataset(tmp_path / "out") as dataset:
        ego = "user_persona_7_0000"
        texts_by_day = [
            [t.text for s in dataset.day_sessions(ego, day) for t in s.turns] for day in range(dataset.day_count)
        ]
        days = {row.metadata["source_id"]: dataset.question_day(row) for row in dataset.instances}
        first = dataset.instances[0]
    assert texts_by_day == [["I like the harp.", "Good."], ["Now the drums.", "Fine."]]
    assert days == {"q-1": 0, "q-2": 1}
    harp = "The harp, as you don't like noise."
    assert first.gold == ClozeGold(answer_letter="B", answer_text=harp, options=("The drums.", harp))
    assert first.query.startswith("What shall I play?\nWhich of these replies suits me best?")
    assert first.metadata["question_type"] == "track_full_preference_evolution"
    for note in (
        "skipped: history h0: no question is about it",
        "skipped: history h1: 1 messages after its last question",
        "skipped: history h1 message 0: the system's: no person says it",
        "changed: evidence: the table names none: imported without",
    ):
        assert note in output.splitlines()


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"correct_answer": "(c)"}, "correct_answer: '(c)'; the letter of an option"),
        ({"all_options": "['(a) x', '(c) y']"}, "all_options: a list of texts '(a) …'"),
        ({"all_options": "['(a) x', '(b) X']"}, "all_options: two of the replies are the same"),
        ({"all_options": "x"}, "all_options: neither JSON nor a Python literal"),
        ({"user_question_or_message": " "}, "user_question_or_message: missing"),
    ],
)
def test_an_unusable_personamem_v1_question_is_named(tmp_path: Path, changed: dict[str, str], note: str) -> None:
    output = imported("personamem", personamem(tmp_path, row(), row(**changed)), tmp_path / "out")
    assert (
        sum(note in line and line.startswith("skipped: user_persona_7_0000_q0000") for line in output.splitlines()) == 1
    )


@pytest.mark.parametrize(
    ("changed", "contexts", "message"),
    [
        ({"end_index_in_shared_context": "0"}, None, "csv:3: end_index_in_shared_context: '0'; a number of messages"),
        ({"end_index_in_shared_context": "9"}, None, "jsonl:2: h1: 6 messages, but a question comes after 9"),
        ({"shared_context_id": "h3"}, None, "csv:3: shared_context_id: 'h3' is not in shared_contexts_32k.jsonl"),
        ({"shared_context_id": " "}, None, "csv:3: shared_context_id: missing"),
        ({}, [{"h1": history()[:1] * 6}], "jsonl:1: h1: no message of user or assistant"),
        ({}, [[7]], "jsonl:1: an object of one history, a list of messages, is expected"),
    ],
)
def test_a_table_that_is_not_personamem_v1_is_refused(
    tmp_path: Path, changed: dict[str, str], contexts: Any, message: str
) -> None:
    source = personamem(tmp_path, row(), row(**changed), contexts=contexts)
    with pytest.raises(DatasetError) as caught:
        import_personamem_v1(source, tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_table_without_its_histories_is_refused(tmp_path: Path) -> None:
    source = personamem(tmp_path)
    (tmp_path / "shared_contexts_32k.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"no shared_contexts_32k.jsonl next to it; the histories are expected"):
        import_personamem_v1(source, tmp_path / "out")
