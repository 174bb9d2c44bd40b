"""Defines how the abstention model is trained: its texts, its settings, and the sets on which it is measured."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memarena.judging.abstention import MODEL, declines
from memarena.judging.abstention_features import features_of

from judge_training.patterns import pattern_texts, stable_hash, wordings
from judge_training.task import DATA, INDEPENDENT, Case, Example, Rule, Settings, Task, text_of

TEXTS = DATA / "abstention"
_BY_HAND = 10.0
"""Weight of a single answer; one wording of a pattern without alternatives weighs 1."""
_STYLES = 2.0
"""Factor for the weights of the files of many styles."""
_PATTERNS = {
    "patterns.v1.toml.xz": 3,
    "mixed.v1.toml.xz": 4,
    "synthetic.v1.toml.xz": 3,
    "styles_first.v1.toml.xz": 3,
    "styles_second.v1.toml.xz": 3,
    "assistants.v1.toml.xz": 9,
}
"""Files of patterns, and the number of subjects with which each wording is filled."""
_SECTIONS = {"dont_know": True, "refuse": True, "declines": True, "answers": False, "neither": False}
"""Sections of a file of patterns, and whether their texts decline."""
_BESIDE_EVERY = 6
"""Every sixth wording is repeated with a clause before or after it."""
_TALK = "chatty.v1.tsv.xz"
_TALKS = 3000
"""Number of stretches of friendly talk."""
_OF_TALK = 6.0
"""Weight of a stretch of friendly talk."""
_WHO = ("he", "she", "they", "your sister", "the group")


@dataclass(frozen=True)
class Text:
    """A labelled answer. ``source`` is the text that it is a wording of."""

    question: str
    answer: str
    declines: bool
    weight: float
    source: str


@cache
def texts() -> tuple[Text, ...]:
    """Return every training text in a fixed order."""
    written = [*_from_tables(), *(text for name in _PATTERNS for text in _from_patterns(name))]
    return (*written, *_with_neutral_clause(written), *_talk())


def read_table(path: Path) -> Iterator[Case]:
    """Yield the rows ``label<TAB>question<TAB>answer``: ``+`` declines, ``-`` does not, ``#`` opens a comment."""
    for line in text_of(path).splitlines():
        if line and not line.startswith("#"):
            label, question, answer = line.split("\t")
            yield Case(label[0] == "+", question, answer.replace("\\n", "\n").replace("\\\\", "\\"))


def _from_tables() -> Iterator[Text]:
    for path in sorted(TEXTS.glob("*.tsv.xz")):
        for case in read_table(path):
            yield Text(case.question, case.answer, case.label, _BY_HAND, case.answer)


def _from_patterns(name: str) -> Iterator[Text]:
    """Yield the texts of a file of patterns; a pattern with many wordings weighs less per wording."""
    table = tomllib.loads(text_of(TEXTS / name))
    start = 0
    for section, label in _SECTIONS.items():
        patterns = table.get(section, ())
        for pattern, subject, answer, many in pattern_texts(patterns, table["subjects"], _PATTERNS[name], start):
            weight = many**-0.5 * (_STYLES if name.startswith("styles") else 1.0)
            yield Text(subject["question"], answer, label, weight, pattern)
        start += sum(len(wordings(pattern)) for pattern in patterns)


def _with_neutral_clause(written: Sequence[Text]) -> Iterator[Text]:
    """Yield texts again, with a clause before or after that does not change their label."""
    table = tomllib.loads(text_of(TEXTS / "patterns.v1.toml.xz"))
    clauses = [wording for pattern in table["beside"] for wording in wordings(pattern)]
    for position, text in enumerate(written):
        every = 1 if text.source == text.answer else _BESIDE_EVERY
        if position % every or not text.answer.strip():
            continue
        draw = stable_hash(text.question, text.answer)
        clause = clauses[draw % len(clauses)].replace("{who}", _WHO[draw % len(_WHO)])
        clause = clause[0].upper() + clause[1:]
        body = text.answer if text.answer.rstrip()[-1] in '.!?}*"' else f"{text.answer}."
        answer = f"{clause}. {body}" if draw % 5 < 2 else f"{body} {clause}."
        yield Text(text.question, answer, text.declines, text.weight, text.source)


def _talk() -> Iterator[Text]:
    """Yield friendly talk, one to four turns in a row, as answers to questions that it does not answer."""
    talk = list(read_table(TEXTS / _TALK))
    turns = [case.answer for case in talk]
    questions = [case.question for case in talk] + [
        case.question for path in sorted(TEXTS.glob("varied_*.tsv.xz")) for case in read_table(path)
    ]
    for number in range(_TALKS):
        draw = stable_hash("talk", number)
        chosen = [turns[stable_hash("turn", number, position) % len(turns)] for position in range(1 + draw % 4)]
        answer = " ".join(dict.fromkeys(chosen))
        yield Text(questions[draw % len(questions)], answer, False, _OF_TALK, answer)


def examples() -> list[Example]:
    """Return the training texts as features."""
    return [Example(features_of(t.answer, t.question), t.declines, t.weight, t.answer) for t in texts()]


def independent() -> Mapping[str, Sequence[Case]]:
    """Return sets by authors who did not know the judge, from which nothing was learned, by name."""
    sets: dict[str, Sequence[Case]] = {
        name: list(read_table(INDEPENDENT / f"declining_{name}.v1.tsv.xz")) for name in ("plain", "usual", "varied")
    }
    return {**sets, "third": of_patterns("third")}


def of_patterns(name: str) -> list[Case]:
    """Return every phrasing of a file with each of its subjects, and its real answers."""
    table = tomllib.loads(text_of(INDEPENDENT / f"declining_{name}.v1.toml.xz"))
    cases = []
    for kind in ("abstains", "answers"):
        for phrasing in table[kind]:
            for subject in table["subjects"]:
                answer = phrasing
                for word in ("topic", "value", "who"):
                    answer = answer.replace("{" + word + "}", subject[word])
                cases.append(Case(kind == "abstains", subject["question"], answer[0].upper() + answer[1:]))
        cases += [Case(kind == "abstains", question, answer) for question, answer in table["real"][kind]]
    return cases


def _rule_by_prefix(*marks: str) -> Rule:
    return Rule(f"features {', '.join(marks)}", without_features=lambda feature: feature.startswith(marks))


def _is_word_ngram(feature: str) -> bool:
    return ":" not in feature


TASK = Task(
    name=MODEL,
    settings=Settings(inverse_penalty=0.1, least_texts=3, least_weight=0.004),
    examples=examples,
    independent=independent,
    verdict=lambda case, model, skip: declines(case.answer, case.question, model=model, skip=skip),
    rules=(
        Rule("features: word n-grams", without_features=_is_word_ngram),
        _rule_by_prefix("c:"),
        _rule_by_prefix("reach:"),
        _rule_by_prefix("stem:"),
        _rule_by_prefix("next:", "stand:", "plain:"),
        _rule_by_prefix("opens:", "asked:", "another:", "fits:"),
        Rule("rule: an answer without a word of declining needs more", without_rule="unmarked"),
        Rule("rule: one sentence has to decline by itself", without_rule="sentence"),
    ),
    missed="declining answers missed",
    taken="other answers taken for declining",
)
