"""How much of a question's evidence a search returned, and how much of it was in the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset.gold import ClozeGold

from memarena.log.projection import ProjectedItem
from memarena.log.records import Question
from memarena.scoring.results import Retrieved

K = 10
"""Recall of evidence counts the first ten items."""
BYTES_PER_TOKEN = 4
"""Context is counted as UTF-8 bytes over 4, the same for every reader."""


@dataclass(frozen=True, slots=True)
class RetrievedEvidence:
    """What was retrieved for one answer."""

    retrieved: Retrieved
    grep_choice: str | None
    """D1: the option that occurs most often in the items; None without a single best one."""


def retrieved_evidence(
    question: Question, found: Sequence[ProjectedItem], read: Sequence[ProjectedItem], shown: tuple[int, ...] | None
) -> RetrievedEvidence:
    """Compare what Search found, and the items that the answer was read from, with the evidence.

    Args:
        question: with its evidence and gold.
        found: items of Search.
        read: items that the answer was read from: those of Search, or of the backend's own search.
        shown: positions in ``read`` of the items in the prompt; None where that is not known.
    """
    gold = question.instance.gold
    evidence = set(question.instance.evidence_session_ids)
    ranks = [rank for rank, item in enumerate(found, 1) if evidence.intersection(item.session_ids)]
    kept = None if shown is None else [read[i] for i in shown if i < len(read)]
    retrieved = Retrieved(
        items=len(found),
        items_with_ids=sum(bool(item.session_ids) for item in found),
        context_tokens=sum(item.size_bytes for item in found) / BYTES_PER_TOKEN,
        evidence_sessions=len(evidence),
        found_at_k=_sessions(evidence, found[:K]),
        found=_sessions(evidence, found),
        read=_sessions(evidence, read),
        read_items=len(read),
        first_rank=ranks[0] if ranks else None,
        shown=None if kept is None else _sessions(evidence, kept),
        cut_items=None if kept is None else len(read) - len(kept),
    )
    return RetrievedEvidence(retrieved, grep_choice(gold, found) if isinstance(gold, ClozeGold) else None)


def _sessions(evidence: set[str], items: Sequence[ProjectedItem]) -> int:
    return len(evidence.intersection(s for item in items for s in item.session_ids)) if evidence else 0


def grep_choice(gold: ClozeGold, items: Sequence[ProjectedItem]) -> str | None:
    """The letter of the option that occurs most often in the items; None if none or several do."""
    context = "\n".join(item.text for item in items).casefold()
    counts = [len(re.findall(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", context)) for option in gold.options]
    best = max(counts, default=0)
    if best == 0 or counts.count(best) > 1:
        return None
    return chr(ord("A") + counts.index(best))
