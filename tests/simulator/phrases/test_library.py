"""Tests the banks as material: two halves that share no sentence, every rule can be reached, everything expands.

A *bank* is a file of grammar rules from which texts are drawn. Its lines are divided into two halves:
worlds of one half serve tuning, the other half is held out for measuring.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena_masim.config import preset, sized
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.output.generate import generate
from memarena_masim.pack import Half, PackHalf
from memarena_masim.phrases.grammar import LITERAL, SPLIT_FROM, Bank, Node, Scope, Sequence_, Voice, phrase, wordings
from memarena_masim.phrases.library import library, scene_files
from memarena_masim.phrases.scenes import WEEKDAYS, Scene, read_topic
from memarena_masim.questions.question_bank import question_bank
from memarena_masim.realization import turn
from memarena_masim.rng import Stream

HALVES: tuple[Half, ...] = ("tuning", "held-out", "all")


def lines(bank: Bank, rule: str) -> list[str]:
    return [repr(_plain(alternative)) for alternative in bank.rules[rule].alternatives]


def _plain(sequence: tuple[Node, ...]) -> list[object]:
    return [(node.kind, node.text, [_plain(branch) for branch in node.branches], node.number) for node in sequence]


def check_split(tuning: Bank, held_out: Bank, whole: Bank) -> None:
    for name in whole.rules:
        tuning_lines, held_out_lines, all_lines = lines(tuning, name), lines(held_out, name), lines(whole, name)
        if len(all_lines) < SPLIT_FROM:
            assert tuning_lines == held_out_lines == all_lines
        else:
            assert not set(tuning_lines) & set(held_out_lines) or len(set(all_lines)) < len(all_lines), name
            assert sorted(tuning_lines + held_out_lines) == sorted(all_lines)
            assert abs(len(tuning_lines) - len(held_out_lines)) <= 1


def test_halves_share_no_sentence() -> None:
    """Lines round scenes, statements and question templates fall into two disjoint halves that make up the whole."""
    halves = [PackHalf(half=half) for half in HALVES]
    check_split(*(library(half).frame for half in halves))
    check_split(*(catalogue(half).bank for half in halves))
    check_split(*(question_bank(half).kinds for half in halves))


def test_halves_share_no_topic_and_have_enough_of_them() -> None:
    """A topic belongs to one half, and so do its scenes."""
    tuning, held_out, whole = (set(library(PackHalf(half=half)).topics) for half in HALVES)
    assert not tuning & held_out
    assert tuning | held_out == whole
    assert min(len(tuning), len(held_out)) >= 6
    assert not set(library(PackHalf(half="tuning")).scenes) & set(library(PackHalf(half="held-out")).scenes)


def test_lines_added_at_the_end_move_no_other(tmp_path: Path) -> None:
    """What was held out stays held out when a bank grows."""

    def half(count: int) -> set[str]:
        path = tmp_path / "grow.bank"
        path.write_text("== rule\n" + "\n".join(f"line {number}" for number in range(count)) + "\n")
        bank = Bank()
        bank.read(path)
        bank.link("held-out")
        return {phrase(line, Scope(Stream(0), Voice(), {})) for line in bank.rules["rule"].alternatives}

    assert half(6) < half(9)


@pytest.mark.parametrize("half", ["tuning", "held-out"])
def test_a_world_of_one_half_says_so(half: str, tmp_path: Path) -> None:
    """``--banks`` is recorded, and its worlds differ from those of all banks."""
    counts = generate(sized(preset("tiny", 214), banks=half), tmp_path / "out", workers=1)
    assert sum(counts.values()) > 20
    report = json.loads((tmp_path / "out" / "pipeline_report.json").read_text())
    assert report["configuration"]["banks"] == half
    assert report["configuration"]["name"] == "tiny"


def test_an_unknown_half_is_refused() -> None:
    """The flag is named."""
    with pytest.raises(MasimError, match="--banks"):
        sized(preset("tiny", 1), banks="mine")


def test_every_rule_is_within_reach() -> None:
    """No rule of the lines round scenes is dead: the engine names it, in full or by how it begins."""
    files = sorted(Path(str(turn.__file__)).parent.glob("*.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    quoted = set(re.findall(r"""["']([a-z.]+)["']""", source))
    prefixes = tuple(re.findall(r'f"([a-z.]+\.)\{', source))
    dead = {name for name in library().frame.rules if name not in quoted and not name.startswith(prefixes)}
    assert dead == set()


def _lines_of(scene: Scene) -> Iterator[Sequence_]:
    for lines in scene.lines.values():
        yield from lines
    for beat in scene.beats:
        yield from (sentence.words for turn in (beat.tell, beat.friend, beat.assistant) for sentence in turn)


def test_everything_that_scenes_can_say_expands() -> None:
    """Each line of each scene, without a mark of the notation left and without a slot that has no value."""
    for key, scene in library().scenes.items():
        stream = Stream(key)
        values = {name: draw(stream) for name, draw in scene.values.items()}
        values |= dict.fromkeys(scene.people, "Derek")
        for line in _lines_of(scene):
            text = phrase(line, Scope(stream, Voice(5), {"kin": "my sister", "you": "Maya", **values}))
            assert not set(text) & set("{}[]|<>$@^_*"), (key, text)


def test_specifics_of_scenes_come_from_their_values() -> None:
    """No line spells out a number, a weekday or a month: these are drawn for each teller."""
    spelled = re.compile(r"\d|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\b(?:January|February|October|December)\b")
    for key, scene in library().scenes.items():
        for line in _lines_of(scene):
            literals = [text for text in _literals(line) if spelled.search(text)]
            assert literals == [], key


def _literals(sequence: Sequence_) -> Iterator[str]:
    for node in sequence:
        yield node.text if node.kind == LITERAL else ""
        for branch in node.branches:
            yield from _literals(branch)


def test_no_scene_says_an_item_of_a_detail_with_a_weekday_put_in() -> None:
    """A detail about "Sunday breakfasts" is distinctive only if no scene comes to speak of "$day breakfasts"."""
    texts = [path.read_text(encoding="utf-8") for path in scene_files()]
    items = [item for attribute in catalogue().attributes.values() for item in attribute.items]
    weekday_items = [item for item in items if any(weekday in item for weekday in WEEKDAYS)]
    assert weekday_items
    for item in weekday_items:
        blank = next(item.replace(weekday, "$day") for weekday in WEEKDAYS if weekday in item)
        assert not [text for text in texts if blank in text], item


TOPIC = '[topic]\nhalf = "tuning"\nheads = ["hobby:diy"]\n'
SCENE = (
    TOPIC
    + """[tap]
tone = "trouble"
thing = "my tap"
ask = ["How?", "How?", "How?"]
again = ["And?", "And?"]
resume = ["Now.", "Now."]
also = ["Yes.", "Yes."]
[tap.values]
cost = "euros 5..9"
"""
    + "[[tap.beats]]\ntell = ['It cost $cost.']\nfriend = ['Oh.']\nassistant = ['Noted.']\n" * 6
)


def test_a_topic_is_read(tmp_path: Path) -> None:
    """The smallest that holds."""
    path = tmp_path / "odd.toml"
    path.write_text(SCENE)
    assert [scene.key for scene in read_topic(path).scenes] == ["odd.tap"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('half = "tuning"', 'half = "mine"', r"scenes/odd\.toml: topic\.half"),
        ('["hobby:diy"]', "[]", r"topic\.heads"),
        ("[tap.values]", "[tap.values", r"scenes/odd\.toml: "),
        ('tone = "trouble"', 'tone = "odd"', r"tap\.tone: one of trouble, joy, plain"),
        ('thing = "my tap"', 'thing = "tap"', r"tap\.thing"),
        ('ask = ["How?", "How?", "How?"]', "", r"tap\.ask: at least 3"),
        ("euros 5..9", "pounds 5..9", r"tap\.values\.cost: a list, weekday"),
        ("It cost $cost.", "It cost $price.", r"number 1, tell: \$price is no value"),
        ("It cost $cost.", "It cost $cost", r"a sentence ends with"),
        ("['It cost $cost.']", "['+It cost $cost.']", r"the first is not optional"),
        ("friend = ['Oh.']\n", "", r"number 1: exactly tell, friend, assistant"),
    ],
)
def test_a_faulty_topic_is_refused(old: str, new: str, fault: str, tmp_path: Path) -> None:
    """File and key of the fault are named."""
    assert old in SCENE
    path = tmp_path / "odd.toml"
    path.write_text(SCENE.replace(old, new, 1))
    with pytest.raises(MasimError, match=fault):
        read_topic(path)


def test_a_scene_with_too_few_beats_is_refused(tmp_path: Path) -> None:
    """A scene has two talks of three."""
    path = tmp_path / "odd.toml"
    path.write_text(SCENE[: SCENE.rindex("[[tap.beats]]")])
    with pytest.raises(MasimError, match=r"tap\.beats: 6 beats are expected"):
        read_topic(path)


def test_no_relative_of_the_teller_has_a_namesake_in_the_scene() -> None:
    """Who tells of an uncle's jumper is not also helped by "my uncle"."""
    for key, kin in library().kin.items():
        scene = library().scenes[key]
        tells = " ".join(text for beat in scene.beats for sentence in beat.tell for text in _literals(sentence.words))
        assert kin
        for relative in kin:
            noun = next(iter(_literals(relative))).split()[-1]
            assert not re.search(rf"\b{noun}\b", tells), (key, noun)


def test_a_statement_names_whose_fact_it_is() -> None:
    """In the sentence itself, whichever branches of it are drawn: the turn before may name somebody else."""
    whose = re.compile(r"\b(?:I|my|me|mine)\b|\$(?:subject|group)")
    rules = [rule for name, rule in catalogue().bank.rules.items() if name.startswith("say.")]
    assert len(rules) > 50
    for rule in rules:
        for text in (text for line in rule.alternatives for text in wordings(line)):
            assert whose.search(text), (rule.name, text)
