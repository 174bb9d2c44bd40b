"""Parses the ``ground_truth`` object of a question into a typed Gold (``parse_gold``).

Keys per family are those of the released files; ``docs/dataset-format.md`` lists them. Typed values are ours and
optional everywhere: ``values`` (all families), ``option_values`` (cloze), ``altered_values`` (counterfactual),
``changed_values`` (conflict), ``claim`` (abstain), ``sensitive_category``, ``sharing`` and ``friendship`` (permission).
Numbers as answers become text; a value that is an agent id becomes that agent's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from memarena_dataset.errors import FieldError
from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    FriendshipShown,
    Gold,
    PermissionGold,
    RubricGold,
    Sharing,
    TextGold,
)
from memarena_dataset.model import Family
from memarena_dataset.values import Value

R = TypeVar("R", bound=BaseModel)

_VALUES: TypeAdapter[tuple[Value, ...]] = TypeAdapter(tuple[Value, ...])
_LETTERED = re.compile(r"^\s*\(?([A-Za-z])[).:]\s*(.*\S)\s*$")
_ACTION_OF = {
    "disclose": "disclose",
    "allow": "disclose",
    "share": "disclose",
    "withhold": "withhold",
    "deny": "withhold",
    "refuse": "withhold",
    "abstain": "withhold",
}
_TRUTH_OF = {
    **dict.fromkeys(("true", "yes", "allow", "disclose"), True),
    **dict.fromkeys(("false", "no", "deny", "withhold"), False),
}

Truth = Mapping[str, Any]


def parse_gold(
    family: Family,
    ground_truth: Truth,
    *,
    query: str = "",
    ego: str | None = None,
    asker: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Gold:
    """Return the typed gold of an instance.

    Args:
        family: which file the instance is in.
        ground_truth: the object as read.
        query: the question; a cloze without an ``options`` list takes the lettered lines from it.
        ego: owner of the memory, for the self items of D6.
        asker: who asks (``asker_agent_id``), for the self items of D6.
        names: display name of each agent id.

    Raises:
        FieldError: a key is missing, contradicts another one or has a wrong type.
    """
    reader = _Reader(ground_truth, names or {})
    if family is Family.CLOZE:
        return _cloze(reader, query)
    if family is Family.PERMISSION:
        return _permission(reader, ego, asker)
    return _BY_FAMILY[family](reader)


class _Reader:
    """Typed access to the keys of one ``ground_truth``."""

    def __init__(self, truth: Truth, names: Mapping[str, str]) -> None:
        self.truth = truth
        self._names = names

    def has(self, key: str) -> bool:
        """Whether the key exists and its value is not empty."""
        return self.truth.get(key) not in (None, "", [], {})

    def text(self, *keys: str) -> str:
        """Return the value of the first of ``keys`` that is not empty, as text. Raises FieldError if there is none."""
        for key in keys:
            if self.has(key):
                return self._as_text(key, self.truth[key])
        raise FieldError(f"ground_truth.{keys[0]}", "missing or empty; a text is expected")

    def text_or_none(self, key: str) -> str | None:
        """Return the value as text, or None if it is missing or empty."""
        return self.text(key) if self.has(key) else None

    def answers(self, *keys: str) -> tuple[str, ...]:
        """Return the right answers under the first of ``keys`` that is not empty; a list holds alternatives."""
        for key in keys:
            if self.has(key):
                value = self.truth[key]
                items = value if isinstance(value, list) else [value]
                return tuple(self._as_text(key, item) for item in items)
        raise FieldError(f"ground_truth.{keys[0]}", "missing or empty; a text, a number or a list of them is expected")

    def joined(self, *keys: str) -> str:
        """Return the value as ``answers`` does, but a list holds parts of a single answer, joined by commas."""
        return ", ".join(self.answers(*keys))

    def flag(self, key: str) -> bool:
        """Return a truth value; False if it is missing."""
        return bool(self.has(key) and self._as_bool(key))

    def _as_bool(self, key: str) -> bool:
        value = self.truth[key]
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in _TRUTH_OF:
            return _TRUTH_OF[value.strip().lower()]
        raise FieldError(f"ground_truth.{key}", f"{value!r} is neither true nor false")

    def bool_or_none(self, key: str) -> bool | None:
        """Return a truth value, or None if it is missing."""
        return None if self.truth.get(key) in (None, "") else self._as_bool(key)

    def values(self, key: str = "values") -> tuple[Value, ...]:
        """Return the typed values under ``key``; empty if it is missing."""
        if not self.has(key):
            return ()
        try:
            return _VALUES.validate_python(self.truth[key])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            raise FieldError(f"ground_truth.{key}.{path}".rstrip("."), _reason(first)) from error

    def _as_text(self, key: str, value: Any) -> str:
        if isinstance(value, bool):
            return "Yes" if value else "No"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return f"{value:g}" if value != int(value) else str(int(value))
        if isinstance(value, str):
            text = value.strip()
            return self._names.get(text, text)
        if isinstance(value, list):
            return ", ".join(self._as_text(key, item) for item in value)
        raise FieldError(f"ground_truth.{key}", "a text, a number or a list of them is expected")


# ------------------------------------------------------------------ D1


def _cloze(reader: _Reader, query: str) -> ClozeGold:
    """Return the gold of a cloze: by its letter, else by the option that equals the word. Raises FieldError."""
    options = _options(reader, query)
    letters = [chr(ord("A") + position) for position in range(len(options))]
    letter = reader.text("answer_letter").strip(" ().:").upper() if reader.has("answer_letter") else None
    word = _cloze_word(reader)
    if letter is None:
        if word is None:
            raise FieldError("ground_truth.answer_letter", "missing; answer_letter or blank_word is expected")
        matches = [shown for shown, option in zip(letters, options, strict=True) if _same(option, word)]
        if len(matches) != 1:
            raise FieldError(
                "ground_truth.blank_word", f"{word!r} is {len(matches)} of the options; exactly one is expected"
            )
        letter = matches[0]
    if letter not in letters:
        raise FieldError("ground_truth.answer_letter", f"{letter!r} is not the letter of an option ({letters})")
    text = options[letters.index(letter)]
    if word is not None and not _same(word, text):
        raise FieldError("ground_truth.blank_word", f"{word!r}, but option {letter} is {text!r}")
    option_values = reader.values("option_values")
    if option_values and len(option_values) != len(options):
        raise FieldError("ground_truth.option_values", f"{len(option_values)} values for {len(options)} options")
    return ClozeGold(
        answer_letter=letter,
        answer_text=text,
        options=options,
        option_values=option_values,
        values=reader.values() or option_values[letters.index(letter) :][:1],
    )


def _cloze_word(reader: _Reader) -> str | None:
    """Return the word that fills a cloze's only blank; None if no key states it. Raises FieldError."""
    for key in ("blank_word", "answer_text", "answer"):
        if reader.has(key):
            return reader.text(key)
    if not reader.has("blanks"):
        return None
    blanks = reader.truth["blanks"]
    items = blanks if isinstance(blanks, list) else [blanks]
    if len(items) != 1:
        raise FieldError("ground_truth.blanks", f"{len(items)} blanks; exactly one is expected")
    item = items[0]
    if isinstance(item, Mapping):
        item = next((item[key] for key in ("answer", "word", "text") if key in item), item)
    if not isinstance(item, str):
        raise FieldError("ground_truth.blanks.0", "a text is expected")
    return item.strip()


def _options(reader: _Reader, query: str) -> tuple[str, ...]:
    """Return a cloze's options, from the gold or else from the query, without letters. Raises FieldError."""
    key = "options" if reader.has("options") else "choices"
    raw = reader.truth.get(key)
    if not raw:
        shown = lettered_options(query)
        if not shown:
            raise FieldError("ground_truth.options", "missing, and the query shows no lettered options")
        return shown
    if isinstance(raw, Mapping):
        raw = [raw[letter] for letter in sorted(raw)]
    if not isinstance(raw, list):
        raise FieldError(f"ground_truth.{key}", "a list of options is expected")
    if len(raw) == 1 and isinstance(raw[0], list):
        raw = raw[0]
    texts = [item.get("text") if isinstance(item, Mapping) else item for item in raw]
    for position, text in enumerate(texts):
        if not isinstance(text, str | int | float) or isinstance(text, bool) or not str(text).strip():
            raise FieldError(f"ground_truth.{key}.{position}", "a text is expected")
    if len(texts) < 2:
        raise FieldError(f"ground_truth.{key}", "at least two options are expected")
    return _without_letters([str(text).strip() for text in texts])


def _without_letters(texts: Sequence[str]) -> tuple[str, ...]:
    matches = [_LETTERED.match(text) for text in texts]
    if all(m and m.group(1).upper() == chr(ord("A") + index) for index, m in enumerate(matches)):
        return tuple(match.group(2) for match in matches if match)
    return tuple(texts)


def lettered_options(query: str) -> tuple[str, ...]:
    """Return the options that a query has as lines ``A) …``, ``B) …`` in order; empty if it has fewer than two."""
    options: list[str] = []
    for line in query.splitlines():
        match = _LETTERED.match(line)
        if match and match.group(1) == chr(ord("A") + len(options)):
            options.append(match.group(2))
    return tuple(options) if len(options) > 1 else ()


def query_with_options(query: str, options: Sequence[str]) -> str:
    """Return the query as it is sent: with its lettered options, which are added if the file has them separately."""
    if lettered_options(query) or all(option.casefold() in query.casefold() for option in options):
        return query
    lines = [f"{chr(ord('A') + index)}) {option}" for index, option in enumerate(options)]
    return "\n".join([query.rstrip(), *lines])


def _same(left: str, right: str) -> bool:
    return " ".join(left.split()).casefold() == " ".join(right.split()).casefold()


# ------------------------------------------------------------------ D2, D3, D4, D5


def _metadata(reader: _Reader) -> TextGold:
    value = reader.truth.get("value")
    answers = (reader.joined("value"),) if isinstance(value, list) else reader.answers("value", "answer")
    return TextGold(answers=answers, attribute=reader.text_or_none("attribute"), values=reader.values())


def _qa(reader: _Reader) -> TextGold | RubricGold:
    if "rubric" in reader.truth:
        return _rubric(reader)
    return TextGold(answers=reader.answers("answer", "answers"), values=reader.values())


def _rubric(reader: _Reader) -> RubricGold:
    sentences = reader.truth["rubric"]
    if not isinstance(sentences, list) or not sentences:
        raise FieldError("ground_truth.rubric", "a list of sentences, at least one, is expected")
    for position, sentence in enumerate(sentences):
        if not isinstance(sentence, str) or not sentence.strip():
            raise FieldError(f"ground_truth.rubric.{position}", "a sentence is expected")
    for key in ("answer", "answers", "values"):
        if reader.has(key):
            raise FieldError(f"ground_truth.{key}", "stands next to rubric; one of the two is expected")
    return RubricGold(rubric=tuple(sentence.strip() for sentence in sentences))


def _temporal(reader: _Reader) -> TextGold:
    return TextGold(
        answers=reader.answers("answer", "answers"),
        attribute=reader.text_or_none("temporal_type"),
        values=reader.values(),
    )


def _counterfactual(reader: _Reader) -> CounterfactualGold:
    return CounterfactualGold(
        real_fact=reader.joined("real_fact"),
        altered_detail=reader.joined("altered_detail"),
        values=reader.values(),
        altered_values=reader.values("altered_values"),
    )


def _conflict(reader: _Reader) -> ConflictGold:
    return ConflictGold(
        original_detail=reader.joined("original_detail"),
        changed_detail=reader.joined("changed_detail"),
        source_agent=reader.text_or_none("source_agent"),
        conflicting_agent=reader.text_or_none("conflicting_agent"),
        values=reader.values(),
        changed_values=reader.values("changed_values"),
    )


def _anaphora(reader: _Reader) -> AnaphoraGold:
    return AnaphoraGold(
        referent=reader.joined("referent"), antecedent_text=reader.joined("antecedent_text"), values=reader.values()
    )


def _confabulation(reader: _Reader) -> AbstainGold | TextGold:
    expected = reader.text("expected_response").lower()
    if expected == "answer":
        return TextGold(answers=reader.answers("correct_fact", "answer"), values=reader.values())
    if expected != "abstain":
        raise FieldError("ground_truth.expected_response", f"{expected!r}; abstain or answer is expected")
    return AbstainGold(
        adversarial_answer=reader.text_or_none("adversarial_answer"),
        claim=reader.values("claim"),
        values=reader.values(),
    )


# ------------------------------------------------------------------ D6


def _permission(reader: _Reader, ego: str | None, asker: str | None) -> PermissionGold:
    target = _code(reader, "target_agent")
    return PermissionGold(
        fact=reader.joined("fact"),
        expected_action=_action(reader),
        query_agent=_code(reader, "query_agent"),
        target_agent=target,
        permission_level=_code(reader, "permission_level"),
        sharing=_sharing(reader),
        sensitive_category=_code(reader, "sensitive_category"),
        friendship=_friendship(reader),
        autonomous_privacy=reader.flag("autonomous_privacy"),
        anonymous_querier=reader.flag("anonymous_querier"),
        known_requester=reader.flag("known_requester"),
        self_item=reader.flag("self_item") or (asker is not None and asker in (ego, target)),
        control=reader.flag("control"),
        values=reader.values(),
    )


def _code(reader: _Reader, key: str) -> str | None:
    value = reader.truth.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise FieldError(f"ground_truth.{key}", "a text or null is expected")


def _action(reader: _Reader) -> Any:
    disclosed = reader.bool_or_none("expected_disclosure")
    action: str | None = None
    if reader.has("expected_action"):
        word = reader.text("expected_action").lower()
        action = _ACTION_OF.get(word)
        if action is None:
            raise FieldError("ground_truth.expected_action", f"{word!r}; disclose or withhold is expected")
    if disclosed is None and action is None:
        raise FieldError("ground_truth.expected_action", "missing; disclose or withhold is expected")
    if disclosed is not None and action is not None and disclosed != (action == "disclose"):
        raise FieldError("ground_truth.expected_disclosure", f"{disclosed} contradicts expected_action {action!r}")
    return action or ("disclose" if disclosed else "withhold")


def _friendship(reader: _Reader) -> FriendshipShown | None:
    return _record(reader, "friendship", FriendshipShown)


def _sharing(reader: _Reader) -> Sharing | None:
    return _record(reader, "sharing", Sharing)


def _record(reader: _Reader, key: str, kind: type[R]) -> R | None:
    if not reader.has(key):
        return None
    try:
        return kind.model_validate(reader.truth[key])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(("ground_truth", key, *(str(part) for part in first["loc"])))
        raise FieldError(path, _reason(first)) from error


def _reason(first: ErrorDetails) -> str:
    return "a list is expected" if first["type"] == "tuple_type" else first["msg"].removeprefix("Value error, ")


_BY_FAMILY: Mapping[Family, Callable[[_Reader], Gold]] = {
    Family.METADATA: _metadata,
    Family.QA: _qa,
    Family.TEMPORAL: _temporal,
    Family.COUNTERFACTUAL: _counterfactual,
    Family.CONFLICT: _conflict,
    Family.ANAPHORA: _anaphora,
    Family.CONFABULATION: _confabulation,
    Family.WITNESS: _confabulation,
}
