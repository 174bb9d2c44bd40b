"""The banks as material: two halves that share no sentence, every rule within reach, everything expands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena_masim.config import Half, preset, sized
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.output.generate import generate
from memarena_masim.phrases.grammar import SPLIT_FROM, Bank, Node, Scope, Sequence_, Voice, phrase
from memarena_masim.phrases.library import BANKS, VOCABULARY, library
from memarena_masim.phrases.matters import Matter
from memarena_masim.questions.question_bank import question_bank
from memarena_masim.realization import record, speech, turn
from memarena_masim.rng import Stream

HALVES: tuple[Half, ...] = ("tuning", "held-out", "all")
SLOTS = dict.fromkeys(("you", "kin", "x", "full", "weekday", "daypart", "weather"), "xx")


def vocabulary() -> set[str]:
    text = (BANKS / "dialogue" / VOCABULARY).read_text(encoding="utf-8")
    return {name for line in text.splitlines() if line.startswith("==") for name in line[2:].strip().split("/")}


def lines(bank: Bank, rule: str) -> list[str]:
    return [repr(_plain(alternative)) for alternative in bank.rules[rule].alternatives]


def _plain(sequence: tuple[Node, ...]) -> list[object]:
    return [
        (node.kind, node.text, node.options, [_plain(branch) for branch in node.branches], node.number)
        for node in sequence
    ]


def check_split(tuning: Bank, held_out: Bank, whole: Bank, shared: set[str]) -> None:
    for name in whole.rules:
        one, other, both = lines(tuning, name), lines(held_out, name), lines(whole, name)
        if len(both) < SPLIT_FROM or name in shared:
            assert one == other == both
        else:
            assert not set(one) & set(other) or len(set(both)) < len(both), name
            assert sorted(one + other) == sorted(both)
            assert abs(len(one) - len(other)) <= 1


def test_halves_share_no_sentence() -> None:
    """Dialogue, statements and question templates fall into two disjoint halves that make up the whole."""
    check_split(library("tuning").dialogue, library("held-out").dialogue, library("all").dialogue, vocabulary())
    check_split(catalogue("tuning").bank, catalogue("held-out").bank, catalogue("all").bank, set())
    check_split(question_bank("tuning").kinds, question_bank("held-out").kinds, question_bank("all").kinds, set())


def test_halves_share_no_topic_and_have_enough_of_them() -> None:
    """A topic belongs to one half."""
    tuning, held_out, whole = (set(library(half).topics) for half in HALVES)
    assert not tuning & held_out
    assert tuning | held_out == whole
    assert min(len(tuning), len(held_out)) >= 12


def test_lines_added_at_the_end_move_no_other(tmp_path: Path) -> None:
    """What was held out stays held out when a bank grows."""

    def half(count: int) -> set[str]:
        path = tmp_path / "grow.bank"
        path.write_text("== rule\n" + "\n".join(f"line {number}" for number in range(count)) + "\n")
        bank = Bank()
        bank.read(path)
        bank.link("held-out")
        return {phrase(one, Scope(Stream(0), Voice(), {})) for one in bank.rules["rule"].alternatives}

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
    """No rule of the dialogue banks is dead: the engine, or a sentence that it can say, refers to it."""
    dialogue = library().dialogue
    source = "".join(Path(str(one.__file__)).read_text(encoding="utf-8") for one in (speech, turn, record))
    quoted = set(re.findall(r"\"[a-z.]+\"|'[a-z.]+'", source))
    prefixes = tuple(re.findall(r'"((?:open|close|react|tell|pa)\.(?:told\.)?)[{"]', source))
    reached = {name for name in dialogue.rules if {f'"{name}"', f"'{name}'"} & quoted or name.startswith(prefixes)}
    reached |= {name for name in dialogue.rules if re.fullmatch(r"pa\.\w+\.open", name)}
    wanted = list(reached)
    topics = [topic.bank for topic in library().topics.values()]
    for bank in topics:
        wanted += [name for name in bank.wanted if name in dialogue.rules]
    while wanted:
        rule = dialogue.rules[wanted.pop()]
        reached.add(rule.name)
        for alternative in rule.alternatives:
            wanted += [name for name in _references(alternative) if name not in reached]
            reached.update(_references(alternative))
    triples = {"chore", "chored", "choring"}
    assert set(dialogue.rules) - reached - triples == set()


def _references(sequence: tuple[Node, ...]) -> set[str]:
    found = {node.text for node in sequence if node.rule is not None}
    return found.union(*(_references(branch) for node in sequence for branch in node.branches))


def test_everything_that_topics_can_say_expands() -> None:
    """Each line of each topic and matter, without a mark of the notation left but those of what can be taken up."""
    for key, topic in library().topics.items():
        lines = [(rule.name, one) for rule in topic.bank.rules.values() for one in rule.alternatives]
        for matter in topic.matters:
            lines += [(matter.key, line) for line in _lines_of(matter)]
        for number, (name, line) in enumerate(lines):
            said = phrase(line, Scope(Stream(key, name, number), Voice(5), SLOTS, topic.bank))
            assert not set(said) & set("{}[]|<>$@^_"), (key, name, said)
            assert said.count("*") % 2 == 0, (key, name, said)


def _lines_of(matter: Matter) -> Iterator[Sequence_]:
    yield from matter.nouns
    for lines in matter.clauses.values():
        yield from lines
    for deeds in matter.deeds.values():
        yield from (form for deed in deeds for form in (deed.base, deed.doing))
    for talks in matter.talks.values():
        yield from (line for talk in talks for line in (talk.question, *talk.answers))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("== half\nmine\n== name\na\nb\n", "needs at least two lines|must say tuning"),
        ("== half\ntuning\n== plant\nleek\n", "needs at least two lines|used nowhere"),
    ],
)
def test_a_faulty_topic_is_refused(text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half that is none, and a list that nothing uses, are named with the file."""
    from memarena_masim.phrases import library as module
    from memarena_masim.phrases.grammar import Variants

    path = tmp_path / "odd.topic"
    lists = "".join(f"== {name}\na\nb\n" for name in module._LISTS if name not in ("act", "name"))
    path.write_text(text + "== name\na\nb\n" + lists + "== act\n^run\n^walk\n")
    with pytest.raises(MasimError, match=rf"odd\.topic.*({fault})"):
        module._topic(path, Variants((), "none"), library().dialogue)
