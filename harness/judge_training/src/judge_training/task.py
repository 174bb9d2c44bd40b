"""Defines a training task: labelled examples, independent sets to measure on, and parts that can be left out."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.judging.linear_model import LinearModel

DATA = Path(__file__).resolve().parents[2] / "data"
"""Labelled texts: a folder for each model, and ``independent``, from which nothing was learned. All are compressed."""
INDEPENDENT = DATA / "independent"
REPOSITORY = Path(__file__).resolve().parents[4]
MODELS = REPOSITORY / "harness" / "src" / "memarena" / "judging" / "models"
"""Folder of the trained models."""


def text_of(path: Path) -> str:
    """Return the text of a file, decompressed if its name ends in ``.xz`` (packed by ``xz -9e``)."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")


@dataclass(frozen=True)
class Example:
    """A labelled text as features. ``weight`` is its weight in training, relative to other examples."""

    features: frozenset[str]
    label: bool
    weight: float = 1.0
    text: str = ""
    """The text, to show where it was judged wrongly."""


@dataclass(frozen=True)
class Settings:
    """Settings with which a model is trained."""

    inverse_penalty: float = 1.0
    """scikit-learn's ``C`` of an L2 penalty."""
    least_texts: int = 3
    """Features that occur in fewer examples are not learned."""
    least_weight: float = 0.0
    """Features that weigh less (in logits) are left out of the stored model."""
    threshold: float = 0.0
    """Logits above which the model says yes."""


@dataclass(frozen=True)
class Rule:
    """A part of a verdict besides the model that can be left out: a group of features, or a rule of the code."""

    name: str
    without_features: Callable[[str], bool] | None = None
    """Features that the model is trained anew without."""
    without_rule: str = ""
    """Name of the rule that :attr:`Task.verdict` skips."""


@dataclass(frozen=True)
class Case:
    """A labelled case of an independent set, with question and answer as the judge gets them."""

    label: bool
    question: str
    answer: str


@dataclass(frozen=True)
class Task:
    """A model to train."""

    name: str
    settings: Settings
    examples: Callable[[], Sequence[Example]]
    independent: Callable[[], Mapping[str, Sequence[Case]]]
    """Returns sets from which nothing was learned, by name."""
    verdict: Callable[[Case, LinearModel, frozenset[str]], bool]
    """Whether the judge says yes to a case, from the case, the model and the names of rules to skip."""
    rules: Sequence[Rule] = ()
    missed: str = "said yes, read as no"
    taken: str = "said no, read as yes"
