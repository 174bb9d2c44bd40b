"""How two values of one answer stand to each other: which holds, which is denied, and whether both were told.

An answer to a conflict can name both versions and yet tell only one (``nobody ever said X, it is Y``); one that puts a
premise right can name both values and yet keep the premise, refuse the correction or choose neither. What says so lies
between the values as much as around each of them, so it is read off the whole wording, with signs for the values
(:mod:`memarena.judge.value_wording`). The patterns stand in ``tables/standing.v1.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from memarena.judge.errors import JudgeError
from memarena.judge.value_weighing import Shape
from memarena.judge.value_wording import OTHER_VERSION, PREMISE, RIVAL, SPEAKER, VALUE

TABLE = "standing.v1.toml"
_SIGNS = {
    "ZQV": VALUE,
    "ZQC": OTHER_VERSION,
    "ZQA": PREMISE,
    "ZQO": RIVAL,
    "ZQW": SPEAKER,
    "ZQ": f"(?:{VALUE}|{OTHER_VERSION}|{PREMISE})",
}
_NAME = re.compile(r"[A-Z]{3,}")
_MEASURE = re.compile(
    r"(?<=\bzq[vcao]) (?:in (?:all|total)|overall|altogether|sharp|on the dot)\b|"
    r"\b(?:just|exactly|precisely|a total of|every|the|an?) (?=zq[vcao]\b)"
)
"""Words that belong to how a value is said (``exactly 40 minutes in all``)."""
_NOWHERE = re.compile(
    r"\b(?:nowhere|nothing|none of|at no point|in no \w+|never|(?:do|does|did|can|could) not (?:see|find|have|show)|"
    r"if|whether)\b[^.;!?,]*$"
)
"""What denies or leaves open all that follows it in its clause (``nowhere in it do I see it confirmed``)."""
_MEANS = {
    "source_only": "names it only as where another value comes from",
    "several": "gives several under one label, or rejects it",
    "not_told": "says that a version was not told",
    "one_only": "tells one version as the only one",
    "elsewhere": "tells a value of another matter",
    "thought_up": "thinks its versions up",
    "for_a_marker": "names a value only for whoever marks it",
    "affirmed": "affirms what the question only supposes",
    "premise_given": "gives the premise as the answer",
    "refused": "refuses the correction",
    "left_open": "leaves open which value holds",
}


def is_affirmation(reason: str) -> bool:
    """Whether the reason is that a premise is affirmed, which corrections are often worded like."""
    return reason.startswith(_MEANS["affirmed"])


def stands_wrongly(raw: Sequence[str], shape: Shape) -> str:
    """Why the values do not stand as a right answer has them, with the words that say so; empty if they do.

    Args:
        raw: the answer's words with signs for values (:func:`memarena.judge.value_wording.raw_words`).
        shape: of the gold.
    """
    text = _MEASURE.sub("", " ".join(raw))
    for reason, pattern in _patterns()[shape]:
        for found in pattern.finditer(text):
            if reason in ("affirmed", "premise_given") and _NOWHERE.search(text[: found.start()]):
                continue
            return f"{_MEANS[reason]} ({found.group().strip()!r})"
    return ""


@cache
def _patterns() -> dict[Shape, tuple[tuple[str, re.Pattern[str]], ...]]:
    table = tomllib.loads((files("memarena.judge") / "tables" / TABLE).read_text(encoding="utf-8"))
    parts: dict[str, str] = table["parts"]

    def read(pattern: str) -> re.Pattern[str]:
        pattern = re.sub(r"WORDS\{(\d)\}", r"(?: (?!zq)[^\\W_]+){0,\1}", pattern)
        for name, part in {**parts, **_SIGNS}.items():
            pattern = re.sub(rf"{name}\b", part.replace("\\", r"\\"), pattern)
        if left := _NAME.search(pattern):
            raise JudgeError(f"{TABLE}: {left.group()!r} in a pattern is no name of [parts] and no sign")
        return re.compile(pattern)

    shapes: Mapping[Shape, tuple[Shape, ...]] = {
        "plain": ("plain",),
        "conflict": ("conflict",),
        "counterfactual": ("plain", "counterfactual"),
    }
    return {
        shape: tuple((name, read(p)) for part in sections for name, ps in table[part].items() for p in ps)
        for shape, sections in shapes.items()
    }
