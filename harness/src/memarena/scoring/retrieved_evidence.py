"""Counts how much of a question's evidence Search returned, and how much of it was in the prompt.

The counts are made while a log is read, as the texts of items are not kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memarena_dataset.gold import ClozeGold

from memarena.log.projection import ProjectedItem
from memarena.log.records import Question
from memarena.scoring.results import Retrieved
from memarena.scoring.sources import ItemSources, item_sources, suffices

RECALL_AT = 10
"""The k of recall at k: the number of first items of Search in which evidence is counted."""
BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 that count as one context token, the same for every reader."""

_sources = lru_cache(maxsize=1 << 16)(item_sources)
"""Cached, since one item is retrieved for many questions."""


@dataclass(frozen=True, slots=True)
class RetrievedEvidence:
    """Counts of the evidence retrieved for one answer."""

    retrieved: Retrieved
    most_mentioned_option: str | None
    """D1: letter of the option that occurs most often in the items, a baseline; None if there is no single one."""


def retrieved_evidence(
    question: Question,
    search_items: Sequence[ProjectedItem],
    items_read: Sequence[ProjectedItem],
    shown: tuple[int, ...] | None,
    session_of: Mapping[str, str],
) -> RetrievedEvidence:
    """Compare the items that Search returned, and those that the answer was read from, with the evidence.

    Args:
        question: has the evidence and the gold.
        search_items: items of Search.
        items_read: items that the answer was read from: those of Search, or of the backend's own search in Answer.
        shown: indices in ``items_read`` of the items in the prompt; None if unknown: then ``suffices`` assumes all.
        session_of: session id by id of each evidence turn.
    """
    gold = question.instance.gold
    evidence = set(question.instance.evidence_session_ids)
    sources = [_sources(item) for item in search_items]
    read_sources = sources if items_read is search_items else [_sources(item) for item in items_read]
    ranks = [rank for rank, source in enumerate(sources, 1) if evidence & source.counted]
    indices = None if shown is None else [index for index in shown if index < len(items_read)]
    in_prompt = items_read if indices is None else [items_read[index] for index in indices]
    retrieved = Retrieved(
        items=len(search_items),
        items_with_ids=sum(bool(source.counted) for source in sources),
        context_tokens=sum(item.size_bytes for item in search_items) / BYTES_PER_TOKEN,
        evidence_sessions=len(evidence),
        found_at_k=_count(evidence, sources[:RECALL_AT]),
        found=_count(evidence, sources),
        read=_count(evidence, read_sources),
        read_items=len(items_read),
        first_rank=ranks[0] if ranks else None,
        shown=None if indices is None else _count(evidence, [read_sources[index] for index in indices]),
        cut_items=None if indices is None else len(items_read) - len(indices),
        claimed_at_k=len(evidence.intersection(s for item in search_items[:RECALL_AT] for s in item.session_ids)),
        audited_items=sum(item.held is not None for item in search_items),
        rewritten_items=sum(source.rewritten for source in sources),
        claims=sum(source.claims for source in sources),
        unsupported_claims=sum(source.unsupported for source in sources),
        suffices=suffices(question.instance, [(item, _sources(item)) for item in in_prompt], session_of),
    )
    option = most_mentioned_option(gold, search_items) if isinstance(gold, ClozeGold) else None
    return RetrievedEvidence(retrieved, option)


def _count(evidence: set[str], sources: Sequence[ItemSources]) -> int:
    """Return the number of evidence sessions that at least one of the sources counts for."""
    return len(evidence.intersection(session for source in sources for session in source.counted)) if evidence else 0


def most_mentioned_option(gold: ClozeGold, items: Sequence[ProjectedItem]) -> str | None:
    """Return the letter of the option that occurs most often in the items; None if none does, or several do."""
    context = "\n".join(item.text for item in items).casefold()
    counts = [len(re.findall(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", context)) for option in gold.options]
    best = max(counts, default=0)
    if best == 0 or counts.count(best) > 1:
        return None
    return chr(ord("A") + counts.index(best))
