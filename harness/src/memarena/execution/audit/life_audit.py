"""Audits items and prompts: which turns they contain, and whether these were ingested into the namespace.

A backend's own source ids are not trusted: scores count the turns that its items really contain. A life is all that one
ego's memory ingests. Nothing here is on a timed path: a question is audited after its answer. The turns in an item are
written to the log with the item, so that scores follow from the log. Text that was never ingested, or that a prompt has
beyond the items, fails the question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from functools import cached_property
from math import inf
from typing import Generic, TypeVar

from memarena_answering import assets
from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Event, Session

from memarena.execution.audit.corpus_index import PASSAGE_WORDS, CorpusIndex
from memarena.execution.audit.life_index import Entry, LifeIndex, LifeText, words_of
from memarena.execution.audit.prompt_attribution import plain, prompt_text
from memarena.log.records import GatewayCall, HeldText, RetrievedItem

BEYOND = "under a bound the prompt holds words of the life that no item of Retrieved holds"
"""Cause of a failure: the prompt has text of the life outside the items, although the run bounds the context."""
NEVER_INGESTED = "holds words that were not ingested in this namespace"
"""Cause of a failure: an item or a prompt has text of the data set that this namespace has not received."""
_LEAST_PROMPT_WORDS = 8
"""Minimum words of a turn to be searched in a prompt, so that instructions do not match."""
_OWN_WORDS = 2
"""Consecutive words that an item may add between two texts of a life, such as a speaker's name."""
_QUOTED_CHARS = 60
MOST_WORDS = 2_000_000
"""Maximum words of all cached indexes together, and of a life that is audited: about 0.5 GB."""
# The fixed words of prompts, instructions above all: they are no sign of text beyond the items.
_SCAFFOLD = " ".join(str(text) for words in (assets.prompt_text(), assets.control_text()) for text in astuple(words))
_MAX_CACHED_CHARS = 20_000_000
"""Maximum characters of texts with cached audits: a text may be an item, or a whole day."""

V = TypeVar("V")


class _Cached(Generic[V]):
    """A cache of values by text; it is emptied when its texts exceed a limit."""

    def __init__(self) -> None:
        self._values: dict[str, V] = {}
        self._chars = 0

    def get(self, text: str) -> V | None:
        return self._values.get(text)

    def put(self, text: str, value: V, chars: int = 0) -> V:
        """Cache a value, which itself has ``chars`` characters, and return it."""
        if self._chars + len(text) + chars > _MAX_CACHED_CHARS:
            self._values.clear()
            self._chars = 0
        self._values[text] = value
        self._chars += len(text) + chars
        return value


class LifeAudit:
    """Audits texts against the life of one ego."""

    def __init__(self, index: LifeIndex, corpus: CorpusIndex) -> None:
        self._index = index
        self._corpus = corpus
        self._days = {(s.session_id, s.turn_id): s.day for entry in index.entries for s in entry.sources}
        self._entries_of = _Cached[tuple[list[int], float]]()
        self._passages = _Cached[tuple[int, list[tuple[float, str, LifeText]]]]()
        """By text: a day, and the passages not ingested by then; those for a later day are a subset."""

    def items(self, items: Iterable[RetrievedItem], day: int) -> tuple[RetrievedItem, ...]:
        """Return the items with the turns and sessions of the life through ``day`` that they contain."""
        return tuple(item.model_copy(update={"held": self._item(item, day)}) for item in items)

    def never_ingested(self, texts: Iterable[str], question: str, day: int) -> str:
        """Return the name of a turn or event with words of a text that no Ingest through ``day`` had; "" if none."""
        question_words = " ".join(words_of(question))
        for text in texts:
            cached = self._passages.get(text)
            if cached is None or cached[0] > day:
                passages = list(self._later_than(day, text))
                cached = self._passages.put(text, (day, passages), sum(len(words) for _, words, _ in passages))
            for since, words, source in cached[1]:
                if since > day and words not in question_words and not self._spans_texts(words, day):
                    return f"{NEVER_INGESTED}: {_name_of(source)}: “{words[:_QUOTED_CHARS]}…”"
        return ""

    def _spans_texts(self, passage: str, day: int) -> bool:
        """Whether a passage may span two texts of the life through ``day`` that follow each other in an item.

        It may also span a single text with one or two words of the item before or after it, such as a speaker's name.
        """
        words = self._index.numbers(passage.split())
        # The longest beginning that a text of the life has; without any, up to two words may be the item's own.
        first = next(
            (count for count in range(len(words), _OWN_WORDS, -1) if self._index.has_passage(words[:count], day)),
            _OWN_WORDS,
        )
        remainder = words[first:]
        return len(remainder) <= _OWN_WORDS or self._index.has_passage(remainder, day)

    def _later_than(self, day: int, text: str) -> Iterator[tuple[float, str, LifeText]]:
        """Yield the passages of a text that are in the data set but not in this life through ``day``.

        Each with the day on which this life has it (infinite: never), its words, and a turn or event with it.
        """
        words = words_of(text)
        for start, sources in self._corpus.sources(words):
            since = min(self._days.get((s.session_id, s.turn_id), inf) for s in sources)
            if since > day:
                yield since, " ".join(words[start : start + PASSAGE_WORDS]), sources[0]

    def beyond(self, items: Sequence[RetrievedItem], question: str, calls: Sequence[GatewayCall], day: int) -> str:
        """Return the name of a turn or event that a prompt has beyond items and question, in any order; "" if none."""
        prompt = prompt_text(calls)
        texts = (*(item.text for item in items), question)
        # The longest first: a short text may be a part of a longer one, which would then no longer match as a whole.
        for text in sorted({plain(text) for text in texts} - {""}, key=len, reverse=True):
            prompt = prompt.replace(text, "\n")
        if foreign := self.never_ingested((prompt,), question, day):
            return f"the prompt {foreign}"
        index = self._index
        words = index.numbers(words_of(prompt))
        known_numbers = [index.numbers(words_of(text)) for text in texts]
        in_order = index.entries_in(index.runs(words) - set[int]().union(*map(index.runs, known_numbers)))
        known_words = set[int]().union(*known_numbers, index.numbers(words_of(_SCAFFOLD)))
        scattered = index.scattered(set(words) - known_words)
        for position in (*in_order, *scattered):
            entry = index.entries[position]
            source = next((s for s in entry.sources if s.day <= day), None)
            if source is not None and entry.telling and len(entry.words) >= _LEAST_PROMPT_WORDS:
                return f"{BEYOND}: {_name_of(source)}: “{source.text[:_QUOTED_CHARS]}…”"
        return ""

    def _item(self, item: RetrievedItem, day: int) -> HeldText:
        """Return the turns and sessions that an item contains, with the share of its words that they cover.

        If a text of the item occurs in several sessions, only one that the item names counts.
        """
        positions, share = self._find_entries(item.text)
        entries = [self._index.entries[position] for position in positions]
        sources = [s for entry in entries for s in _sources(entry, item, day)]
        session_ids = list(dict.fromkeys(s.session_id for s in sources if s.session_id))
        for entry in entries:
            # Words that several sessions have support one of them: the first that the item names.
            having = {s.session_id: s for s in entry.sources if s.day <= day}
            if not having.keys() & set(session_ids):
                claimed_day = next((having[session] for session in item.session_ids if session in having), None)
                if claimed_day is not None:
                    session_ids.append(claimed_day.session_id)
                    sources.append(claimed_day)
        turns = dict.fromkeys(s.turn_id for s in sources if s.session_id)
        return HeldText(session_ids=tuple(session_ids), turn_ids=tuple(turns), verbatim_share=share)

    def _find_entries(self, text: str) -> tuple[list[int], float]:
        """Return the indices of the entries that a text contains, and the share of its words that they cover."""
        if (cached := self._entries_of.get(text)) is not None:
            return cached
        words = self._index.numbers(words_of(text))
        positions = self._index.entries_in(self._index.runs(words))
        share = round(self._index.covered(words, positions) / len(words), 2) if words else 0.0
        return self._entries_of.put(text, (positions, share))


class LifeAudits:
    """Audits for all egos of a data set; indexes are built when first needed, and cached up to a limit."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._by_ego: OrderedDict[str | None, tuple[LifeAudit | None, int]] = OrderedDict()

    def of(self, ego: str | None) -> LifeAudit | None:
        """Return the audit for an ego's projection; None: of the whole corpus. None for a life too large to index."""
        if ego in self._by_ego:
            self._by_ego.move_to_end(ego)
            return self._by_ego[ego][0]
        texts: list[LifeText] = []
        size = 0
        for text in _texts(self._dataset, ego):
            texts.append(text)
            size += len(text.text) // 5  # about five characters per word
            if size > MOST_WORDS:
                break
        audit = None if size > MOST_WORDS else LifeAudit(LifeIndex(texts), self._corpus)
        self._by_ego[ego] = audit, 0 if audit is None else size
        while sum(words for _, words in self._by_ego.values()) > MOST_WORDS:
            self._by_ego.popitem(last=False)
        return audit

    @cached_property
    def _corpus(self) -> CorpusIndex:
        return CorpusIndex(_texts(self._dataset, None))


def _texts(dataset: Dataset, ego: str | None) -> Iterator[LifeText]:
    for day in range(dataset.day_count):
        for session in dataset.day_sessions(ego, day):
            yield from _turns(session, day)
        yield from (_event(event, day) for event in dataset.day_events(ego, day))


def _turns(session: Session, day: int) -> Iterator[LifeText]:
    return (LifeText(turn.turn_id, session.session_id, day, turn.text) for turn in session.turns)


def _event(event: Event, day: int) -> LifeText:
    return LifeText(event.event_id, "", day, event.content)


def _sources(entry: Entry, item: RetrievedItem, day: int) -> Iterator[LifeText]:
    """Yield the turns and events of an entry through ``day``; none if it is not telling or several sessions have it.

    :meth:`LifeAudit._item` then adds a session that the item names.
    """
    if not entry.telling or len({s.session_id for s in entry.sources}) > 1:
        return
    yield from (s for s in entry.sources if s.day <= day)


def _name_of(source: LifeText) -> str:
    return f"turn {source.turn_id} of session {source.session_id}" if source.session_id else f"event {source.turn_id}"
