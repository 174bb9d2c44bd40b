"""Sums what a memory stored of the sessions that it ingested, from the notices of its Ingest calls.

A notice is a code with a count that a backend reports on a call. A memory that extracts with a model may lose sessions
although its calls end OK, and only its notices show that.

docs/backends.md describes the codes. A backend that sends ``sessions_given`` sends the others too, so an absent code
counts as 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from memarena.log.records import Notice
from memarena.scoring.figures import Retention
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import IngestFacts

SESSIONS = "sessions_given"
STORED = "memories_stored"


def counted(notices: Iterable[Notice]) -> Counter[str]:
    """Sum the counts of notices by code."""
    counts: Counter[str] = Counter()
    for notice in notices:
        counts[notice.code] += notice.count
    return counts


def retention(ingests: Sequence[IngestFacts], questions: Iterable[QuestionScore]) -> Retention | None:
    """Sum over cells; None for a memory that does not report how many sessions it ingested."""
    by_day = (counted(notices) for ingest in ingests for notices in ingest.notices.values())
    days = [day for day in by_day if day[SESSIONS]]
    if not days:
        return None
    total = sum(days, Counter())
    searches = [question.retrieved for question in questions if question.retrieved is not None]
    return Retention(
        days=len(days),
        sessions_given=total[SESSIONS],
        extraction_calls=total["extraction_calls"],
        extraction_unusable=total["extraction_unusable"],
        extraction_empty=total["extraction_empty"],
        sessions_failed=total["sessions_failed"],
        memories_stored=total[STORED],
        memories_changed=total["memories_changed"],
        memories_removed=total["memories_removed"],
        days_nothing_stored=sum(not day[STORED] for day in days),
        searches=len(searches),
        searches_empty=sum(not search.items for search in searches),
    )
