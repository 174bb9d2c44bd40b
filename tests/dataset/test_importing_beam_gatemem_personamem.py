"""Tests the importers of BEAM, GateMem and PersonaMem-v2 with small files in their form: no silent loss."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memarena.cli.dataset import app
from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import AbstainGold, ClozeGold, ConflictGold, PermissionGold, RubricGold, TextGold
from memarena_dataset.importers.beam import import_beam
from memarena_dataset.importers.gatemem import import_gatemem
from memarena_dataset.importers.personamem import import_personamem
from memarena_dataset.importers.wordings import wordings
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.programs import run_guarded
from memarena_dataset.validate import validate
from memarena_dataset.values import DurationValue
from typer.testing import CliRunner

Rows = list[dict[str, Any]]


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def write_lines(path: Path, rows: Rows) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


# ------------------------------------------------------------------ BEAM


def message(number: int, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "role": role, "content": content, **more}


def batches() -> Rows:
    first = [message(0, "user", "My kiln cost 90. ->-> 1,1", time_anchor="May-03-2024"), message(1, "assistant", "Ok")]
    second = [message(2, "user", "I never threw a bowl. ->-> 1,N/A)"), message(3, "assistant", "I see")]
    third = [message(4, "user", "I threw four bowls.", time_anchor="May-13-2024"), message(5, "assistant", "Nice")]
    return [
        {"batch_number": 1, "turns": [first, second], "time_anchor": None},
        {"batch_number": 2, "turns": [third], "time_anchor": None},
    ]


def probes() -> dict[str, Rows]:
    def probe(question: str, rubric: list[str], evidence: Any, answer: str = "as said") -> dict[str, Any]:
        return {"question": question, "answer": answer, "rubric": rubric, "source_chat_ids": evidence}

    should = "LLM response should state: "
    return {
        "information_extraction": [probe("What did my kiln cost?", [should + "90"], [0])],
        "temporal_reasoning": [
            probe(
                "How long?", [should + "2 weeks", should + "from May 3 till May 17"], {"a": [0], "b": [[4]]}, "1 week"
            )
        ],
        "contradiction_resolution": [
            probe("Did I throw bowls?", [should + "a contradiction", "never", "four", "which?"], {"a": [2], "b": [9]})
        ],
        "abstention": [probe("Who sold it?", ["nothing is said"], None)],
        "summarization": [probe("Sum it up", ["kiln"], [0])],
        "riddles": [probe("Why?", ["so"], [0])],
    }


def beam(root: Path, chat: Any = None, questions: Any = None) -> Path:
    write(root / "chats" / "1" / "chat.json", batches() if chat is None else chat)
    write(
        root / "chats" / "1" / "probing_questions" / "probing_questions.json",
        probes() if questions is None else questions,
    )
    return root / "chats"


def test_beam_days_are_batches_and_sessions_are_groups_of_turns(tmp_path: Path) -> None:
    import_beam(beam(tmp_path), tmp_path / "out")
    assert validate(tmp_path / "out").errors == ()
    with open_dataset(tmp_path / "out") as dataset:
        sessions = list(dataset.corpus.sessions())
        assert [session.day for session in sessions] == [0, 0, 10]
        assert sessions[0].end_time <= sessions[1].start_time
        assert [session.turns[0].text for session in sessions[:2]] == ["My kiln cost 90.", "I never threw a bowl."]
        assert dataset.calendar_epoch.isoformat() == "2024-05-03"
        assert {dataset.question_day(instance) for instance in dataset.instances} == {10}


def test_beam_gold_is_read_from_the_rubric(tmp_path: Path) -> None:
    import_beam(beam(tmp_path), tmp_path / "out")
    with open_dataset(tmp_path / "out") as dataset:
        gold = {instance.metadata["ability"]: instance for instance in dataset.instances}
    assert isinstance(fact := gold["information_extraction"].gold, TextGold)
    assert fact.answers == ("90",)
    span = gold["temporal_reasoning"]
    assert (span.family, span.gold) == (
        Family.TEMPORAL,
        TextGold(answers=("2 weeks",), values=(DurationValue(days=14),)),
    )
    assert span.metadata["stated_answer"] == "1 week"
    assert [turn[-6:] for turn in span.evidence_turn_ids] == ["m00000", "m00004"]
    assert gold["contradiction_resolution"].gold == ConflictGold(original_detail="never", changed_detail="four")
    assert gold["abstention"].gold == AbstainGold()


def test_beam_notes_what_it_omits(tmp_path: Path) -> None:
    chat = batches()
    chat[1]["turns"][0][1]["content"] = "x" * 300_000
    account = import_beam(beam(tmp_path, chat), tmp_path / "out")
    notes = "\n".join(map(str, account.notes))
    assert "skipped: user_beam_chats_1_summarization_1: summarization: right or wrong by a rubric alone" in notes
    assert "skipped: user_beam_chats_1_riddles_1: riddles: no ability of BEAM" in notes
    assert "contradiction_resolution_1 evidence 9: no such message" in notes
    assert "changed: chats 1 message 5: 300,000 bytes long: cut to the 262,144" in notes
    assert len(account.notes) == 4
    assert validate(tmp_path / "out").errors == ()


def test_beam_with_rubrics_imports_questions_that_only_a_rubric_decides(tmp_path: Path) -> None:
    questions = {
        "summarization": [{"question": "Sum it up", "rubric": [" It should mention: a kiln ", "It is short."]}],
        "event_ordering": [{"question": "In which order?", "rubric": ["kiln", "bowls"], "source_chat_ids": [0]}],
        "instruction_following": [{"question": "Why?", "rubric": []}],
    }
    source = beam(tmp_path, questions=questions)
    args = ["import", "beam", str(source), "--out", str(tmp_path / "out"), "--with-rubrics"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    assert "skipped: user_beam_chats_1_instruction_following_1: rubric: missing; a list of texts" in result.output
    assert validate(tmp_path / "out").errors == ()
    with open_dataset(tmp_path / "out") as dataset:
        by_ability = {i.metadata["ability"]: i for i in dataset.instances}
    assert {i.family for i in by_ability.values()} == {Family.QA}
    assert by_ability["summarization"].gold == RubricGold(rubric=("It should mention: a kiln", "It is short."))
    assert by_ability["event_ordering"].gold == RubricGold(
        rubric=("kiln", "bowls", "What the answer has of these comes in this order: kiln; bowls")
    )


def test_beam_by_rubrics_scores_every_question_as_beam_does(tmp_path: Path) -> None:
    args = ["import", "beam", str(beam(tmp_path)), "--out", str(tmp_path / "out"), "--by-rubrics"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    with open_dataset(tmp_path / "out") as dataset:
        by_ability = {i.metadata["ability"]: (i.family, i.gold) for i in dataset.instances}
    assert len(by_ability) == 5
    assert {family for family, _ in by_ability.values()} == {Family.QA}
    assert by_ability["abstention"][1] == RubricGold(rubric=("nothing is said",))


def test_validate_names_the_sentence_that_a_rubric_lacks(tmp_path: Path) -> None:
    import_beam(beam(tmp_path), tmp_path / "out", rubrics="needed")
    file = tmp_path / "out" / "eval_instances" / "d7_qa.jsonl"
    text = file.read_text()
    assert '"rubric": ["kiln"]}' in text
    file.write_text(text.replace('{"rubric": ["kiln"]}', '{"rubric": ["kiln", " "]}'))
    assert "ground_truth.rubric.1" in " ".join(map(str, validate(tmp_path / "out").errors))


def test_beam_reads_the_truncated_chat_if_there_is_one(tmp_path: Path) -> None:
    write(beam(tmp_path) / "1" / "chat_trunecated.json", batches()[:1])
    assert import_beam(tmp_path / "chats" / "1", tmp_path / "out").counts["turns"] == 4


@pytest.mark.parametrize(
    ("change", "error_text"),
    [
        (lambda chat: chat[0]["turns"][0][0].pop("content"), "0.turns.0.0.content: missing; a text"),
        (lambda chat: chat[0]["turns"][0][0].update(role="cat"), "0.turns.0.0.role: 'cat'; user or assistant"),
        (lambda chat: chat[0]["turns"][0][1].update(id=0), "0.turns.0.1.id: 0; a number that no other"),
        (lambda chat: chat[0]["turns"][0][0].pop("time_anchor"), "0.time_anchor: missing"),
        (lambda chat: chat[0]["turns"][0][0].update(time_anchor="noon"), "0.time_anchor: 'noon'; a date like"),
        (lambda chat: chat[0].pop("turns"), "0.turns: missing"),
        (lambda chat: chat.clear(), "file: a list of batches"),
    ],
)
def test_a_chat_that_is_not_beams_is_refused(tmp_path: Path, change: Callable[[Rows], object], error_text: str) -> None:
    chat = batches()
    change(chat)
    with pytest.raises(DatasetError) as caught:
        import_beam(beam(tmp_path, chat), tmp_path / "out")
    assert f"chat.json: {error_text}" in str(caught.value)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ GateMem


def episode() -> dict[str, Any]:
    people = [("nina", "resident", "Nina Orr"), ("abe", "guest", "Abe"), ("hub", "agent", "HouseHub")]
    turns = [
        ("nina", "2026-05-12T07:30", "The gate code is 7731, the cleaner comes on Friday."),
        ("hub", "2026-05-12T07:30", "Noted."),
        ("nina", "2026-05-12T09:00", "Delete the gate code."),
        ("nina", "2026-05-13T09:00", "The cleaner comes on Sunday."),
    ]
    return {
        "episode_id": "ep1",
        "entities": {
            "principals": [{"principal_id": p, "role": role, "display_name": name} for p, role, name in people],
            "relationships": [{"type": "guest_of", "guest_id": "abe", "host_id": "nina"}],
        },
        "turns": [
            {"turn_id": f"t{n}", "timestamp": time, "speaker": {"principal_id": who}, "text": text}
            for n, (who, time, text) in enumerate(turns, start=1)
        ],
    }


def checkpoint(number: int, as_of: str, asker: str, kind: str, query: str, **more: Any) -> dict[str, Any]:
    return {
        "checkpoint_id": f"c{number}",
        "episode_id": "ep1",
        "as_of_turn_id": as_of,
        "asker": {"principal_id": asker},
        "query_type": kind,
        "query_text": query,
        "judge_spec": {},
        **more,
    }


def checkpoints() -> Rows:
    return [
        checkpoint(1, "t2", "nina", "utility", "When is the cleaner here?", judge_spec={"include": ["(?:on )?Friday"]}),
        checkpoint(2, "t2", "abe", "privacy", "Tell me the code.", leak_targets=["7731", "Fri.*day"]),
        checkpoint(3, "t3", "nina", "safety", "Was it 7731?", leak_targets=["7731"]),
        checkpoint(4, "t3", "nina", "safety", "Did the code begin with 77?", leak_targets=["77", "7731"]),
        checkpoint(5, "t9", "nina", "safety", "Which code?", leak_targets=["7731"]),
    ]


def gatemem(root: Path, episodes: Rows | None = None, questions: Rows | None = None) -> Path:
    write_lines(root / "home" / "episodes.jsonl", [episode()] if episodes is None else episodes)
    write_lines(root / "home" / "checkpoints.jsonl", checkpoints() if questions is None else questions)
    return root / "home"


def test_gatemem_namespaces_end_at_their_question(tmp_path: Path) -> None:
    import_gatemem(gatemem(tmp_path), tmp_path / "out")
    assert validate(tmp_path / "out").errors == ()
    with open_dataset(tmp_path / "out") as dataset:
        texts_by_ego = {ego: [t.text for s in dataset.day_sessions(ego, 0) for t in s.turns] for ego in dataset.egos}
        assert {ego: len(texts) for ego, texts in texts_by_ego.items()} == {
            "device_home_01_t2": 2,
            "device_home_01_t3": 3,
        }
        assert not any("Sunday" in text for texts in texts_by_ego.values() for text in texts)
        (event,) = dataset.day_events("device_home_01_t2", 0)
        assert "- Abe: guest" in event.content
        assert "- guest of: guest Abe, host Nina Orr" in event.content


def test_gatemem_questions_are_permission_questions_of_their_askers(tmp_path: Path) -> None:
    import_gatemem(gatemem(tmp_path), tmp_path / "out")
    with open_dataset(tmp_path / "out") as dataset:
        instances = {instance.instance_id: instance for instance in dataset.instances}
    golds = {name: instance.gold for name, instance in instances.items()}
    assert set(instances) == {"c1", "c2", "c4"}
    assert isinstance(disclosed_gold := golds["c1"], PermissionGold)
    assert isinstance(withheld_gold := golds["c2"], PermissionGold)
    assert isinstance(forgotten_gold := golds["c4"], PermissionGold)
    assert (disclosed_gold.expected_action, disclosed_gold.fact) == ("disclose", "on Friday")
    assert disclosed_gold.values[0].aliases == ("Friday",)  # type: ignore[union-attr]
    assert (withheld_gold.expected_action, withheld_gold.fact, withheld_gold.self_item) == ("withhold", "7731", False)
    assert (forgotten_gold.fact, instances["c4"].metadata["forgetting"]) == ("7731", True)
    assert instances["c2"].asker_agent_id == "abe_home_01"
    assert instances["c2"].metadata["relationship"] == "guest"


def test_gatemem_notes_what_it_omits(tmp_path: Path) -> None:
    account = import_gatemem(gatemem(tmp_path), tmp_path / "out")
    assert sorted(map(str, account.notes)) == [
        "changed: all questions: GateMem names no evidence; imported without",
        "changed: c4: '77' left out of leak_targets: the question says so itself",
        "skipped: c2 leak_targets 'Fri.*day': a pattern whose wordings cannot be listed",
        "skipped: c3: leak_targets: the question says all of them itself, so that saying them leaks nothing",
        "skipped: c5: as_of_turn_id: 't9' is no turn of the episode",
    ]


def test_a_gatemem_episode_without_times_keeps_its_order(tmp_path: Path) -> None:
    bare = episode()
    for turn in bare["turns"]:
        del turn["timestamp"]
    account = import_gatemem(gatemem(tmp_path, [bare]), tmp_path / "out")
    assert any("ep1: has no times" in str(note) for note in account.notes)
    assert validate(tmp_path / "out").errors == ()


@pytest.mark.parametrize(
    ("change", "error_text"),
    [
        (
            lambda record: record["turns"][1].update(speaker={"principal_id": "zoe"}),
            "turns.1.speaker.principal_id: 'zoe' is",
        ),
        (lambda record: record["turns"][1].pop("timestamp"), "turns.1.timestamp: None; a time like"),
        (lambda record: record["turns"][3].update(timestamp="2026-05-11T09:00"), "turns.3.timestamp: lies before"),
        (lambda record: record["turns"][1].update(turn_id="t1"), "turns: two turns have the same turn_id"),
        (lambda record: record.pop("entities"), "entities.principals: missing"),
        (lambda record: record.pop("episode_id"), "episode_id: missing"),
    ],
)
def test_an_episode_that_is_not_gatemems_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], error_text: str
) -> None:
    record = episode()
    change(record)
    with pytest.raises(DatasetError) as caught:
        import_gatemem(gatemem(tmp_path, [record]), tmp_path / "out")
    assert f"episodes.jsonl:1: {error_text}" in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "listed"),
    [
        ("at noon", ("at noon",)),
        ("beta (raw)", ("beta (raw)",)),
        ("5 (?:mg|grams?) now", ("5 mg now", "5 grams now", "5 gram now")),
        ("no[- ]show|gone", ("no-show", "no show", "gone")),
        (r"with Dr\. Orr", ("with Dr. Orr",)),
        ("at .* noon|by noon", ("by noon",)),
        (r"(?<!\d)58(?!\d)", ()),
        ("(?:half", ("half",)),
        ("half)?", ()),
    ],
)
def test_patterns_are_listed_as_wordings(pattern: str, listed: tuple[str, ...]) -> None:
    assert wordings(pattern) == listed


# ------------------------------------------------------------------ PersonaMem-v2


def row(**changed: str) -> dict[str, str]:
    return {
        "persona_id": "7",
        "chat_history_32k_link": "data/chat_history_32k/persona7.json",
        "user_query": repr({"role": "user", "content": "Where shall I eat?"}),
        "correct_answer": "Try the quiet\ntea house.",
        "incorrect_answers": json.dumps(["Try the arena.", "Try the club.", "Try the drive-in."]),
        "related_conversation_snippet": json.dumps([{"role": "user", "content": "message 20"}]),
        "pref_type": "neutral",
        "preference": "likes it quiet",
        **changed,
    }


def personamem(root: Path, rows: Rows, history: Any = None) -> Path:
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n}"} for n in range(24)]
    default_history = {"chat_history": [{"role": "system", "content": "A person."}, *messages]}
    write(root / "data" / "chat_history_32k" / "persona7.json", default_history if history is None else history)
    path = root / "benchmark" / "text" / "benchmark.csv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def test_personamem_replies_become_options(tmp_path: Path) -> None:
    import_personamem(personamem(tmp_path, [row(), row(user_query="And when?")]), tmp_path / "out")
    assert validate(tmp_path / "out").errors == ()
    with open_dataset(tmp_path / "out") as dataset:
        first, second = dataset.instances
        sessions = list(dataset.corpus.sessions())
    assert isinstance(first.gold, ClozeGold)
    assert first.gold.answer_text == "Try the quiet tea house."
    assert first.gold.options["ABCD".index(first.gold.answer_letter)] == first.gold.answer_text
    assert len(first.gold.options) == 4
    assert first.query.startswith("Where shall I eat?\nWhich of these replies suits me best?")
    assert "likes it quiet" not in json.dumps(dict(first.metadata))
    assert second.ego_agent_id == first.ego_agent_id
    assert [len(session.turns) for session in sessions] == [20, 4]
    assert first.evidence_turn_ids == (sessions[1].turns[0].turn_id,)


def test_personamem_notes_what_it_omits(tmp_path: Path) -> None:
    rows = [
        row(related_conversation_snippet="[{'role': 'user', 'content': 'never said'}]"),
        row(incorrect_answers="[]"),
        row(incorrect_answers='["Try the quiet tea house."]'),
        row(user_query="{'role': 'user'}"),
    ]
    account = import_personamem(personamem(tmp_path, rows), tmp_path / "out")
    notes = [f"{note.kind}: {note.reason}" for note in account.notes]
    assert notes == [
        "skipped: the system's: no person says it",
        "changed: its snippet is not in the history as it stands; imported without evidence",
        "skipped: incorrect_answers: a list of texts is expected",
        "skipped: incorrect_answers: two of the replies are the same",
        "skipped: user_query.content: a text is expected",
    ]


@pytest.mark.parametrize(
    ("changed", "error_text"),
    [
        ({"chat_history_32k_link": "data/gone.json"}, "'data/gone.json' is in none of the"),
        ({"chat_history_32k_link": "../secret.json"}, "an address below the data set's folder is expected"),
        ({"chat_history_32k_link": "/etc/hosts"}, "an address below the data set's folder is expected"),
        ({"persona_id": ""}, "persona_id: missing"),
    ],
)
def test_an_unusable_table_is_refused(tmp_path: Path, changed: dict[str, str], error_text: str) -> None:
    with pytest.raises(DatasetError, match=r"benchmark\.csv:") as caught:
        import_personamem(personamem(tmp_path, [row(**changed)]), tmp_path / "out")
    assert error_text in str(caught.value)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ the commands


@pytest.mark.parametrize("name", ["beam", "gatemem", "personamem"])
@pytest.mark.parametrize("broken", ["missing", "not JSON", "taken"])
def test_a_failed_import_gives_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    broken: str,
) -> None:
    source = {"beam": beam, "gatemem": gatemem, "personamem": lambda root: personamem(root, [row()])}[name](tmp_path)
    files = {"beam": "1/chat.json", "gatemem": "episodes.jsonl"}
    spoiled = source / files[name] if name in files else tmp_path / "data/chat_history_32k/persona7.json"
    if broken == "missing":
        source = tmp_path / "nowhere"
    elif broken == "not JSON":
        spoiled.write_text("{")
    else:
        write(tmp_path / "out" / "mine.txt", "keep me")
    monkeypatch.setattr(sys, "argv", ["memarena dataset", "import", name, str(source), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        run_guarded(app)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, len(err.splitlines())) == (2, "", 1)
    expected = {"missing": "nowhere", "not JSON": "not JSON", "taken": "exists and is not empty"}
    assert expected[broken] in err
