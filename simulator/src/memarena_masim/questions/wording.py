"""Describes the content of a question, independent of its wording (``phrasing.py`` words it)."""

from __future__ import annotations

from dataclasses import dataclass

from memarena_masim.facts.catalogue import PersonForm


@dataclass(frozen=True, slots=True)
class Wanted:
    """The content of a question.

    ``kind`` names how it asks (a rule ``ask.<kind>`` of ``banks/questions/kinds.bank``); ``attribute``, ``item``,
    ``form`` and ``subject`` name the fact; ``slots`` are further words that the rule needs (a teller, an altered
    value); ``other`` is the second event of an interval.
    """

    kind: str
    attribute: str
    item: str
    form: PersonForm
    subject: str
    slots: tuple[tuple[str, str], ...] = ()
    other: Wanted | None = None
