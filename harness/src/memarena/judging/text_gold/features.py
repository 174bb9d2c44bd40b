"""Computes the features from which the model of text golds decides: shares and counts, cut into steps.

Each share becomes the names of the steps that it reaches (``recall>=0.5``), so that the linear model can follow a
curve; a few shares have separate steps for short and for long answers too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from memarena_dataset.values.mentions import AmountMention
from memarena_dataset.values.words import token_f1

from memarena.judging.text_gold.meanings import base, nearness
from memarena.judging.text_gold.reading import NEGATIONS, TextReading

T = TypeVar("T")

_STEPS = (0.01, 0.15, 0.25, 0.34, 0.45, 0.5, 0.6, 0.67, 0.75, 0.85, 0.99)
"""Thresholds at which a share becomes features."""
_SHORT, _LONG = 6, 25
"""Words up to which an answer is short, and from which on it is long."""
_HAS_ITEM = 0.6
"""Share of an item's words from which on the answer has the item."""
_MIN_PART = 0.25
"""Share of a part's words below which it is missing."""


def features_of(question: TextReading, gold: TextReading, answer: TextReading) -> frozenset[str]:
    """Return the features of one answer against one wording of the gold."""
    size = "short" if len(answer.words) <= _SHORT else "long" if len(answer.words) >= _LONG else "middle"
    kind = _kind(question, gold)
    features: set[str] = {size, f"kind:{kind}", f"{size}&{kind}"}
    for name, share in _shares(question, gold, answer).items():
        for step in _STEPS:
            if share >= step:
                features.add(f"{name}>={step}")
                features.add(f"{size}&{name}>={step}")
                if name in ("new recall", "best sentence", "items", "head"):
                    features.add(f"{kind}&{name}>={step}")
    features.update(_flag_features(question, gold, answer, size))
    return frozenset(features)


def _kind(question: TextReading, gold: TextReading) -> str:
    """Return the kind of a gold: yes or no, date, value, list, or by its length word, phrase or clause."""
    if gold.side:
        return "side"
    if gold.periods and len(gold.tokens) <= 4:
        return "date"
    if gold.values and len(gold.tokens) <= 4:
        return "value"
    if len(gold.items) >= 2 and len(gold.tokens) <= 5 * len(gold.items):
        return "list"
    if len(gold.tokens) <= 2:
        return "word"
    return "phrase" if len(gold.tokens) <= 5 else "clause"


# ------------------------------------------------------------------ shares


def _shares(question: TextReading, gold: TextReading, answer: TextReading) -> dict[str, float]:
    """Return the shares by name, each 0 to 1."""
    # The stored model knows the shares by these names. Of the answer's words, "echo" is the share that the question has
    # and "rare" the share that the gold has; "rest" is near 1 if no word is new to both.
    new = own_tokens(question, gold)
    question_tokens = question.token_set
    best = max(recall(new, s.tokens) for s in answer.sentences)
    new_in_answer = [t for t in answer.tokens if t not in question_tokens]
    exact = Counter(gold.tokens)
    return {
        "recall": recall(gold.tokens, answer.tokens),
        "new recall": recall(new, answer.tokens),
        "exact recall": _bag_share(new, answer.tokens),
        "best sentence": best,
        "items": _items(question, gold, answer),
        "precision": recall(new_in_answer, gold.tokens) if new_in_answer else 0.0,
        "echo": sum(t in question_tokens for t in answer.tokens) / max(1, len(answer.tokens)),
        "f1": token_f1(answer.text, gold.text),
        "letters": _letters(" ".join(new), " ".join(answer.tokens)),
        "head": max((nearness(new[-1], t) for t in answer.tokens), default=0.0) if new else 0.0,
        "first": max((nearness(new[0], t) for t in answer.tokens), default=0.0) if new else 0.0,
        "run": _longest_run(gold.words, answer.words) / max(1, len(gold.words)),
        "names": _share([n for n in gold.names if n not in question.words], lambda name: name in answer.words),
        "rest": recall(new_in_answer, [*gold.tokens, *question.tokens]) if new_in_answer else 0.0,
        "rare": sum(exact[t] > 0 for t in set(answer.tokens)) / max(1, len(answer.token_set)),
    }


def own_tokens(question: TextReading, gold: TextReading) -> Sequence[str]:
    """Return the gold's tokens without the question's; all of them if none would be left."""
    return [t for t in gold.tokens if t not in question.token_set] or gold.tokens


def recall(expected: Sequence[str], there: Sequence[str]) -> float:
    """Return the share of the expected stems that the other text has, by meaning (:func:`nearness`), 0 to 1."""
    if not expected:
        return 0.0
    distinct = set(there)
    return sum(1.0 if t in distinct else max((nearness(t, o) for o in distinct), default=0.0) for t in expected) / len(
        expected
    )


def _bag_share(expected: Sequence[str], there: Sequence[str]) -> float:
    distinct = set(there)
    return sum(t in distinct for t in expected) / max(1, len(expected))


def _items(question: TextReading, gold: TextReading, answer: TextReading) -> float:
    """Return the share of the gold's parts that the answer has."""
    parts = [own for item in gold.items if (own := [t for t in item.tokens if t not in question.token_set])]
    return _share(parts, lambda own: recall(own, answer.tokens) >= _HAS_ITEM)


def _share(members: Sequence[T], is_there: Callable[[T], bool]) -> float:
    return sum(map(is_there, members)) / len(members) if members else 0.0


def _letters(expected: str, there: str) -> float:
    """Return the share of one text's runs of four letters that the other text has."""
    runs = {expected[i : i + 4] for i in range(len(expected) - 3)}
    return sum(run in there for run in runs) / len(runs) if runs else float(bool(expected) and expected in there)


def _longest_run(expected: Sequence[str], there: Sequence[str]) -> int:
    """Return the number of words in the longest run that both have."""
    best = 0
    row: dict[int, int] = {}
    for word in expected:
        row = {j: row.get(j - 1, 0) + 1 for j, other in enumerate(there) if other == word}
        best = max(best, *row.values()) if row else best
    return best


# ------------------------------------------------------------------ flags


def _flag_features(question: TextReading, gold: TextReading, answer: TextReading, size: str) -> Iterator[str]:
    """Yield the features that are not shares: declining, values, side, negation, new names, missing and added words."""
    if answer.declines:
        yield "declines"
        yield f"{size}&declines"
    yield from _value_features(gold, answer, size)
    if gold.side:
        side = answer.leaning
        yield f"side {'same' if side == gold.side else 'other' if side else 'open'}"
    yield from _negation_features(question, gold, answer)
    strangers = [n for n in answer.names if n not in gold.words and n not in question.words]
    if strangers and size != "long":
        yield f"new names {min(3, len(strangers))}"
    lack = [t for t in dict.fromkeys(own_tokens(question, gold)) if recall([t], answer.tokens) < 1]
    extra = [t for t in answer.token_set - question.token_set if recall([t], gold.tokens) < 1]
    if lack and extra:
        # "a brass trumpet" for "a brass telescope": another word replaces the gold's
        yield f"{size}&lacks {min(3, len(lack))}"
        yield f"{size}&lacks {min(3, len(lack))}&adds {min(3, len(extra))}"
        yield f"lacks all but {min(3, len(set(own_tokens(question, gold))) - len(lack))}"
    fresh = [t for t in answer.tokens if t not in question.token_set and t not in gold.token_set]
    yield f"fresh {min(len(fresh), 5) if len(fresh) < 6 else 8 if len(fresh) < 12 else 20}"
    yield f"gold length {min(len(gold.tokens), 8)}"
    if len(gold.items) > 1:
        yield f"gold items {min(len(gold.items), 5)}"
    yield from _part_features(question, gold, answer)


_MAX_FRESH = 4
"""Largest count of words that are in neither question nor gold: this many may paraphrase a part."""


def _part_features(question: TextReading, gold: TextReading, answer: TextReading) -> Iterator[str]:
    """Yield, for a gold of several parts, how many of them the answer lacks, and how much else it says.

    A part in other words adds words that the gold lacks; an answer that leaves out a part adds none.
    """
    parts = [
        part_tokens for item in gold.items if (part_tokens := [t for t in item.tokens if t not in question.token_set])
    ]
    if len(parts) < 2:
        return
    shares = [recall(part_tokens, answer.tokens) for part_tokens in parts]
    missing = [share < _MIN_PART for share in shares]
    if not any(missing) or all(missing):
        yield "parts all" if not any(missing) else "parts none"
        return
    expected = [*gold.tokens, *question.tokens]
    fresh = min(_MAX_FRESH, sum(recall([t], expected) < 1 for t in answer.token_set))
    enough = "most" if 3 * sum(missing) <= len(parts) else "half"
    yield f"parts {enough}"
    yield f"parts {enough}&fresh {fresh}"
    if max(shares) >= _HAS_ITEM:
        yield f"parts {enough}, one whole&fresh {fresh}"


def _value_features(gold: TextReading, answer: TextReading, size: str) -> Iterator[str]:
    """Yield whether the answer has the gold's numbers, times and dates, or others instead."""
    for mention in gold.values:
        same = [m for m in answer.values if m.same(mention)]
        kin = [m for m in answer.values if m.kind == mention.kind and _same_unit(m, mention)]
        yield f"{mention.kind} {'same' if same else 'other' if kin else 'missing'}"
    for period in gold.periods:
        same_period = [p for p in answer.periods if p.states(period)]
        rivals = [p for p in answer.periods if not p.overlaps(period)]
        state = "same" if same_period else "other" if rivals else "near" if answer.periods else "missing"
        yield f"period {state}"
        if same_period and rivals:
            yield f"period rivals {size}"
    if answer.values and not gold.values and size == "short":
        yield "number instead"


def _same_unit(a: object, b: object) -> bool:
    if isinstance(a, AmountMention) and isinstance(b, AmountMention):
        return a.unit == b.unit or a.unit is None or b.unit is None
    return True


_TURNS = frozenset(("but", "instead", "however", "although", "though", "rather", "yet", "whereas", "while", "until"))
"""Words with which a sentence turns away from what came before."""
_WINDOW = 4
"""Words before a word of the gold within which a negation negates it."""


def _negation_features(question: TextReading, gold: TextReading, answer: TextReading) -> Iterator[str]:
    """Yield whether the answer negates the gold's words, or turns away from them before its sentence ends."""
    gold_tokens = set(own_tokens(question, gold))
    if not gold_tokens or NEGATIONS & set(gold.words):
        return
    holding = [s for s in answer.sentences if gold_tokens & s.token_set]
    if not holding:
        return
    states = [_gold_treatment(s, gold_tokens) for s in holding]
    yield from (f"all {name}" for name in ("negated", "turned") if all(name in state for state in states))
    yield from (f"first {name}" for name in states[0])


def _gold_treatment(sentence: TextReading, own: set[str]) -> set[str]:
    """Return how a sentence treats the gold's words: negated, turned away from, turned to."""
    words = sentence.words
    positions = [i for i, word in enumerate(words) if base(word) in own]
    states = set()
    if positions and all(NEGATIONS & set(words[max(0, i - _WINDOW) : i]) for i in positions):
        states.add("negated")
    if positions and any(word in _TURNS for word in words[positions[-1] + 1 :]):
        states.add("turned")
    if positions and any(word in _TURNS for word in words[: positions[0]]):
        states.add("turned to")
    return states
