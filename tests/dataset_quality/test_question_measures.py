"""Tests measures of questions: each detects its flaw, planted in a world that lacks it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_dataset.gold import PermissionGold
from memarena_dataset.model import Family, Instance, Turn
from memarena_dataset_quality.bm25_recall import Ranking, recalls
from memarena_dataset_quality.evidence_cues import CueClassifier, auc, stated_facts
from memarena_dataset_quality.extractive_reader import MODULE, ask
from memarena_dataset_quality.guessing import guess, label
from memarena_dataset_quality.position_and_length import position_figures
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.shortcut_attack import ShortcutAttack, compare, questions_of
from memarena_dataset_quality.world import World, read_world
from rank_bm25 import BM25Okapi

from .worlds import asked_ids, evidence_ids, retold

SHARED = Path(os.environ.get("MEMARENA_SHARED", Path(__file__).parents[3] / "shared"))
DEFINITION = SHARED / "tools" / "world_bars.py"
MARK = "verily"


@pytest.fixture(scope="module")
def folders(small_world: Path, other_small_worlds: list[Path]) -> list[Path]:
    """The small world, and two more of its kind."""
    return [small_world, *other_small_worlds]


@pytest.fixture(scope="module")
def worlds(folders: list[Path]) -> list[World]:
    """The same, read."""
    return [read_world(folder) for folder in folders]


@pytest.fixture(scope="module")
def reader() -> object:
    """The harness's extractive reader as a server."""
    with ServerProcess(MODULE) as child:
        yield child


def marked(world: World, turn_ids: Callable[[World], frozenset[str]]) -> World:
    """The world with one rare word, said three times, in the chosen turns."""
    chosen = turn_ids(world)
    return retold(world, lambda turn: f"{turn.text} {MARK} {MARK} {MARK}" if turn.turn_id in chosen else turn.text)


def test_a_mark_in_asked_turns_is_a_tell_tale(worlds: list[World]) -> None:
    """The classifier finds it on worlds that it did not learn from, and nothing like it where there is none."""
    plain = CueClassifier(turn for world in worlds[1:] for turn in stated_facts(world))
    assert plain.area([stated_facts(worlds[0])]) < 0.7
    planted = [marked(world, asked_ids) for world in worlds]
    taught = CueClassifier(turn for world in planted[1:] for turn in stated_facts(world))
    assert taught.area([stated_facts(planted[0])]) > plain.area([stated_facts(planted[0])]) + 0.05


def test_a_mark_in_evidence_is_found_without_a_question(worlds: list[World]) -> None:
    """Ranking by the classifier alone then finds more than it does without the mark."""
    planted = [marked(world, asked_ids) for world in worlds]
    taught = CueClassifier(turn for world in planted[1:] for turn in stated_facts(world))
    blind = taught.retrieve(planted[0])
    plain = CueClassifier(turn for world in worlds[1:] for turn in stated_facts(world)).retrieve(worlds[0])
    assert blind is not None
    assert plain is not None
    assert blind.ratio > 1.5 * plain.ratio


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(positive: list[int], negative: list[int]) -> None:
    """Ties count half."""
    pairs = [(score > other) + 0.5 * (score == other) for score in positive for other in negative]
    assert auc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.skipif(not DEFINITION.exists(), reason=f"{DEFINITION} is not there")
def test_tell_tale_is_that_of_the_shared_definition(folders: list[Path], worlds: list[World]) -> None:
    """The same worlds to learn from and to try, the same digits."""
    result = subprocess.run(
        [sys.executable, str(DEFINITION), "--cue", str(folders[1]), str(folders[2]), "--", str(folders[0])],
        capture_output=True,
        text=True,
        check=True,
    )
    shared = next(line.split()[-1] for line in result.stdout.splitlines() if "AUC n-grams" in line)
    taught = CueClassifier(turn for world in worlds[1:] for turn in stated_facts(world))
    assert f"{taught.area([stated_facts(worlds[0])]):.3f}" == shared


def test_evidence_at_the_end_is_seen(worlds: list[World]) -> None:
    """Sessions turned so that evidence comes last, and evidence made long."""
    world = worlds[0]
    chosen = evidence_ids(world)
    before = position_figures([world])
    assert before is not None
    sessions = tuple(
        session.model_copy(
            update={"turns": tuple(sorted(session.turns, key=lambda turn: turn.turn_id in chosen))},
        )
        for session in world.sessions
    )
    late = position_figures([replace(world, sessions=sessions)])
    assert late is not None
    assert late.worst_decile > 0.5 > before.worst_decile
    long = position_figures([retold(world, lambda turn: turn.text * (3 if turn.turn_id in chosen else 1))])
    assert long is not None
    assert long.length_ratio > 2 > before.length_ratio


WORD = st.sampled_from(["apple", "pear", "plum", "fig", "lemon", "quince"])


@settings(max_examples=60)
@given(
    st.lists(st.lists(WORD, min_size=1, max_size=8), min_size=1, max_size=12),
    st.lists(st.one_of(WORD, st.just("unheard")), max_size=6),
    st.data(),
)
def test_scores_are_those_of_rank_bm25(texts: list[list[str]], query: list[str], data: st.DataObject) -> None:
    """For any stretch of the texts, as if the rest had not been said yet."""
    count = data.draw(st.integers(1, len(texts)))
    expected = BM25Okapi(texts[:count]).get_scores(query)
    assert np.allclose(Ranking(texts).scores(query, count), expected)


def test_recall_rises_with_shared_words(worlds: list[World]) -> None:
    """A question that repeats its evidence finds it; one that shares no word finds nothing but by chance."""
    world = worlds[0]

    def asking(words: Callable[[Instance], str]) -> World:
        instances = tuple(instance.model_copy(update={"query": words(instance)}) for instance in world.instances)
        return replace(world, instances=instances)

    repeated = asking(
        lambda instance: world.turns[instance.evidence_turn_ids[0]][0].text if instance.evidence_turn_ids else ""
    )
    assert recalls([repeated])[Family.ANAPHORA.value] >= 0.5
    assert max(recalls([asking(lambda instance: "zyx")]).values()) < 0.2


def test_the_extractive_reader_answers_from_the_lines_it_is_given(reader: ServerProcess) -> None:
    """The real reader, over HTTP."""
    lines = ["Maya Chen: The parrot is called Biscuit.", "Leo Sato: I like rain."]
    assert "Biscuit" in ask(reader, lines, "What is the parrot called?")


def test_a_pattern_without_words_is_stolen(worlds: list[World], reader: ServerProcess) -> None:
    """Where every answer is framed alike, the attack is right without understanding; where it is not, it is not."""

    def framed(world: World) -> World:
        texts: dict[str, str] = {}
        for question in questions_of(world):
            gold = world.evidence(question)[0][0]
            texts[gold.turn_id] = f"{gold.text} And so it was: {_value_words(world, question)} , as they say."
        return retold(world, lambda turn: texts.get(turn.turn_id, turn.text))

    def only_single(world: World) -> World:
        instances = tuple(
            instance
            for instance in world.instances
            if instance.family is Family.QA and len(instance.evidence_turn_ids) == 1
        )
        return replace(world, instances=instances)

    plain = [only_single(world) for world in worlds]
    honest = compare(ShortcutAttack(plain[1:]), plain[:1], reader)
    planted = [framed(world) for world in plain]
    stolen = compare(ShortcutAttack(planted[1:]), planted[:1], reader)
    assert honest is not None
    assert stolen is not None
    assert stolen.attack > 0.5
    assert stolen.attack > honest.attack


def _value_words(world: World, instance: Instance) -> str:
    """The gold in the words of the file."""
    gold = instance.gold
    assert hasattr(gold, "answers")
    return str(gold.answers[0])


def test_an_answer_that_the_question_gives_away_is_guessed(worlds: list[World]) -> None:
    """Permission by the first letter of the question: far above the best constant. As made: not."""
    as_made = guess(worlds[1:], worlds[:1])
    assert as_made is not None
    assert as_made.pooled.above < 0.05

    def leaking(world: World) -> World:
        return replace(world, instances=tuple(_leak(instance) for instance in world.instances))

    leaked = guess([leaking(world) for world in worlds[1:]], [leaking(worlds[0])])
    assert leaked is not None
    permission = leaked.by_family[Family.PERMISSION.value]
    assert permission.questions > 0
    assert permission.guessed > 0.95 > permission.constant
    assert permission.above_upper > permission.above > 0.02
    others = [figures for family, figures in leaked.by_family.items() if family != Family.PERMISSION.value]
    assert leaked.pooled.questions == permission.questions + sum(figures.questions for figures in others)


def _leak(instance: Instance) -> Instance:
    if not isinstance(instance.gold, PermissionGold):
        return instance
    return instance.model_copy(update={"query": f"{label(instance)}, perhaps? {instance.query}"})


def test_guessers_never_see_what_they_are_tried_on(worlds: list[World]) -> None:
    """With golds shuffled over the questions of the tested world alone, nothing learned helps."""
    rng = random.Random(3)
    world = worlds[0]
    golds = [instance.gold for instance in world.instances if isinstance(instance.gold, PermissionGold)]
    rng.shuffle(golds)
    shuffled = iter(golds)
    instances = tuple(
        instance.model_copy(update={"gold": next(shuffled)}) if isinstance(instance.gold, PermissionGold) else instance
        for instance in world.instances
    )
    guesses = guess(worlds[1:], [replace(world, instances=instances)])
    assert guesses is not None
    permission = guesses.by_family[Family.PERMISSION.value]
    assert permission.guessed <= permission.constant + 0.15


def test_turns_keep_their_ids(worlds: list[World]) -> None:
    """The helper of these tests changes words only."""
    changed = retold(worlds[0], lambda turn: "x")
    assert changed.turns.keys() == worlds[0].turns.keys()
    assert all(isinstance(turn, Turn) and turn.text == "x" for turn, _ in changed.turns.values())
