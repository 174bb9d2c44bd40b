"""Parses bank files, which hold a phrase grammar, and expands their rules to text.

A bank file holds rules; a rule starts with ``== name`` and has one alternative per line. In an alternative

* ``{a|b|c}`` is a choice (an empty branch is allowed), ``[a]`` is ``{a|}``;
* ``<rule>`` expands another rule of the same bank;
* ``$slot`` inserts a value that the caller binds;
* ``^verb`` marks a verb that is inflected when a form is asked for;
* ``#`` opens a comment line.

Each speaker prefers one branch of a choice, the same each time.
"""

from __future__ import annotations

import math
import re
import zlib
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final, get_args

from memarena_masim.errors import MasimError
from memarena_masim.pack import Half
from memarena_masim.phrases.inflect import VerbForm, inflect
from memarena_masim.rng import Stream

LITERAL: Final = 0
CHOICE: Final = 1
RULE: Final = 2
SLOT: Final = 3
"""Kinds of nodes."""

_TOKEN = re.compile(r"[{}\[\]|]|<[a-z0-9_.]+>|[$][a-zA-Z_]+[0-9]?")
_SENTENCE_END = re.compile(r"(?<=[.?!]) ")
_LEAST_SPACES = 2
_VERB = re.compile(r"\^([a-z]+)")
SPLIT_FROM: Final = 4
"""Number of lines from which on a rule is divided into halves."""
LEANING: Final = 0.3
"""Share of the choices in which a speaker uses the preferred branch."""


class Rule:
    """A named list of alternatives. ``alternatives`` is filled when the bank is linked."""

    __slots__ = ("_sums", "alternatives", "name", "number")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.alternatives: list[Sequence_] = []
        self._sums: list[float] = []

    def draw(self, stream: Stream) -> Sequence_:
        """Draw an alternative by weight: those with more wordings are drawn more often."""
        sums = self._sums
        if not sums:
            sums = self._sums = list(
                accumulate(math.sqrt(min(400, 3 + ways(alternative))) for alternative in self.alternatives)
            )
        return self.alternatives[bisect(sums, stream.unit() * sums[-1])]


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an alternative; which fields matter depends on ``kind``."""

    kind: int
    text: str = ""
    branches: tuple[Sequence_, ...] = ()
    rule: Rule | None = None
    number: int = 0


Sequence_ = tuple[Node, ...]
"""One alternative of a rule, or one branch of a choice."""


def ways(sequence: Sequence_) -> float:
    """Return the number of wordings of an alternative; a reference to a rule counts as a fixed number."""
    total = 1.0
    for node in sequence:
        if node.kind == CHOICE:
            total *= sum(ways(branch) for branch in node.branches)
        elif node.kind == RULE:
            total *= 12
    return total


def wordings(sequence: Sequence_) -> list[str]:
    """Return every text of a sequence that refers to no rule, with slots as ``$name``."""
    texts = [""]
    for node in sequence:
        if node.kind == CHOICE:
            ends = [text for branch in node.branches for text in wordings(branch)]
        else:
            ends = [f"${node.text}" if node.kind == SLOT else node.text]
        texts = [text + end for text in texts for end in ends]
    return texts


@cache
def wordings_of(rule: Rule) -> tuple[str, ...]:
    """Return every wording of a rule, with slots as ``$name``."""
    return tuple(dict.fromkeys(text for line in rule.alternatives for text in wordings(line)))


@cache
def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, without those of fewer than three words ("I see.")."""
    return tuple(sentence for sentence in _SENTENCE_END.split(text) if sentence.count(" ") >= _LEAST_SPACES)


class Bank:
    """Rules from one or more files, linked and ready to expand."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self._wanted: dict[str, str] = {}
        """By name of a rule to which a line refers, the file and line of the first reference."""

    @property
    def wanted(self) -> frozenset[str]:
        """Return the names of the rules to which this bank's lines refer."""
        return frozenset(self._wanted)

    def _rule(self, name: str) -> Rule:
        if name not in self.rules:
            self.rules[name] = Rule(name, len(self.rules))
        return self.rules[name]

    def read(self, path: Path) -> None:
        """Add the rules of a file. MasimError names file and line of what cannot be parsed."""
        names: tuple[str, ...] = ()
        for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            where = f"{path.name}:{number}"
            if line.startswith("=="):
                names = tuple(line[2:].strip().split("/"))
                if len(names) not in (1, 3):
                    raise MasimError(f"{where}: one name expected, or three for the forms of verbs (do/did/doing)")
                continue
            if not names:
                raise MasimError(f"{where}: a line before the first '== rule'")
            if len(names) == 1:
                self.add(names[0], line, where)
            else:
                self.add_verbs(names, line, where)

    def add(self, name: str, line: str, where: str, form: VerbForm = "base") -> None:
        """Add one alternative to a rule."""
        self._rule(name).alternatives.append(self.compile(line, where, form))

    def add_verbs(self, names: Sequence[str], line: str, where: str) -> None:
        """Add one alternative to three rules: with its verbs in the base form, in the past and in ``-ing``."""
        for name, form in zip(names, get_args(VerbForm), strict=True):
            self.add(name, line, where, form)

    def compile(self, line: str, where: str, form: VerbForm = "base") -> Sequence_:
        """Parse one alternative."""
        line = _VERB.sub(lambda match: inflect(match.group(1), form), line)
        brackets: list[tuple[str, list[list[Node]]]] = [("", [[]])]
        """Those that are open: the mark that closes each ("": the whole line) and its branches so far."""
        read = 0
        for match in _TOKEN.finditer(line):
            closing, branches = brackets[-1]
            mark = match.group()
            if match.start() > read:
                branches[-1].append(Node(LITERAL, line[read : match.start()]))
            read = match.end()
            if mark in "{[":
                brackets.append(("}" if mark == "{" else "]", [[]]))
            elif mark == "|":
                if not closing:
                    raise MasimError(f"{where}: '|' outside of brackets in {line!r}")
                branches.append([])
            elif mark in "}]":
                if mark != closing:
                    raise MasimError(f"{where}: unbalanced {mark!r} in {line!r}")
                sequences = tuple(tuple(branch) for branch in branches)
                number = zlib.crc32(f"{read}:{line}".encode())
                choice = Node(CHOICE, branches=(*sequences, ()) if mark == "]" else sequences, number=number)
                brackets.pop()
                brackets[-1][1][-1].append(choice)
            else:
                branches[-1].append(self._reference(mark, where))
        closing, branches = brackets[-1]
        if closing:
            raise MasimError(f"{where}: missing {closing!r} in {line!r}")
        if read < len(line):
            branches[-1].append(Node(LITERAL, line[read:]))
        return tuple(branches[0])

    def _reference(self, mark: str, where: str) -> Node:
        if mark[0] == "<":
            name = mark[1:-1]
            self._wanted.setdefault(name, where)
            return Node(RULE, name, rule=self._rule(name))
        return Node(SLOT, mark[1:])

    def link(self, half: Half = "all", whole: Collection[str] = ()) -> None:
        """Check that every rule that is referred to has alternatives; keep those of one half of the bank.

        The first, third, … line of a rule belong to the tuning half, so that lines added at the end of a rule leave
        the others in their halves. Rules of fewer than ``SPLIT_FROM`` lines, and those named in ``whole``, belong to
        both halves.
        """
        for name, where in self._wanted.items():
            if not self._rule(name).alternatives:
                raise MasimError(f"{where}: <{name}> is not defined in any bank file")
        if half != "all":
            for rule in self.rules.values():
                if len(rule.alternatives) >= SPLIT_FROM and rule.name not in whole:
                    rule.alternatives = rule.alternatives[half == "held-out" :: 2]

    def slots_of(self, sequence: Sequence_) -> set[str]:
        """Return the names of the slots of an alternative, without those of rules to which it refers."""
        return _names(sequence, SLOT)


def _names(sequence: Sequence_, kind: int) -> set[str]:
    """Return the names of all nodes of a kind, in all branches."""
    names = {node.text for node in sequence if node.kind == kind}
    return names.union(*(_names(branch, kind) for node in sequence for branch in node.branches))


@dataclass(slots=True)
class Voice:
    """A speaker's preference for branches of choices (``leaning``).

    ``telling`` is how often the people present met the words before; each count has other branches, without chance.
    None: branches are drawn.
    """

    leaning: int = 0
    telling: int | None = None


@dataclass(slots=True)
class Scope:
    """The state of an expansion: the stream, the speaker, bound slots, and the alternatives used so far."""

    stream: Stream
    voice: Voice
    slots: Mapping[str, str]
    used: set[int] = field(default_factory=set)
    ways: int = 1
    """Number of combinations of branches so far, if ``telling`` decides."""

    def branch(self, node: Node) -> Sequence_:
        """Return a branch of a choice."""
        branches, voice = node.branches, self.voice
        if voice.telling is not None:
            step = voice.telling + (voice.telling // self.ways if self.ways > 1 else 0)
            self.ways *= len(branches)
            return branches[(node.number + step) % len(branches)]
        if self.stream.chance(LEANING):
            return branches[(voice.leaning * 7919 + node.number) % len(branches)]
        return branches[self.stream.below(len(branches))]

    def draw(self, rule: Rule) -> Sequence_:
        """Draw an alternative of ``rule``, if possible one that this conversation has not used."""
        alternatives = rule.alternatives
        count = len(alternatives)
        if count == 1:
            return alternatives[0]
        chosen = rule.draw(self.stream)
        if count > 5:
            used = self.used
            for _ in range(4):
                if id(chosen) not in used:
                    break
                chosen = rule.draw(self.stream)
            used.add(id(chosen))
        return chosen


def expand(sequence: Sequence_, scope: Scope, out: list[str]) -> None:
    """Append the words of one expansion of ``sequence`` to ``out``."""
    for node in sequence:
        kind = node.kind
        if kind == LITERAL:
            out.append(node.text)
        elif kind == CHOICE:
            expand(scope.branch(node), scope, out)
        elif kind == RULE:
            assert node.rule is not None
            expand(scope.draw(node.rule), scope, out)
        else:
            out.append(scope.slots[node.text])


def phrase(sequence: Sequence_, scope: Scope) -> str:
    """Return one expansion as text, with single spaces and without spaces before punctuation."""
    out: list[str] = []
    expand(sequence, scope, out)
    return tidy("".join(out))


_ARTICLE = re.compile(r"\b([Aa])n? (?=[*\"]?([A-Za-z]+))")
_GAP = re.compile(r"\s+([,.;:?!…])")
_DOUBLE = re.compile(r"[,;](?:\s*[,;])*\s*([,.;?!])")


def tidy(text: str) -> str:
    """Return ``text`` with single spaces, without spaces before punctuation and doubled commas."""
    text = _ARTICLE.sub(_article, " ".join(text.split()))
    text = _GAP.sub(r"\1", text)
    if _DOUBLE.search(text):
        text = _DOUBLE.sub(r"\1", text)
    return text


_CONSONANT_SOUND = ("uni", "use", "usu", "euro", "one", "once", "ukulele")
_VOWEL_SOUND = ("hour", "honest", "honour", "heir")


def _article(match: re.Match[str]) -> str:
    word = match.group(2).lower()
    vowel = word.startswith(_VOWEL_SOUND) or (word[0] in "aeiou" and not word.startswith(_CONSONANT_SOUND))
    return match.group(1) + ("n " if vowel else " ")
