"""Checks a pack: its files can be read, its frames have their slots, and no name makes a gold ambiguous."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memarena_dataset.checks.overlap import function_words
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of
from pydantic import ValidationError

from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import Attribute, Catalogue, base, catalogue
from memarena_masim.pack import NAMES_READ, PUBLIC_PACK, Pack, PackHalf
from memarena_masim.pack_schema import at_line, line_of
from memarena_masim.phrases.grammar import Bank
from memarena_masim.phrases.library import Library, library
from memarena_masim.plan.events import event_kinds
from memarena_masim.questions.question_bank import Called, QuestionBank, question_bank
from memarena_masim.rng import Stream
from memarena_masim.world.build import pools

_EPOCH = date(2025, 1, 1)
_ITEMS = "questions/items.txt"
_OF_A_KIND = ("say.", "react.", "heard.", "noted.", "invite.", "more.", "change.")
"""Beginnings of the names of rules that belong to a kind of fact; a pack may have other kinds than the public one."""
_PLACE = re.compile(r"((?:scenes|facts|questions|world)/[a-z0-9_]+\.toml): ([\w.]+)(.*)", re.DOTALL)
"""The beginning of a message on a TOML file of a pack: its path and the key."""


@dataclass(frozen=True, slots=True)
class Words:
    """A pack that was read and linked: all words of its worlds."""

    facts: Catalogue
    questions: QuestionBank
    scenes: Library


def words_of_pack(pack: Pack) -> Words:
    """Read all files of a pack. MasimError names file, line and expectation of the first fault."""
    key = PackHalf(str(pack.folder), pack.sha256)
    try:
        words = Words(catalogue(key), question_bank(key), library(key))
        event_kinds(key)
        for attribute in words.facts.attributes.values():
            _draws(attribute)
        _same_kinds(words)
        _people(words, pools(key))
    except MasimError as error:
        raise MasimError(_located(pack.folder, str(error))) from error
    return words


def _located(folder: Path, message: str) -> str:
    """Return ``message`` with the path of the file that it names, and the line of the key."""
    match = _PLACE.match(message)
    if match is None:
        return f"{folder}: {message}" if str(folder) not in message else message
    path = folder / match.group(1)
    line = line_of(path.read_text(encoding="utf-8"), match.group(2).strip(".").split("."))
    return f"{at_line(path, line)}: {match.group(2)}{match.group(3)}"


def _draws(attribute: Attribute) -> None:
    """Check that every value that can be drawn is valid for its type."""
    for raw in (*attribute.kind.choices, None):
        try:
            if raw is None:
                attribute.kind.draw(Stream(attribute.key), _EPOCH)
            else:
                attribute.kind.said(raw, _EPOCH)
        except (ValidationError, ValueError) as error:
            file = "sensitive" if attribute.sensitive else "details"
            raise MasimError(
                f"facts/{file}.toml: {attribute.key}.values: {raw!r} is no {attribute.kind.type}"
            ) from error


def _same_kinds(words: Words) -> None:
    """Check that the rules and kinds of facts that MaSim's code names exist."""
    public, asked = catalogue(PUBLIC_PACK), question_bank(PUBLIC_PACK)
    for key in public.community:
        if key not in words.facts.community:
            raise MasimError(f"facts/community.toml: {key}: the section is missing")
    for file, bank, known in (
        ("facts/*.bank", words.facts.bank, public.bank),
        ("questions/kinds.bank", words.questions.kinds, asked.kinds),
        ("scenes/frame.bank", words.scenes.frame, library(PUBLIC_PACK).frame),
    ):
        for name in known.rules:
            if name not in bank.rules and not name.startswith(_OF_A_KIND):
                raise MasimError(f"{file}: the rule {name} is missing")


def _people(words: Words, pool: Mapping[str, Iterable[str]]) -> None:
    """Check that the hobbies, concerns and occupations of topics exist."""
    heads = {f"{kind}:{name}" for kind in ("hobby", "concern", "occupation") for name in pool[_POOL[kind]]}
    for topic in words.scenes.topics.values():
        if not heads & set(topic.heads):
            raise MasimError(f"scenes/{topic.key}.toml: topic.heads: none of them is in world/people.toml")


_POOL = {"hobby": "hobbies", "concern": "concerns", "occupation": "occupations"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a line of which ``text`` is a part. If ``doubtful``, a person must decide whether it is one."""

    file: str
    text: str
    problem: str
    doubtful: bool = False

    def line(self, folder: Path) -> str:
        """Return the finding with file and line; without a line if the text is not literally in the file (escapes)."""
        path = folder / self.file
        before, match, _ = path.read_text(encoding="utf-8").partition(self.text)
        return f"{at_line(path, before.count(chr(10)) + 1 if match else None)}: {self.problem}"


def findings(words: Words) -> list[Finding]:
    """Return the faults of a pack that make a gold wrong or ambiguous, and those that may do so."""
    return [*_slot_findings(words), *_name_findings(words)]


def refuse_faults(pack: Pack) -> None:
    """Raise MasimError with the first fault of a pack, from which no world can then be made."""
    words = words_of_pack(pack)
    first = next((finding for finding in findings(words) if not finding.doubtful), None)
    if first is not None:
        raise MasimError(f"{first.line(pack.folder)} (masim pack check lists every fault)")


def _slot_findings(words: Words) -> Iterator[Finding]:
    """Yield lines that lack a slot of all lines of the rule in the public pack, or have a slot of none of them."""
    public = Words(catalogue(PUBLIC_PACK), question_bank(PUBLIC_PACK), library(PUBLIC_PACK))
    for bank, known in (
        (words.facts.bank, public.facts.bank),
        (words.questions.kinds, public.questions.kinds),
        (words.scenes.frame, public.scenes.frame),
    ):
        allowed, needed = _slots(known, public.facts)
        for name, rule in bank.rules.items():
            group = _group(name, words.facts)
            for number, line in enumerate(rule.alternatives, 1):
                slots = bank.slots_of(line)
                extra = slots - allowed.get(group, slots)
                lacking = needed.get(group, set()) - slots
                if group.startswith("say.*") and not slots & {"v", "n"}:
                    lacking = lacking | {"v"}
                if extra or lacking:
                    what = f"has ${min(extra)}, which has no value" if extra else f"lacks ${min(lacking)}"
                    file = _file_of(name, words.facts)
                    yield Finding(file, _heading(file, name), f"{name}, line {number} of it: {what}")
    file = "questions/details.toml"
    for key, asked in words.questions.details.items():
        for text in (*asked.ask, *asked.clause, *asked.about, *asked.plain, *asked.now, *asked.earlier):
            if "$it" not in text and "$own" not in text:
                yield Finding(file, text, f"{key}: lacks $it or $own: {text!r}")
        for text in asked.plain:
            if "$v" not in text and "$n" not in text:
                yield Finding(file, text, f"{key}: plain: lacks $v or $n: {text!r}")


def _heading(file: str, rule: str) -> str:
    """Return the text that opens the section of a rule in its file."""
    if file.endswith(".bank"):
        return f"== {rule}"
    kind = rule.split(".")[1]
    return {"find": "say = [", "fate": "fate = [", "happening": "[say]"}.get(kind, f"[{kind}]")


def _slots(bank: Bank, known: Catalogue) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return by group of rules the slots that a line may have, and those that every line has."""
    allowed: dict[str, set[str]] = {}
    needed: dict[str, set[str]] = {}
    for name, rule in bank.rules.items():
        group = _group(name, known)
        for line in rule.alternatives:
            slots = bank.slots_of(line)
            allowed.setdefault(group, set()).update(slots)
            needed[group] = needed.get(group, slots) & slots
    return allowed, needed


def _group(name: str, known: Catalogue) -> str:
    """Return the group of a rule: rules of all details are one group, and those of all moods."""
    parts = name.split(".")
    if len(parts) > 1 and (parts[1] in known.attributes or parts[1] in set(known.moods.values())):
        parts[1] = "*"
    return ".".join(parts)


def _file_of(rule: str, known: Catalogue) -> str:
    """Return the file of a pack that has a rule, from the rule's name."""
    start, _, rest = rule.partition(".")
    kind = rest.split(".")[0]
    if start in ("more", "invite"):
        own = start == "invite" and kind in known.attributes
        return "facts/invites.toml" if own else "facts/more.bank" if start == "more" else "facts/invites.bank"
    if start in ("heard", "noted"):
        return "facts/reactions.toml"
    if start in ("say", "react", "change"):
        if kind in known.attributes:
            return f"facts/{'sensitive' if known.attributes[kind].sensitive else 'details'}.toml"
        if kind in known.community:
            return "facts/community.toml"
        files = {"find": "finds", "fate": "finds", "friends": "ties", "not_friends": "ties"}
        return f"facts/{files.get(kind, 'happenings')}.toml"
    files = {"level": "facts/levels.bank", "prompt": "facts/prompts.bank", "ask": "questions/kinds.bank"}
    return files.get(start, "scenes/frame.bank")


def _name_findings(words: Words) -> Iterator[Finding]:
    """Yield names that fit two things, say more or less than the thing, or contain a value of it."""
    facts, questions = words.facts, words.questions
    stale = set(questions.names_read)
    for attribute in facts.attributes.values():
        called = {item: questions.items[attribute.key, item] for item in attribute.items}
        for item, other_name, problem, doubtful in name_problems(called):
            if not (doubtful and (attribute.key, item, other_name) in questions.names_read):
                yield Finding(_ITEMS, f"{attribute.key} | {item}", f"{attribute.key}: {problem}", doubtful)
            stale.discard((attribute.key, item, other_name))
        values = attribute.kind.choices if attribute.kind.type in ("name", "place", "term") else ()
        file = f"facts/{'sensitive' if attribute.sensitive else 'details'}.toml"
        for value in values:
            for item, known in called.items():
                name = next((name for name in _names(item, known) if phrase_occurs(value, normal(name))), None)
                if name is not None:
                    problem = f"{attribute.key}: {name!r} holds the value {value!r}"
                    yield Finding(_ITEMS, f"{attribute.key} | {item}", problem)
            other = next((other for other in values if other != value and phrase_occurs(value, normal(other))), None)
            if other is not None:
                problem = f"{attribute.key}: the value {other!r} holds the value {value!r}"
                yield Finding(file, f'"{other}"', problem)
    for file, kind, table in (
        ("questions/happenings.txt", "happening", questions.happenings),
        ("questions/finds.toml", "find", questions.sources),
        ("questions/finds.toml", "find", questions.fates),
    ):
        plain = {
            base(thing): Called(tuple(map(base, one.names)), base(one.description)) for thing, one in table.items()
        }
        for thing, name, problem, doubtful in name_problems(plain):
            if not (doubtful and (kind, thing, name) in questions.names_read):
                yield Finding(file, thing, problem, doubtful)
            stale.discard((kind, thing, name))
    for row in sorted(stale):
        line = " | ".join(row)
        yield Finding(NAMES_READ, line, f"{line}: no other name with more words than its thing")


def _names(item: str, called: Called) -> Sequence[str]:
    return [name for name in (item, *called.names, called.description) if name]


def name_problems(called: Mapping[str, Called]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (thing, one of its names, fault of it, whether doubtful) for the things of one kind of question."""
    owners: dict[str, str] = {}
    content = {item: _content(item) for item in called}
    for item, one in called.items():
        for name in _names(item, one):
            owner = owners.setdefault(normal(name), item)
            if owner != item:
                yield item, name, f"{name!r} is a name of {owner!r} and of {item!r}", False
        for name in one.names:
            words = _content(name)
            wider = next((other for other in called if other != item and words and words <= content[other]), None)
            if wider is not None:
                yield item, name, f"{name!r} is wider than {item!r}: it fits {wider!r} too", False
            elif words > content[item]:
                yield item, name, f"{name!r} says more than {item!r}: {', '.join(sorted(words - content[item]))}", True


def _content(name: str) -> frozenset[str]:
    return frozenset(tokens_of(name)) - function_words()
