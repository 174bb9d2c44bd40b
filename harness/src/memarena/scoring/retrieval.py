"""Computes how much of the evidence Search returned, and counts wrong answers by the stage at which they went wrong.

An item *claims* the sessions that it names by id. It is *audited* if its text was compared with what was ingested.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal

from memarena.scoring.figures import Errors, Retrieval
from memarena.scoring.results import QuestionScore, Retrieved
from memarena.scoring.retrieved_evidence import RECALL_AT


def retrieval(questions: Sequence[QuestionScore]) -> Retrieval | None:
    """Compute recall over the questions with evidence; None without any, or if no item has a known source."""
    all_retrieved = [q.retrieved for q in questions if q.retrieved is not None]
    with_evidence = [r for r in all_retrieved if r.evidence_sessions]
    claims = any(r.claims for r in all_retrieved)
    if not (claims or any(r.items_with_ids for r in all_retrieved)) or not with_evidence:
        return None
    ranks = [r.first_rank for r in with_evidence if r.first_rank is not None]
    return Retrieval(
        questions=len(with_evidence),
        k=RECALL_AT,
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
    """Return the share of claims that the items do not support; None if there are no claims or nothing was audited."""
    claims = sum(r.claims for r in all_retrieved)
    audited = any(r.audited_items for r in all_retrieved)
    return sum(r.unsupported_claims for r in all_retrieved) / claims if claims and audited else None


def _basis(all_retrieved: Sequence[Retrieved]) -> Literal["text", "claimed"]:
    """Return "text" if at least half of the items were audited and quote turns or events, else "claimed"."""
    verbatim = sum(r.audited_items - r.rewritten_items for r in all_retrieved)
    return "text" if 2 * verbatim >= sum(r.items for r in all_retrieved) else "claimed"


def errors(questions: Sequence[QuestionScore]) -> Errors | None:
    """Count wrong answers by stage; None if no stage is known and there is no retrieval diagnosis."""
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
