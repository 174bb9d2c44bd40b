"""Reads the kinds of facts that people can state from a pack, together with the phrases that word them.

The planner draws facts from this catalogue, and questions are built and checked with it. The kinds of facts: a
*detail* (a person's value for an attribute and item), a *happening* (what a person did on a day), a *find* (a thing
that a person got, from a source, and its *fate*), a *tie* (whether two people are friends), and *community* (homes,
jobs, groups).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from memarena_dataset.values import AmountValue, NameValue, PlaceValue, TermValue, TimeValue, Value, WeekdayValue
from memarena_dataset.values.generous import numbers_in
from memarena_dataset.values.phrases import normal, phrase_occurs, spellings

from memarena_masim.errors import MasimError
from memarena_masim.facts.values import ValueKind
from memarena_masim.pack import PUBLIC_PACK, PackHalf
from memarena_masim.phrases.grammar import Bank
from memarena_masim.phrases.inflect import inflect
from memarena_masim.phrases.library import folder_of, library, may_arise, scene_files
from memarena_masim.toml_text import parsed

PersonForm = Literal["own", "you", "told", "they"]
"""How a line refers to the fact's subject: as the speaker, as the person spoken to, by name, or by a pronoun."""

_VERB = re.compile(r"\^([a-z]+)")
_AGREEING = re.compile(r"\(([a-z']+)/([a-z']+)\)")
"""``(have/has)``: the form of a verb for I, you and they, and that for a name."""
_PRONOUN = re.compile(r"\$(I|my|me|their|they)\b")
_WORDS: dict[PersonForm, dict[str, str]] = {
    "own": {"I": "I", "my": "my", "me": "me", "their": "my", "they": "I"},
    "you": {"I": "you", "my": "your", "me": "you", "their": "your", "they": "you"},
    "told": {"I": "$subject", "my": "$subject's", "me": "$subject", "their": "their", "they": "they"},
    "they": {"I": "they", "my": "their", "me": "them", "their": "their", "they": "they"},
}
_NAMED_HOURS = ("00:00", "12:00")
"""Times that have their own word: noon and midnight may come up in any talk."""
_FEWEST_ITEMS = 2
"""Minimum items of a detail: one that questions may be about, one that is only mentioned."""
SENSITIVE_CLASSES = ("credentials", "identity_number", "payment_number", "medical", "home_address")
_NOT_NEWS = ("credentials", "identity_number", "payment_number", "home_address")
"""Sensitive classes whose facts a person never gives as an answer to "What's new?"."""


def in_person(line: str, form: PersonForm) -> str:
    """Return a line of a data file in the person ``form``: with pronouns filled in and verbs agreed."""
    group = 2 if form == "told" else 1
    line = _AGREEING.sub(lambda match: match.group(group), line)
    return _PRONOUN.sub(lambda match: _WORDS[form][match.group(1)], line)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A kind of detail, of which a person has one value per item (``kind`` draws it)."""

    key: str
    category: str
    sensitive: str
    kind: ValueKind
    items: tuple[str, ...]
    plain: str
    """A sentence that states the value."""
    about: str
    """A clause that names the detail: ``what $I paid for $item``."""
    ask: str
    """The plain question for the value."""
    confidential: bool = False
    """Whether some of it is told in confidence; a sensitive attribute always is."""
    changes: bool = False
    """Whether a person's value can change in the course of a world."""

    @property
    def is_news(self) -> bool:
        """Whether such a fact may answer a friend who asks what is new."""
        return self.sensitive not in _NOT_NEWS

    def fill(self, line: str, form: PersonForm, item: str, value: str = "", number: str = "", subject: str = "") -> str:
        """Return ``line`` (``plain``, ``about`` or ``ask``) with its slots filled."""
        text = in_person(line, form).replace("$item", item).replace("$subject", subject)
        text = text.replace("$v", value).replace("$n", number or value)
        return text[0].upper() + text[1:] if line is self.ask else text


@dataclass(frozen=True, slots=True)
class CommunityKind:
    """A kind of fact about homes, workplaces or groups: ``ask`` has its questions."""

    key: str
    ask: tuple[str, ...]

    def fill(self, line: str, form: PersonForm, subject: str, group: str) -> str:
        """Return a line of ``ask`` with its slots filled."""
        text = in_person(line, form).replace("$subject", subject).replace("$group", group)
        return text[0].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All facts that can be stated, and the bank that words them."""

    attributes: dict[str, Attribute]
    community: dict[str, CommunityKind]
    happenings: tuple[str, ...]
    moods: Mapping[str, str]
    """Mood in which a listener reacts to each happening, by its base form."""
    doings: Mapping[str, str]
    """The -ing form of each happening, by its base form: ``having the boiler serviced``."""
    topics: Mapping[str, str]
    """What people call a fact, by kind of detail and of community: ``$my deadline for $item``."""
    finds: tuple[str, ...]
    """Things that a person may get."""
    sources: tuple[str, ...]
    """Where they come from: ``the harbour flea market``."""
    fates: tuple[str, ...]
    """What may become of them, as verb phrases."""
    bank: Bank
    common: str
    """Normal form of all banks except for details, to find items that only details bring up."""

    details: str
    """Normal form of the items, values and templates of details, with each item once."""
    common_numbers: frozenset[float]
    """Numbers that ``common`` spells out."""
    themes: tuple[frozenset[str], ...]
    """Sets of kinds of facts that fit into one talk: attributes, community kinds, ``happening``, ``find``, ``tie``."""
    themes_of_topics: Mapping[str, frozenset[str]]
    """By topic of a scene, the kinds of facts that may follow it; topics to which any fit are left out."""
    pack: PackHalf

    def distinctive(self, item: str) -> bool:
        """Whether an item's words come up only in statements about it."""
        if phrase_occurs(item, self.common) or _nearly(item, self.common) or may_arise(item, self.pack):
            return False
        needle = normal(item).strip().removeprefix("the ")
        return self.details.count(f" {needle} ") <= 1

    def everyday(self, value: Value) -> bool:
        """Whether a value's words may come up in any talk, so that they do not tell a fact that has this value."""
        if isinstance(value, WeekdayValue) or (isinstance(value, TimeValue) and value.time in _NAMED_HOURS):
            return True
        if isinstance(value, AmountValue):
            return value.amount in self.common_numbers
        if isinstance(value, NameValue | PlaceValue | TermValue):
            return any(phrase_occurs(form, self.common) for form in spellings(value))
        return False


@cache
def _nearly(item: str, common: str) -> bool:
    """Whether an item's words are so close in the banks that a choice may make them adjacent."""
    words = item.lower().removeprefix("the ").split()
    gap = rf"(?: \S+){{0,{_CHOICE_WORDS}}} "
    return len(words) > 1 and re.search(rf" {gap.join(map(re.escape, words))} ", common) is not None


_CHOICE_WORDS = 4
"""Maximum number of words that a choice between two words of an item may insert."""


def did(phrase: str) -> str:
    """Return the verb phrase of a happening in the past: ``had the boiler serviced``."""
    return _VERB.sub(lambda match: inflect(match.group(1), "past"), phrase)


def doing(phrase: str) -> str:
    """Return the verb phrase of a happening in its -ing form: ``having the boiler serviced``."""
    return _VERB.sub(lambda match: inflect(match.group(1), "ing"), phrase)


def base(phrase: str) -> str:
    """Return the verb phrase of a happening in its base form."""
    return _VERB.sub(lambda match: match.group(1), phrase)


@cache
def catalogue(pack: PackHalf = PUBLIC_PACK) -> Catalogue:
    """Read the facts of a pack, worded from one half or both. MasimError names file and key of the first fault."""
    library(pack)
    facts = folder_of(pack) / "facts"
    bank = Bank()
    attributes: dict[str, Attribute] = {}
    changes = _toml(facts, "changes")
    for name in ("details", "sensitive"):
        for key, row in _toml(facts, name).items():
            attributes[key] = _attribute(key, row, f"facts/{name}.toml: {key}", key in changes["attributes"])
            _rules(bank, key, row["say"], f"facts/{name}.toml: {key}")
            _reactions(bank, key, row, f"facts/{name}.toml: {key}")
    _change_rules(bank, attributes, changes)
    community = {key: _community(bank, key, row) for key, row in _toml(facts, "community").items()}
    happenings, finds, ties = _toml(facts, "happenings"), _toml(facts, "finds"), _toml(facts, "ties")
    _rules(bank, "happening", happenings.pop("say")["lines"], "facts/happenings.toml: say")
    for mood, row in happenings.items():
        _reactions(bank, mood, row, f"facts/happenings.toml: {mood}")
    _rules(bank, "find", finds["say"], "facts/finds.toml: say")
    _rules(bank, "fate", finds["fate"], "facts/finds.toml: fate")
    for key in ("friends", "not_friends"):
        _rules(bank, key, ties[key]["say"], f"facts/ties.toml: {key}")
    bank.read(facts / "levels.bank")
    bank.read(facts / "prompts.bank")
    bank.read(facts / "invites.bank")
    for key, row in _toml(facts, "invites").items():
        if key not in attributes:
            raise MasimError(f"facts/invites.toml: {key!r} is no section of details.toml or sensitive.toml")
        if not _is_asked_for(attributes[key]):
            raise MasimError(f"facts/invites.toml: {key}: no friend asks for a fact of this kind")
        if not row.get("invite"):
            raise MasimError(f"facts/invites.toml: {key}: invite is missing")
        _invites(bank, key, row["invite"])
    bank.read(facts / "probes.bank")
    bank.read(facts / "more.bank")
    kinds = (*attributes, *community, *happenings, "find", "fate", *ties)
    for name, rules in (
        ("invites.toml", [f"invite.{key}" for key, kind in attributes.items() if _is_asked_for(kind)]),
        ("invites.bank", ["invite.fate"]),
        ("more.bank", [f"more.{kind}" for kind in (*kinds, "told", "change")]),
    ):
        missing = [rule for rule in rules if rule not in bank.rules]
        if missing:
            raise MasimError(f"facts/{name}: {missing[0]} is missing")
    _no_stray_rules(bank, kinds, ties)
    topics = _taking_up(bank, _toml(facts, "reactions"), (*attributes, *community))
    rows = _toml(facts, "themes")
    topics_of_themes = rows.pop("topics", {})
    themes = _themes(rows, (*attributes, *community, "happening", "find", "tie"))
    bank.link(pack.half)
    common = _common_words(pack)
    return Catalogue(
        attributes,
        community,
        tuple(item for row in happenings.values() for item in row["items"]),
        {base(item): mood for mood, row in happenings.items() for item in row["items"]},
        {base(item): doing(item) for row in happenings.values() for item in row["items"]},
        topics,
        tuple(finds["things"]),
        tuple(f"the {location} {kind}" for location in finds["source_places"] for kind in finds["source_kinds"]),
        tuple(finds["fates"]),
        bank,
        common,
        _detail_words(attributes),
        numbers_in(common),
        tuple(themes.values()),
        _themes_of_topics(topics_of_themes, themes),
        pack,
    )


def _is_asked_for(kind: Attribute) -> bool:
    """Whether a friend who heard such a fact may ask for it again."""
    return kind.is_news and (kind.changes or kind.confidential)


def _themes(rows: Mapping[str, Any], kinds: tuple[str, ...]) -> dict[str, frozenset[str]]:
    themes = {name: frozenset(members) for name, members in rows.items()}
    for name, theme in themes.items():
        if theme - set(kinds):
            raise MasimError(f"facts/themes.toml: {name}: {min(theme - set(kinds))!r} is no kind of fact")
    missing = set(kinds) - frozenset[str]().union(*themes.values())
    if missing:
        raise MasimError(f"facts/themes.toml: {min(missing)!r} is in no theme")
    return themes


def _themes_of_topics(
    rows: Mapping[str, Sequence[str]], themes: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    for topic, names in rows.items():
        unknown = [name for name in names if name not in themes]
        if unknown:
            raise MasimError(f"facts/themes.toml: topics.{topic}: {unknown[0]!r} is no theme")
    return {topic: frozenset[str]().union(*(themes[name] for name in names)) for topic, names in rows.items()}


def _detail_words(attributes: dict[str, Attribute]) -> str:
    parts: list[str] = []
    for attribute in attributes.values():
        parts += [*attribute.items, *attribute.kind.choices, attribute.plain, attribute.about, attribute.ask]
    return "".join(map(normal, parts))


def _common_words(pack: PackHalf) -> str:
    folder, paths = folder_of(pack), scene_files(pack)
    facts = (
        "happenings.toml",
        "finds.toml",
        "ties.toml",
        "community.toml",
        "changes.toml",
        "invites.toml",
        "reactions.toml",
    )
    banks = ("levels.bank", "invites.bank", "more.bank", "probes.bank", "prompts.bank")
    paths += [folder / "facts" / name for name in (*facts, *banks)]
    paths += [folder / "facts" / "events.toml", folder / "world" / "people.toml"]
    return normal(" ".join(re.sub(r"[^A-Za-z' ]", " ", path.read_text(encoding="utf-8")) for path in paths))


def _toml(facts: Path, name: str) -> dict[str, Any]:
    path = facts / f"{name}.toml"
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"facts/{name}.toml: {error}") from error


def _rules(bank: Bank, key: str, lines: list[str], where: str) -> None:
    forms: tuple[PersonForm, ...] = ("own", "told")
    for form in forms:
        for line in lines:
            bank.add(f"say.{key}.{form}", in_person(line, form), where)


def _invites(bank: Bank, key: str, lines: list[str]) -> None:
    """Add the questions about a detail of the person who is asked."""
    for line in lines:
        bank.add(f"invite.{key}", f"{in_person(line, 'you')}?", f"facts/invites.toml: {key}")


def _no_stray_rules(bank: Bank, kinds: Sequence[str], ties: Collection[str]) -> None:
    """Raise MasimError for a question or addition to a kind of fact that does not exist: it would never be said."""
    used_rules = {f"more.{kind}" for kind in (*kinds, "told", "change")}
    used_rules |= {f"invite.{kind}" for kind in kinds}
    used_rules |= {f"why.{kind}" for kind in (*kinds, "tie")} - {"why.fate", *(f"why.{tie}" for tie in ties)}
    for name in bank.rules:
        if name.startswith(("invite.", "more.", "why.")) and name not in used_rules:
            raise MasimError(f"facts/invites.bank, more.bank: {name}: there is no such kind of fact")


def _reactions(bank: Bank, key: str, row: dict[str, Any], where: str) -> None:
    """Add the rule of a listener's reactions to a fact of this kind, about any person."""
    if not row.get("react"):
        raise MasimError(f"{where}: react is missing")
    for line in row["react"]:
        bank.add(f"react.{key}", line, f"{where}.react")


def _taking_up(bank: Bank, rows: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, str]:
    """Add the lines by which a person or an assistant takes up a fact of each kind; return the kinds' topics."""
    for key in (*kinds, *rows):
        if key not in rows:
            raise MasimError(f"facts/reactions.toml: {key} is missing")
        if key not in kinds:
            raise MasimError(f"facts/reactions.toml: {key!r} is no section of details, sensitive or community.toml")
        row, where = rows[key], f"facts/reactions.toml: {key}"
        heard, noted = ([line.replace("$topic", row["topic"]) for line in row[part]] for part in ("heard", "noted"))
        for line in heard:
            bank.add(f"heard.{key}.own", in_person(line, "you"), where)
            bank.add(f"heard.{key}.told", in_person(line, "told"), where)
        for line in noted:
            bank.add(f"noted.{key}", in_person(line, "you"), where)
    return {key: row["topic"] for key, row in rows.items()}


def _change_rules(bank: Bank, attributes: dict[str, Attribute], changes: dict[str, Any]) -> None:
    """Add rules for every detail that can change: sentences that announce a change and then give the new value."""
    for key in changes["attributes"]:
        if key not in attributes or attributes[key].sensitive:
            raise MasimError(f"facts/changes.toml: attributes: {key!r} is no section of facts/details.toml")
        for line in changes["lead"]:
            if "<say>" not in line:
                raise MasimError(f"facts/changes.toml: lead: {line!r} lacks <say>")
            lead = in_person(line, "own").replace("<say>", f"<say.{key}.own>")
            bank.add(f"change.{key}.own", lead, "facts/changes.toml: lead")


def _community(bank: Bank, key: str, row: dict[str, Any]) -> CommunityKind:
    where = f"facts/community.toml: {key}"
    for field in ("ask", "say"):
        if not row.get(field):
            raise MasimError(f"{where}: {field} is missing")
    _rules(bank, key, row["say"], where)
    _reactions(bank, key, row, where)
    return CommunityKind(key, tuple(row["ask"]))


def _attribute(key: str, row: dict[str, Any], where: str, changes: bool) -> Attribute:
    """Return an attribute of a data file. MasimError names the first field that is missing or wrong."""
    for field in ("category", "type", "values", "items", "plain", "about", "ask", "say"):
        if field not in row:
            raise MasimError(f"{where}: {field} is missing")
    sensitive = row.get("sensitive", "")
    if sensitive and sensitive not in SENSITIVE_CLASSES:
        raise MasimError(f"{where}.sensitive: {sensitive!r}; one of {', '.join(SENSITIVE_CLASSES)} is expected")
    kind = ValueKind.parse(row["type"], row.get("unit", ""), row["values"], where)
    items = tuple(row["items"])
    if len(items) < _FEWEST_ITEMS:
        raise MasimError(f"{where}.items: {len(items)}; at least {_FEWEST_ITEMS} are expected")
    confidential = bool(sensitive) or row.get("confidential", False)
    plain, about, ask = row["plain"], row["about"], row["ask"]
    return Attribute(key, row["category"], sensitive, kind, items, plain, about, ask, confidential, changes)
