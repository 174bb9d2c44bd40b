"""Tests measures by the embedded model: it scores a given text word for word, and prefers coherent talk."""

from __future__ import annotations

import importlib.metadata
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from memarena_dataset_quality.coherence import WINDOW_BYTES, Pair, bits_per_byte, pairs, preference, windows
from memarena_dataset_quality.embedded_model import embedded_model, mean_log_probability, tokens_of
from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.world import World, read_world

TALK = (
    ("Maya: My sister had her baby last night.\nLeo:", " Congratulations! Is it a boy or a girl?"),
    ("Maya: The train was two hours late again.\nLeo:", " Two hours? You should ask for your money back."),
    ("Maya: What should I cook for dinner tonight?\nLeo:", " How about pasta with tomato sauce?"),
    ("Maya: My dog ran away yesterday.\nLeo:", " Oh no, I hope your dog comes back soon."),
    ("Maya: I have a terrible headache.\nLeo:", " Did you take anything for the pain?"),
    ("Maya: We are moving to Spain next year.\nLeo:", " Spain? Do you speak any Spanish?"),
)


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def test_pairs_are_of_one_speaker_and_two_sessions(world: World) -> None:
    """Drawn from many sessions, the same for the same seed; the true turn is the one that follows its context."""
    turn_pairs = pairs([world], 40)
    assert turn_pairs == pairs([world], 40)
    assert turn_pairs != pairs([world], 40, seed=1)
    occurrences: dict[str, set[tuple[str, str, str]]] = {}  # who says a turn, in which session, after which words
    for session in world.sessions:
        for index, turn in enumerate(session.turns):
            before = session.turns[index - 1].text if index else ""
            occurrences.setdefault(f" {turn.text}", set()).add((turn.speaker_id, turn.session_id, before))
    for pair in turn_pairs:
        assert any(
            true[0] == other[0] and true[1] != other[1] and true[2][-40:] in pair.context
            for true in occurrences[pair.true]
            for other in occurrences[pair.random]
        )
    assert len({min(occurrences[pair.true]) for pair in turn_pairs}) == 40


def test_a_model_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag and the way to it."""

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(QualityError, match="--llm: the package"):
        embedded_model()


def test_a_server_that_ends_at_once_is_named() -> None:
    """Not waited for until the deadline."""
    with pytest.raises(QualityError, match=r"json\.tool: ended with"), ServerProcess("json.tool"):
        pass


def test_a_server_ends_with_its_user_however_that_one_ends() -> None:
    """Also by SIGKILL, where nothing tidies up."""
    script = (
        "import os, signal\n"
        "from memarena_dataset_quality.server_process import ServerProcess\n"
        "with ServerProcess('memarena.readers.extractive_server') as server:\n"
        "    print(server._process.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    user = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert user.returncode == -signal.SIGKILL
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(user.stdout)).wait(20)
    assert not psutil.pid_exists(int(user.stdout))


@pytest.fixture(scope="module")
def model() -> Iterator[ServerProcess]:
    """The embedded model's server."""
    with embedded_model() as child:
        yield child


@pytest.mark.llm
def test_log_probabilities_are_those_of_the_given_words(model: ServerProcess) -> None:
    """Forced word for word: likelier words score higher, every score is a log probability."""
    context = "The capital of France is"
    likely, unlikely = (
        mean_log_probability(model, context, tokens_of(model, word)) for word in (" Paris", " porridge")
    )
    assert 0 > likely > unlikely


@pytest.mark.llm
def test_answers_are_preferred_to_turns_from_elsewhere(model: ServerProcess) -> None:
    """Talk that hangs together is told from the same turns in another order; exchanged, the figure turns round."""
    shifted = [true for _, true in TALK[1:]] + [TALK[0][1]]
    coherent = [Pair(context, true, other) for (context, true), other in zip(TALK, shifted, strict=True)]
    assert preference(model, coherent) >= 0.8
    assert preference(model, [Pair(pair.context, pair.random, pair.true) for pair in coherent]) <= 0.2


def test_windows_are_of_one_session_and_follow_their_context(world: World) -> None:
    """Drawn from as many sessions, none longer than it may be."""
    stretches = windows([world], 20)
    assert len(stretches) == 20
    assert stretches == windows([world], 20)
    talks = ["\n".join(turn.text for turn in session.turns) for session in world.sessions]
    for context, stretch in stretches:
        assert context
        assert 0 < len(stretch) <= WINDOW_BYTES
        assert any(max(stretch.splitlines(), key=len).split(": ", 1)[-1].strip() in talk for talk in talks)


@pytest.mark.llm
def test_sentences_need_fewer_bits_than_the_same_words_shuffled(model: ServerProcess) -> None:
    """Text that means something is foreseen better."""
    context = "Maya: My dog ran away yesterday.\nLeo:"
    sentence = " Oh no, I hope that your dog comes back soon and that he is not hurt."
    mixed = " soon dog he, Oh and your no hurt I comes that is not that hope back."
    assert bits_per_byte(model, [(context, sentence)]) < 0.7 * bits_per_byte(model, [(context, mixed)])
