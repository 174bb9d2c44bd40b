"""Tests the wording of generated talk by small laws of written English, over worlds of several seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena_masim.config import preset

from ...support.small_worlds import WorldOf

SEEDS = (114, 115, 116)
LAWS = {
    "a mark of the notation": r"[{}\[\]|<>$@^_]",
    "a space before punctuation": r"\s[,.;:?!]",
    "two marks in a row": r"[,;:][,;:.?!]|\.\.|[?!][.,;]|\.[,;:?!]",
    "a sentence that starts small": r"(^|[.?!] )\"?[a-z]",
    "a word twice": r"(?i)\b([a-z']+) \1\b",
    "a before a vowel": r"\b[Aa] (?=[aeio])(?!(?:euro|one|once)\w*)",
    "an before a consonant": r"\b[Aa]n (?=[bcdfgjklmnpqrstvwxyz])",
    "a doubled possessive": r"'s's",
    "two spaces": r"  ",
}


@pytest.fixture(scope="module")
def texts(small_world: Path, world_of: WorldOf) -> list[str]:
    """All turns of some worlds."""
    worlds = (small_world, *(world_of(preset("tiny", seed)) for seed in SEEDS))
    return [text for world in worlds for text in turns(world)]


def turns(world: Path) -> Iterator[str]:
    for line in (world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines():
        yield from (turn["text"] for turn in json.loads(line)["turns"])


@pytest.mark.parametrize("law", LAWS)
def test_turns_keep_the_law(law: str, texts: list[str]) -> None:
    """No turn of any world breaks it."""
    pattern = re.compile(LAWS[law])
    broken = [text[max(0, match.start() - 40) : match.end() + 20] for text in texts for match in pattern.finditer(text)]
    assert broken == []


def test_the_laws_find_what_they_are_for() -> None:
    """Each law is broken by a text that breaks it."""
    faulty = {
        "a mark of the notation": "Say $you.",
        "a space before punctuation": "Well , yes.",
        "two marks in a row": "Well,. yes",
        "a sentence that starts small": "Yes. no.",
        "a word twice": "Not not now.",
        "a before a vowel": "Such a apple.",
        "an before a consonant": "Such an dog.",
        "a doubled possessive": "Maya's's dog.",
        "two spaces": "Well  then.",
    }
    assert {law for law, text in faulty.items() if re.search(LAWS[law], text)} == set(LAWS)


def test_turns_end_like_sentences(texts: list[str]) -> None:
    """With a full stop, a question mark or an exclamation mark, perhaps in quotation marks."""
    assert [text for text in texts if not re.search(r"[.?!]\"?$", text)] == []


def test_few_turns_come_twice(small_world: Path) -> None:
    """Frames may come again; whole turns above twelve words seldom do."""
    long = [text for text in turns(small_world) if len(text.split()) > 12]
    assert len(set(long)) > 0.9 * len(long)


def test_people_are_spoken_to_by_name(small_world: Path) -> None:
    """The first turn of a conversation names the other one."""
    lines = (small_world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines()
    names = {
        row["agent_id"]: row["persona"]["name"].split()[0]
        for row in map(json.loads, (small_world / "agents_personas.jsonl").read_text(encoding="utf-8").splitlines())
    }
    for session in map(json.loads, lines):
        if len(session["participants"]) == 2:
            first = session["turns"][0]
            assert names[first["listener_id"]] in first["text"]
