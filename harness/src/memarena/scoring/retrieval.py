"""Retrieval diagnosis: how much evidence Search brought, and where wrong answers went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal

from memarena.scoring.figures import Errors, Retrieval
from memarena.scoring.results import QuestionScore, Retrieved
from memarena.scoring.retrieved_evidence import K


def retrieval(questions: Sequence[QuestionScore]) -> Retrieval | None:
    """Recall over the questions with evidence; None where no item says, or shows, where it came from."""
    all_retrieved = [q.retrieved for q in questions if q.retrieved is not None]
    with_evidence = [r for r in all_retrieved if r.evidence_sessions]
    claims = any(r.claims for r in all_retrieved)
    if not (claims or any(r.items_with_ids for r in all_retrieved)) or not with_evidence:
        return None
    ranks = [r.first_rank for r in with_evidence if r.first_rank is not None]
    return Retrieval(
        questions=len(with_evidence),
        k=K,
        recall_at_k=fmean([r.found_at_k / r.evidence_sessions for r in with_evidence]),
        recall_all=fmean([r.found / r.evidence_sessions for r in with_evidence]),
        complete_at_k=fmean([float(r.found_at_k == r.evidence_sessions) for r in with_evidence]),
        complete=fmean([float(r.found == r.evidence_sessions) for r in with_evidence]),
        first_rank_p50=float(median(ranks)) if ranks else None,
        found_any=len(ranks) / len(with_evidence),
        context_tokens=fmean([r.context_tokens for r in all_retrieved]),
        items=fmean([float(r.items) for r in all_retrieved]),
        basis=_basis(all_retrieved),
        claimed_recall_at_k=(
            fmean([r.claimed_at_k / r.evidence_sessions for r in with_evidence])
            if any(r.claims for r in all_retrieved)
            else None
        ),
        unsupported_claims=unsupported_claims(all_retrieved),
    )


def unsupported_claims(all_retrieved: Sequence[Retrieved]) -> float | None:
    """Share of the sessions named that the items cannot bear out; None where none is named or nothing was audited."""
    claims = sum(r.claims for r in all_retrieved)
    audited = any(r.audited_items for r in all_retrieved)
    return sum(r.unsupported_claims for r in all_retrieved) / claims if claims and audited else None


def _basis(all_retrieved: Sequence[Retrieved]) -> Literal["text", "claimed"]:
    """By text where at least half of the items are those of a memory that stores what was said."""
    verbatim = sum(r.audited_items - r.rewritten_items for r in all_retrieved)
    return "text" if 2 * verbatim >= sum(r.items for r in all_retrieved) else "claimed"


def errors(questions: Sequence[QuestionScore]) -> Errors | None:
    """Wrong answers by where they went wrong; None where nothing can be said of any."""
    stages = [q.stage for q in questions if q.stage is not None]
    if all(stage == "unknown" for stage in stages) and retrieval(questions) is None:
        return None
    return Errors(
        not_ingested=stages.count("not_ingested"),
        not_retrieved=stages.count("not_retrieved"),
        cut_from_prompt=stages.count("cut_from_prompt"),
        misread=stages.count("misread"),
        unknown=stages.count("unknown"),
    )
