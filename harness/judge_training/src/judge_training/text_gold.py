"""Trains the model that decides whether an answer says what a gold in text says, and measures it.

``python -m judge_training.text_gold`` trains it and writes ``models/text_gold.npz``. With ``rates [--answers FILE]`` it
is measured: by cross-validation over questions, on the blind set, and on hand-labelled answers of real models to
LoCoMo, if ``FILE`` has them (``answers_dev.jsonl.gz`` of the public LoCoMo audit, which is not shipped).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memarena.judging.linear_model import LinearModel
from memarena.judging.text_gold.features import features_of
from memarena.judging.text_gold.judge import MODEL, decide_without_model, judge_text, readings
from memarena.judging.text_gold.meanings import base, nearness
from memarena.judging.text_gold.reading import TextReading
from memarena_dataset.values.word_lists import word_list

from judge_training.patterns import stable_hash
from judge_training.rates import Rate
from judge_training.task import DATA, MODELS, Example, Settings, text_of
from judge_training.training import train

PAIRS = DATA / "text_gold"
SETTINGS = Settings(inverse_penalty=0.03, least_texts=3, threshold=0.0)
TRAINING = ("friends", "assistants", "natural")
BLIND = "blind"
LABELS = "locomo_labels.v1.tsv.xz"
FOLDS = 5
"""Folds of the cross-validation."""
NEAR_MISS_WEIGHT = 0.3
"""Weight of a gold with a word of another gold; an answer that was written as a whole weighs 1."""
HALF_WEIGHT = 0.5
"""Weight of an answer made of the parts of a gold."""
_FRAMES = ("{}", "It was {}.", "They mentioned {}.", "{}, as far as I remember.")
"""Frames around the parts of a gold."""
_LONGEST_PHRASE = 5
"""Most content words of a gold from which near misses are made."""
_WORD = re.compile(r"[A-Za-z'-]{3,}")


@dataclass(frozen=True)
class Pair:
    """One answer with its truth."""

    question: str
    gold: str
    answer: str
    right: bool
    form: str
    """``phrase``, ``sentence`` or ``paragraph``; for LoCoMo's answers, the set that they are from."""
    source: str


def pairs(name: str) -> list[Pair]:
    """Return the answers of one file, in its order."""
    rows = text_of(PAIRS / f"{name}.v1.jsonl.xz").splitlines()
    return [
        Pair(row["question"], row["gold"], answer["answer"], answer["right"], answer["form"], name)
        for row in map(json.loads, rows)
        for answer in row["answers"]
    ]


def locomo_pairs(answers: Path) -> list[Pair]:
    """Return the hand-labelled answers to LoCoMo, except those labelled ``open``; ``answers`` has their texts."""
    with gzip.open(answers, "rt", encoding="utf-8") as rows:
        texts = {(row["instance_id"], row["set"]): row for row in map(json.loads, rows)}
    lines = (line for line in text_of(PAIRS / LABELS).splitlines() if not line.startswith("#"))
    labelled = (line.split("\t") for line in lines)
    return [
        Pair(row["question"], str(row["gold"]), row["answer"], label == "right", name, "locomo")
        for instance_id, name, _, _, label in labelled
        if label != "open"
        for row in (texts[instance_id, name],)
    ]


def examples(of: Sequence[Pair]) -> list[Example]:
    """Return examples of the answers that reach the model: those that no earlier step of the judge decides."""
    return [Example(features_of(*reading), pair.right, 1.0, pair.answer) for pair in of for reading in _undecided(pair)]


def _undecided(pair: Pair) -> Iterator[tuple[TextReading, TextReading, TextReading]]:
    for reading in readings(pair.question, (pair.gold,), pair.answer):
        if decide_without_model(*reading) is None:
            yield reading


def near_misses(of: Sequence[Pair]) -> list[Pair]:
    """Return short golds with their first or last content word replaced by that of another gold: wrong answers."""
    golds = list(dict.fromkeys((pair.question, pair.gold) for pair in of))
    spans = {gold: _content_spans(gold) for _, gold in golds}
    phrases = [gold for _, gold in golds if 2 <= len(spans[gold]) <= _LONGEST_PHRASE]
    result = []
    for question, gold in golds:
        question_tokens = TextReading(question).token_set
        replaceable = [span for span in spans[gold] if base(gold[slice(*span)].lower()) not in question_tokens]
        if not 2 <= len(replaceable) <= _LONGEST_PHRASE:
            continue
        for end in (0, -1):
            start, stop = replaceable[end]
            donor = phrases[stable_hash("near miss", gold, end) % len(phrases)]
            word = donor[slice(*spans[donor][end])]
            if nearness(base(word.lower()), base(gold[start:stop].lower())) < 1:
                result.append(Pair(question, gold, gold[:start] + word + gold[stop:], False, "near miss", "near"))
    return result


def halves(of: Sequence[Pair]) -> list[Pair]:
    """Return answers made of the parts of golds that have several, in frames that add nothing.

    An answer with fewer than two thirds of the parts is wrong. Right are all parts in another order, and all but one of
    three or more.
    """
    result = []
    for question, gold in dict.fromkeys((pair.question, pair.gold) for pair in of):
        question_tokens = TextReading(question).token_set
        parts = [item.text for item in TextReading(gold).items if set(item.tokens) - question_tokens]
        if len(parts) < 2:
            continue
        few = -(-2 * len(parts) // 3) - 1
        answers = [(parts[:few], False), (parts[-few:], False), (parts[::-1], True)]
        answers += [(parts[1:], True), (parts[:-1], True)] if len(parts) > 2 else []
        for chosen, right in answers:
            frame = _FRAMES[stable_hash("half", gold, *chosen) % len(_FRAMES)]
            result.append(Pair(question, gold, frame.format(_join_parts(chosen)), right, "half", "half"))
    return result


def _join_parts(parts: Sequence[str]) -> str:
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def _content_spans(text: str) -> list[tuple[int, int]]:
    grammar = word_list("function_words.v1.txt")
    return [match.span() for match in _WORD.finditer(text) if match.group().lower() not in grammar]


def _learn(of: Sequence[Pair]) -> LinearModel:
    near = [replace(example, weight=NEAR_MISS_WEIGHT) for example in examples(near_misses(of))]
    half = [replace(example, weight=HALF_WEIGHT) for example in examples(halves(of))]
    return train([*examples(of), *near, *half], SETTINGS)


def trained() -> LinearModel:
    """Train the model on all training pairs. The same pairs give the same model."""
    return _learn([pair for name in TRAINING for pair in pairs(name)])


def cross_validated(of: Sequence[Pair]) -> list[tuple[Pair, bool]]:
    """Judge each answer by a model that saw no answer to its question; return pairs with outcomes."""
    questions = sorted({pair.question for pair in of})
    fold = {question: position % FOLDS for position, question in enumerate(questions)}
    outcomes: list[tuple[Pair, bool]] = []
    for fold_number in range(FOLDS):
        model = _learn([pair for pair in of if fold[pair.question] != fold_number])
        outcomes += [(p, _outcome(p, model)) for p in of if fold[p.question] == fold_number]
    return outcomes


def _outcome(pair: Pair, model: LinearModel) -> bool:
    return judge_text(pair.question, (pair.gold,), pair.answer, model=model).correct


def rates(outcomes: Sequence[tuple[Pair, bool]]) -> tuple[Rate, Rate]:
    """Return the rates of right answers called wrong, and of wrong answers called right."""
    right = [correct for pair, correct in outcomes if pair.right]
    wrong = [correct for pair, correct in outcomes if not pair.right]
    return Rate(len(right) - sum(right), len(right)), Rate(sum(wrong), len(wrong))


def table(name: str, outcomes: Sequence[tuple[Pair, bool]]) -> Iterator[str]:
    """Yield lines of a Markdown table: for the set as a whole, and for each form of answer."""
    for form in ("", *sorted({pair.form for pair, _ in outcomes})):
        chosen = [(pair, correct) for pair, correct in outcomes if form in ("", pair.form)]
        rejected, accepted = rates(chosen)
        agreed = sum(pair.right == correct for pair, correct in chosen) / len(chosen)
        yield f"| {name}{f', {form}' if form else ''} | {agreed:.1%} | {rejected} | {accepted} |"


def main() -> None:
    """Train, or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("train", "rates"), nargs="?", default="train")
    parser.add_argument("--answers", type=Path)
    options = parser.parse_args()
    if options.command == "train":
        model = trained()
        content = model.to_bytes()
        (MODELS / f"{MODEL}.npz").write_bytes(content)
        sys.stdout.write(f"{len(model.weights)} features, {len(content):,} bytes, {model.sha256[:12]}\n")
        return
    lines = ["| set | agreement | right called wrong | wrong called right |", "| --- | --- | --- | --- |"]
    all_pairs = [pair for name in TRAINING for pair in pairs(name)]
    outcomes = cross_validated(all_pairs)
    for name in TRAINING:
        lines += table(f"{name}, cross-validated", [o for o in outcomes if o[0].source == name])
    sets = {"blind": pairs(BLIND)}
    if options.answers is not None:
        sets["LoCoMo"] = locomo_pairs(options.answers)
    for name, chosen in sets.items():
        lines += table(name, [(p, judge_text(p.question, (p.gold,), p.answer).correct) for p in chosen])
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
