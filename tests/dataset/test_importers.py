"""Tests the importers of LoCoMo (its real file) and LongMemEval (a small file in its form): no silent loss."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import AbstainGold, TextGold
from memarena_dataset.importers.json_reading import json_events, parse_json
from memarena_dataset.importers.locomo import import_locomo
from memarena_dataset.importers.longmemeval import import_longmemeval
from memarena_dataset.importers.text import clean, slug
from memarena_dataset.importers.times import turn_times
from memarena_dataset.importers.typed_answers import plain_date, plain_number
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_dataset.stats import stats
from memarena_dataset.validate import Profile, validate
from memarena_dataset.values import AmountValue, DateValue

SIX_QUESTIONS = Path(__file__).resolve().parents[1] / "data" / "longmemeval" / "six_questions.json"

# ------------------------------------------------------------------ LoCoMo, the real file


@pytest.fixture(scope="module")
def locomo(locomo_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("imported") / "locomo"
    import_locomo(locomo_file, out)
    return out


def test_locomo_is_imported_completely(locomo: Path) -> None:
    summary = stats(locomo)
    assert (summary.agents, summary.sessions, summary.turns, summary.instances) == (10, 128, 2760, 999)
    result = validate(locomo, Profile.STRUCTURAL)
    assert (result.errors, {warning.check for warning in result.warnings}) == ((), {"text-gold"})


def test_locomo_questions_go_to_the_families_of_their_categories(locomo: Path, locomo_file: Path) -> None:
    categories = Counter(
        question["category"] for talk in json.loads(locomo_file.read_text()) for question in talk["qa"]
    )
    per_family = stats(locomo).instances_per_family
    assert per_family["d3_confabulation"] == categories[5]
    assert per_family["d8_temporal"] == categories[2]
    assert per_family["d7_qa"] == categories[1] + categories[3] + categories[4]


def test_locomo_dates_are_the_real_ones(locomo: Path) -> None:
    with open_dataset(locomo) as dataset:
        assert dataset.calendar_epoch == date(2022, 1, 21)
        first = dataset.session("conv-26_session_01")
        assert dataset.moment(first.start_time).isoformat() == "2023-05-08T13:56:00+00:00"
        after_midnight = dataset.session("conv-26_session_16")
        assert dataset.moment(after_midnight.start_time).isoformat() == "2023-09-13T00:09:00+00:00"
        assert all(dataset.question_day(instance) == dataset.day_count - 1 for instance in dataset.instances)
        assert dataset.moment(dataset.day_count - 1).date() == date(2024, 1, 12)


def test_locomo_turns_stay_within_their_session_and_day(locomo: Path) -> None:
    with open_dataset(locomo) as dataset:
        for session in dataset.corpus.sessions():
            times = [turn.timestamp for turn in session.turns]
            assert times == sorted(set(times))
            assert int(session.end_time) == session.day


def test_locomo_speakers_with_one_name_are_two_people(locomo: Path) -> None:
    with open_dataset(locomo) as dataset:
        johns = [agent_id for agent_id, agent in dataset.agents.items() if agent.name == "John"]
        assert johns == ["john_conv_41", "john_conv_43"]
        assert dataset.egos == ("caroline_conv_26", "joanna_conv_42", "john_conv_41", "jon_conv_30", "tim_conv_43")
        for instance in dataset.instances:
            assert instance.asker_agent_id == instance.ego_agent_id


def test_locomo_turns_are_imported_verbatim(locomo: Path, locomo_file: Path) -> None:
    with open_dataset(locomo) as dataset:
        for talk in json.loads(locomo_file.read_text()):
            for number in range(1, 36):
                for turn in talk["conversation"].get(f"session_{number}", ()):
                    session = dataset.session(f"{talk['sample_id']}_session_{number:02d}")
                    ours = next(t for t in session.turns if t.turn_id == f"{talk['sample_id']}_{turn['dia_id']}")
                    assert ours.text.startswith(turn["text"].strip())
                    assert ("[shares a photo: " + turn.get("blip_caption", "\0") in ours.text) == (
                        "blip_caption" in turn
                    )


def test_locomo_notes_what_was_changed_or_omitted(locomo: Path) -> None:
    notes = json.loads((locomo / "pipeline_report.json").read_text())["notes"]
    notes_by_kind = {(note["kind"], note["what"]) for note in notes}
    for what in ("conv-42_q059 evidence 'D10:19'", "conv-42_q089 evidence 'D'", "conv-43_q019 evidence 'D:11:26'"):
        assert ("skipped", what) in notes_by_kind
    assert sum(note["what"].startswith("conv-26 session_") for note in notes) == 16
    changed = {note["what"]: note["reason"] for note in notes if note["kind"] == "changed"}
    assert "read as D8:6 and D9:17" in changed["conv-26_q038"]
    assert sum("no evidence in the file" in reason for reason in changed.values()) == 2
    assert sum("adversarial, yet it states the answer 'No'" in reason for reason in changed.values()) == 2
    assert len(notes) == 24


def test_locomo_gold_is_typed_where_it_is_safe(locomo: Path) -> None:
    with open_dataset(locomo) as dataset:
        by_query = {instance.query: instance for instance in dataset.instances}
        support_group = by_query["When did Caroline go to the LGBTQ support group?"]
        assert support_group.gold.values == (DateValue(date="2023-05-07"),)
        assert by_query["How many children does Melanie have?"].gold.values == (AmountValue(amount=3.0),)
        assert by_query["When did Melanie run a charity race?"].gold.values == ()
        fooled = by_query["Is Oscar Melanie's pet?"]
        assert fooled.gold == AbstainGold(adversarial_answer="Yes")
        assert fooled.metadata["stated_answer"] == "No"
        two_turns = by_query["What did Melanie paint recently?"]
        assert two_turns.evidence_turn_ids == ("conv-26_D8:6", "conv-26_D9:17")


def test_locomo_is_imported_the_same_each_time(locomo_file: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_locomo(locomo_file, tmp_path / name)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) == 8
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


# ------------------------------------------------------------------ LoCoMo, its form


def conversation(**changed: Any) -> dict[str, Any]:
    talk = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I got a kite."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "", "blip_caption": "a red kite"},
        ],
        "session_1_date_time": "11:58 pm on 3 May, 2023",
    }
    questions = [{"question": "What did Ann get?", "answer": "a kite", "evidence": ["D1:1"], "category": 4}]
    return {"sample_id": "c1", "conversation": talk, "qa": questions} | changed


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def notes_of(tmp_path: Path, value: Any) -> list[str]:
    account = import_locomo(write(tmp_path / "in.json", value), tmp_path / "out")
    return [str(note) for note in account.notes]


def test_a_session_before_midnight_is_compressed_into_its_day(tmp_path: Path) -> None:
    talk = conversation()
    talk["conversation"]["session_1"] = [
        {"speaker": "Ann", "dia_id": f"D1:{n}", "text": "word " * 100} for n in range(1, 30)
    ]
    assert notes_of(tmp_path, [talk]) == []
    assert validate(tmp_path / "out").errors == ()


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ({"category": 9}, "category: 9; 1 to 5 is expected"),
        ({"answer": None}, "answer: missing"),
        ({"question": " "}, "question: missing; a text is expected"),
    ],
)
def test_a_question_that_cannot_be_used_is_named(tmp_path: Path, question: dict[str, Any], note: str) -> None:
    talk = conversation()
    talk["qa"].append({**talk["qa"][0], **question})
    assert notes_of(tmp_path, [talk]) == [f"skipped: c1_q002: {note}"]
    report = json.loads((tmp_path / "out" / "pipeline_report.json").read_text())
    assert report["counts"]["questions in the file"] == 2
    assert report["counts"]["questions imported"] == 1


@pytest.mark.parametrize(
    ("evidence", "turns", "notes"),
    [
        (["D1:1; D1:2"], ("c1_D1:1", "c1_D1:2"), 1),
        (["D1:01"], ("c1_D1:1",), 0),
        (["D1:1", "D1:1"], ("c1_D1:1",), 0),
        (["D", "D1:2"], ("c1_D1:2",), 1),
        (["D9:1"], (), 2),
        ([], (), 1),
        (None, (), 1),
    ],
)
def test_evidence_is_read_as_far_as_it_is_unambiguous(
    tmp_path: Path, evidence: Any, turns: tuple[str, ...], notes: int
) -> None:
    talk = conversation()
    talk["qa"][0]["evidence"] = evidence
    assert len(notes_of(tmp_path, [talk])) == notes
    with open_dataset(tmp_path / "out") as dataset:
        assert dataset.instances[0].evidence_turn_ids == turns


def test_turns_and_sessions_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    talk = conversation()
    talk["conversation"]["session_1"] += [
        {"speaker": "Cid", "dia_id": "D1:3", "text": "Who am I?"},
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Again."},
    ]
    talk["conversation"]["session_2"] = []
    talk["conversation"]["session_3"] = [{"speaker": "Ann", "dia_id": "D3:1", "text": "When was that?"}]
    assert notes_of(tmp_path, talk) == [
        "skipped: c1 session_2: holds no turns",
        "skipped: c1 session_3: no session date, so its day is unknown",
        "skipped: c1_D1:3: spoken by 'Cid', who is not one of the two speakers",
        "skipped: c1_D1:1: the dia_id occurs a second time",
    ]


def spoiled(change: Callable[[dict[str, Any]], object]) -> list[dict[str, Any]]:
    talk = conversation()
    change(talk)
    return [talk]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "not JSON"),
        ("[]", "file: a list of conversations is expected"),
        ("7", "file: a list of conversations is expected"),
        ("[7]", "0: an object with sample_id, conversation and qa is expected"),
        (spoiled(lambda t: t.pop("sample_id")), "0.sample_id: missing"),
        (spoiled(lambda t: t.pop("qa")), "0.qa: missing"),
        (spoiled(lambda t: t["conversation"].pop("speaker_b")), "0.conversation: two different names"),
        (spoiled(lambda t: t["conversation"].pop("session_1")), "0.conversation: no session_N"),
        (
            spoiled(lambda t: t["conversation"].update(session_1_date_time="noon")),
            "0.conversation.session_1_date_time: 'noon'; a time like",
        ),
        (
            spoiled(lambda t: t["conversation"]["session_1"][1].pop("dia_id")),
            "0.conversation.session_1.1.dia_id: missing",
        ),
        ([conversation(), conversation()], "sample_id: two conversations have the same one"),
    ],
)
def test_a_file_that_is_not_locomo_is_refused(tmp_path: Path, value: Any, message: str) -> None:
    source = tmp_path / "in.json"
    source.write_text(value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(DatasetError) as caught:
        import_locomo(source, tmp_path / "out")
    assert message in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json"]


@pytest.mark.parametrize("text", ["[" * 20_000, "[" * 20_000 + "]" * 20_000])
@pytest.mark.parametrize("importer", [import_locomo, import_longmemeval])
def test_json_that_is_nested_too_deeply_is_refused(
    tmp_path: Path, importer: Callable[[Path, Path], Any], text: str
) -> None:
    (tmp_path / "in.json").write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=r"in\.json: JSON nested too deeply"):
            importer(tmp_path / "in.json", tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 20_000 + b"]" * 20_000, "JSON nested too deeply"),
        (b"[" * 101 + b"]" * 101, "JSON nested too deeply"),
        (b"1" * 5001, "not JSON"),
        (b'"\xe9"', "not JSON"),
    ],
)
def test_importers_name_the_position_of_invalid_json(data: bytes, message: str) -> None:
    with pytest.raises(DatasetError, match=f"file:3: {message}"):
        parse_json(data, "file:3")
    with pytest.raises(DatasetError, match=f"file: {message}"):
        list(json_events(io.BytesIO(data), "file"))


@pytest.mark.parametrize("importer", [import_locomo, import_longmemeval])
def test_nothing_is_ever_overwritten(tmp_path: Path, importer: Callable[[Path, Path], Any]) -> None:
    source = write(tmp_path / "in.json", [conversation()])
    existing = tmp_path / "taken"
    existing.mkdir()
    (existing / "mine.txt").write_text("keep me")
    with pytest.raises(DatasetError, match="exists and is not empty"):
        importer(source, existing)
    with pytest.raises(DatasetError, match="exists and is not a folder"):
        importer(source, source)
    assert [path.name for path in existing.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("importer", [import_locomo, import_longmemeval])
def test_a_missing_file_is_named(tmp_path: Path, importer: Callable[[Path, Path], Any]) -> None:
    with pytest.raises(DatasetError, match=r"nowhere.json: cannot be read: No such file"):
        importer(tmp_path / "nowhere.json", tmp_path / "out")


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    import_locomo(write(tmp_path / "in.json", [conversation()]), tmp_path / "out")
    assert stats(tmp_path / "out").sessions == 1


# ------------------------------------------------------------------ LongMemEval


@pytest.fixture
def longmemeval(tmp_path: Path) -> Path:
    out = tmp_path / "longmemeval"
    import_longmemeval(SIX_QUESTIONS, out)
    return out


def test_each_longmemeval_question_has_its_own_namespace(longmemeval: Path) -> None:
    result = validate(longmemeval, Profile.STRUCTURAL)
    assert (result.errors, {warning.check for warning in result.warnings}) == ((), {"text-gold"})
    with open_dataset(longmemeval) as dataset:
        assert dataset.calendar_epoch == date(2024, 1, 5)
        assert dataset.day_count == 57
        assert len(dataset.egos) == len(dataset.instances) == 5
        ego = "user_a1c0ffee"
        own = [session for day in range(dataset.day_count) for session in dataset.day_sessions(ego, day)]
        assert [session.metadata["source_id"] for session in own] == ["hs_walk", "hs_attic", "hs_soup"]
        assert [turn.speaker_id for turn in own[1].turns] == [ego, f"assistant_{ego}", ego]
        assert dataset.agents[ego].name == "User"


def test_longmemeval_types_become_families(longmemeval: Path) -> None:
    with open_dataset(longmemeval) as dataset:
        family_and_gold = {instance.instance_id: (instance.family, instance.gold) for instance in dataset.instances}
    assert family_and_gold["a1c0ffee"] == (Family.QA, TextGold(answers=("a zither",)))
    date_gold = TextGold(answers=("9 January 2024",), values=(DateValue(date="2024-01-09"),))
    assert family_and_gold["b2beef01"] == (Family.TEMPORAL, date_gold)
    assert family_and_gold["c3d00d02"] == (Family.QA, TextGold(answers=("7",), values=(AmountValue(amount=7.0),)))
    assert family_and_gold["d4face03_abs"] == (Family.CONFABULATION, AbstainGold())
    assert family_and_gold["e5add004"][0] is Family.QA


def test_longmemeval_questions_are_asked_on_their_day(longmemeval: Path) -> None:
    with open_dataset(longmemeval) as dataset:
        moments = {row.instance_id: dataset.moment(row.query_timestamp or -1).isoformat() for row in dataset.instances}
        assert moments["a1c0ffee"] == "2024-02-03T09:15:00+00:00"
        assert moments["c3d00d02"] == "2024-03-01T10:00:00+00:00"


def test_longmemeval_evidence_is_sessions_and_marked_turns(longmemeval: Path) -> None:
    with open_dataset(longmemeval) as dataset:
        by_id = {instance.instance_id: instance for instance in dataset.instances}
        zither = by_id["a1c0ffee"]
        assert zither.evidence_session_ids == ("user_a1c0ffee_0001",)
        assert zither.evidence_turn_ids == ("user_a1c0ffee_0001_t000",)
        assert len(by_id["c3d00d02"].evidence_session_ids) == 2
        assert by_id["d4face03_abs"].evidence_session_ids == ()


def test_longmemeval_notes_what_was_omitted(longmemeval: Path) -> None:
    report = json.loads((longmemeval / "pipeline_report.json").read_text())
    note_lines = "\n".join(f"{note['kind']}: {note['what']}: {note['reason']}" for note in report["notes"])
    assert "skipped: f6bad005: question_type: 'riddle'" in note_lines
    assert "changed: e5add004 haystack_sessions.1: session 'hs_books' is in the haystack twice" in note_lines
    assert "skipped: e5add004 haystack_sessions.1.1: not a turn with role" in note_lines
    assert "skipped: e5add004 haystack_sessions.2: holds no turns" in note_lines
    assert "skipped: e5add004 evidence 'hs_gone': no such session" in note_lines
    assert "changed: d4face03_abs: has no evidence" in note_lines
    assert len(report["notes"]) == 6
    assert report["counts"]["questions in the file"] == 6
    assert report["counts"]["questions imported"] == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].pop("question"), "0.question: missing"),
        (lambda rows: rows[1].pop("haystack_dates"), "1.haystack_dates: missing"),
        (lambda rows: rows[0]["haystack_dates"].pop(), "0.haystack_sessions: ids, dates and sessions differ in number"),
        (lambda rows: rows[0].update(question_date="soon"), "question_date: 'soon'; a date like"),
        (lambda rows: rows[1].update(question_id="a1c0ffee"), "1.question_id: 'a1c0ffee' occurs a second time"),
        (lambda rows: rows.__setitem__(slice(None), []), "file: a list of questions with haystack_dates"),
        (lambda rows: rows.insert(0, 7), "0: an object is expected"),
    ],
)
def test_a_file_that_is_not_longmemeval_is_refused(
    tmp_path: Path, change: Callable[[list[Any]], object], message: str
) -> None:
    rows = json.loads(SIX_QUESTIONS.read_text())
    change(rows)
    with pytest.raises(DatasetError) as caught:
        import_longmemeval(write(tmp_path / "in.json", rows), tmp_path / "out")
    assert message in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json"]


@pytest.mark.parametrize("cut", [1, 300, -40])
def test_a_truncated_longmemeval_file_is_refused(tmp_path: Path, cut: int) -> None:
    (tmp_path / "in.json").write_bytes(SIX_QUESTIONS.read_bytes()[:cut])
    with pytest.raises(DatasetError, match="not JSON"):
        import_longmemeval(tmp_path / "in.json", tmp_path / "out")


def test_longmemeval_is_read_as_a_stream(tmp_path: Path) -> None:
    """Thirty questions of 400 KB each: memory holds one or two of them, not all 12 MB."""
    base = json.loads(SIX_QUESTIONS.read_text())[0]
    base["haystack_sessions"][0][0]["content"] = "word " * 80_000
    rows = [{**base, "question_id": f"q{number}"} for number in range(30)]
    source = write(tmp_path / "in.json", rows)
    del rows
    tracemalloc.start()
    try:
        import_longmemeval(source, tmp_path / "out")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


# ------------------------------------------------------------------ what importers share


@pytest.mark.parametrize(
    ("text", "iso_date"),
    [
        ("7 May 2023", "2023-05-07"),
        ("19 January, 2023", "2023-01-19"),
        (" 23 July, 2023", "2023-07-23"),
        ("23 March, 2022.", "2022-03-23"),
        ("February 24, 2023", "2023-02-24"),
        ("May 3rd 2023", "2023-05-03"),
        ("June 2023", "2023-06"),
        ("April.2023", "2023-04"),
        ("2022", "2022"),
        ("In 2013", "2013"),
    ],
)
def test_plain_dates_are_typed(text: str, iso_date: str) -> None:
    assert plain_date(text) == DateValue(date=iso_date)


@pytest.mark.parametrize(
    "text",
    ["The week before 9 June 2023", "13 August", "4 years", "summer 2023", "45 May 2023", ""],
)
def test_dates_that_are_not_plain_stay_text(text: str) -> None:
    assert plain_date(text) is None


@pytest.mark.parametrize(
    ("text", "amount"), [("3", 3.0), ("two", 2.0), ("Nine.", 9.0), ("twice", None), ("3 years", None), ("Max", None)]
)
def test_plain_numbers_are_typed(text: str, amount: float | None) -> None:
    assert plain_number(text) == (None if amount is None else AmountValue(amount=amount))


MINUTES = st.integers(0, 400 * 1440 - 1).map(lambda minute: round(minute / 1440, 6))


@given(MINUTES, st.lists(st.text(max_size=100), min_size=1, max_size=20))
def test_turns_follow_each_other_within_their_day(start: float, texts: list[str]) -> None:
    times = turn_times(start, texts)
    assert len(times) == len(texts) + 1
    assert times[0] == start
    assert times == sorted(times)
    assert int(times[-1]) == int(start)


def test_characters_that_the_contract_forbids_are_removed() -> None:
    assert clean("a\0b\ud83dc") == "abc"
    assert slug("Ann-Marie O'Neil (2)") == "ann_marie_o_neil_2"
