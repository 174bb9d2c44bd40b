"""Tests the blind reading: the sheet hides the source, the key has it; marks are read strictly and weighted."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from memarena_dataset_quality.blind_reading.marks import report, weighted_kappa
from memarena_dataset_quality.blind_reading.sheet import MARKS, SHEET
from memarena_dataset_quality.command import reading_sheet
from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.world import read_world

SESSIONS = 3


@pytest.fixture(scope="module")
def locomo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of LoCoMo's form: one talk of four sessions, the last of which is all pictures."""
    talk: dict[str, object] = {"speaker_a": "Caroline", "speaker_b": "Melanie"}
    for number in range(1, 5):
        pictures = number == 4
        talk[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        talk[f"session_{number}"] = [
            {
                "speaker": ("Caroline", "Melanie")[index % 2],
                "dia_id": f"D{number}:{index + 1}",
                "text": f"Hey Mel, it\u2019s me, Caroline \U0001f60a \u2014 talk {number}",
                **({"img_url": ["x"], "blip_caption": "a photo of a dog"} if pictures or index == 0 else {}),
            }
            for index in range(6)
        ]
    path = tmp_path_factory.mktemp("locomo") / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "t", "conversation": talk, "qa": []}]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def sheet_and_key(small_world: Path, locomo: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A sheet of three sessions of each source, and its key."""
    folder = tmp_path_factory.mktemp("reading")
    reading_sheet(small_world, locomo=locomo, out=folder / "sheet", key=folder / "key.json", sessions=SESSIONS, seed=5)
    return folder / "sheet", folder / "key.json"


def test_a_word_that_begins_a_name_is_no_short_name_if_it_is_one_of_the_language(
    small_world: Path, locomo: Path, tmp_path: Path
) -> None:
    """Thea's sentences keep their "The"."""
    talk = json.loads(
        locomo.read_text(encoding="utf-8").replace("Melanie", "Thea").replace("Hey Mel", "The dog, the cat")
    )
    (tmp_path / "locomo.json").write_text(json.dumps(talk), encoding="utf-8")
    reading_sheet(
        small_world, locomo=tmp_path / "locomo.json", out=tmp_path / "s", key=tmp_path / "k.json", sessions=1, seed=5
    )
    text = (tmp_path / "s" / SHEET).read_text(encoding="utf-8")
    assert "The dog, the cat" in text
    assert "Thea" not in text


def test_the_sheet_holds_both_sources_and_tells_neither(sheet_and_key: tuple[Path, Path], small_world: Path) -> None:
    """No name of either data set, no session id, no picture, no typography of one source alone."""
    sheet, key = sheet_and_key
    assert sorted(path.name for path in sheet.iterdir()) == [MARKS, SHEET]
    items = json.loads(key.read_text())["items"]
    assert Counter(item["source"] for item in items) == {"world": SESSIONS, "locomo": SESSIONS}
    text = (sheet / SHEET).read_text(encoding="utf-8")
    talk = text[text.index("## 1\n") :]
    assert len(re.findall(r"^## \d+$", talk, re.MULTILINE)) == 2 * SESSIONS
    world = read_world(small_world)
    names = {part for agent, name in world.names.items() if not agent.startswith("assistant_") for part in (name,)}
    words = set(re.findall(r"\w+", talk))
    assert words & {*(name.split()[0] for name in names), "Caroline", "Melanie", "Mel"} == set()
    own_words = {word for session in world.sessions for turn in session.turns for word in re.findall(r"\w+", turn.text)}
    assert "photo" not in words - own_words, "pictures of LoCoMo are not in the sheet"
    assert not any(item["session_id"] in text for item in items)
    assert talk.isascii() or not set(talk) & set("\u2019\u2014\U0001f60a")
    assert "talk 4" not in talk


def test_turns_are_those_of_the_session_the_key_names(sheet_and_key: tuple[Path, Path], small_world: Path) -> None:
    """As many, in their order, by the same number of people."""
    sheet, key = sheet_and_key
    chapters = re.split(r"^## \d+$", (sheet / SHEET).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    sessions = {session.session_id: session for session in read_world(small_world).sessions}
    for item, chapter in zip(json.loads(key.read_text())["items"], chapters, strict=True):
        if item["source"] == "world":
            turns = sessions[item["session_id"]].turns
            speakers = re.findall(r"^\*\*(\w+):\*\*", chapter, re.MULTILINE)
            assert len(speakers) == len(turns)
            pairs = {(new, turn.speaker_id) for new, turn in zip(speakers, turns, strict=True)}
            assert len(pairs) == len({turn.speaker_id for turn in turns}) == len(set(speakers))


def test_the_same_seed_gives_the_same_sheet(
    sheet_and_key: tuple[Path, Path], small_world: Path, locomo: Path, tmp_path: Path
) -> None:
    """And another seed another one."""
    for name, seed in (("again", 5), ("other", 6)):
        out, key = tmp_path / name, tmp_path / f"{name}.json"
        reading_sheet(small_world, locomo=locomo, out=out, key=key, sessions=SESSIONS, seed=seed)
        same = (out / SHEET).read_bytes() == (sheet_and_key[0] / SHEET).read_bytes()
        assert same is (seed == 5)


def test_the_key_stays_out_of_what_readers_get(small_world: Path, locomo: Path, tmp_path: Path) -> None:
    """A key inside the folder, a folder that is there, and too many sessions are refused before anything is written."""
    out = tmp_path / "sheet"
    for key, sessions, says in ((out / "key.json", 3, "--key"), (tmp_path / "k", 99999, "--sessions")):
        with pytest.raises(QualityError, match=says):
            reading_sheet(small_world, locomo=locomo, out=out, key=key, sessions=sessions, seed=1)
        assert not out.exists()
    out.mkdir()
    with pytest.raises(QualityError, match="--out"):
        reading_sheet(small_world, locomo=locomo, out=out, key=tmp_path / "k", sessions=3, seed=1)


def _marked(folder: Path, name: str, marks: dict[int, object]) -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("item", "mark"), *marks.items()])
    return path


def test_marks_of_two_readers_are_weighed_by_source(sheet_and_key: tuple[Path, Path], tmp_path: Path) -> None:
    """Means by source, the difference, and the verdict on both bars."""
    key = sheet_and_key[1]
    ours = {item["item"]: item["source"] == "world" for item in json.loads(key.read_text())["items"]}
    good = [_marked(tmp_path, f"good{n}.csv", {i: 5 - n if own else 5 for i, own in ours.items()}) for n in (0, 1)]
    lines, is_met = report(key, good)
    assert is_met
    assert "4.50 [4.50, 4.50]" in lines[2]
    assert "5.00 [5.00, 5.00]" in lines[2]
    assert any(line.startswith("difference of the means: -0.50") for line in lines)
    poor = [_marked(tmp_path, f"poor{n}.csv", {i: 4 - n if own else 5 for i, own in ours.items()}) for n in (0, 1)]
    lines, is_met = report(key, poor)
    assert not is_met
    assert sum(line.endswith("MISSED") for line in lines) == 2


def test_kappa_is_one_for_agreement_and_none_where_no_mark_differs() -> None:
    """A worked case: chance is computed over all pairs of marks."""
    assert weighted_kappa([(1, 1), (3, 3), (5, 5)]) == 1.0
    assert weighted_kappa([(4, 4), (4, 4)]) is None
    assert weighted_kappa([(1, 2), (2, 1)]) == pytest.approx(1 - 1 / 0.5)


def test_marks_that_cannot_be_used_are_named(sheet_and_key: tuple[Path, Path], tmp_path: Path) -> None:
    """File, line and what was expected."""
    key, whole = sheet_and_key[1], dict.fromkeys(range(1, 2 * SESSIONS + 1), 4)
    good = _marked(tmp_path, "good.csv", {**whole})
    for name, marks, says in (
        ("none.csv", {**whole, 3: ""}, r"none.csv:4: mark '': a whole number from 1 to 5"),
        ("six.csv", {**whole, 1: 6}, "six.csv:2: mark '6'"),
        ("few.csv", {1: 4}, "few.csv: item 2 has no mark"),
        ("more.csv", {**whole, 99: 4}, "item 99"),
    ):
        with pytest.raises(QualityError, match=says):
            report(key, [good, _marked(tmp_path, name, dict(marks))])
    with pytest.raises(QualityError, match="2 or more readers"):
        report(key, [good])
    with pytest.raises(QualityError, match="--key"):
        report(tmp_path / "none.json", [good, good])
