"""Passes sessions to Mem0's ``add`` and determines their outcome, which ``add`` does not report."""

from __future__ import annotations

from collections.abc import Sequence

from memarena_backend_mem0.library import Store
from memarena_backend_mem0.messages import SessionPart
from memarena_backend_mem0.models import Work, working_with
from memarena_backend_mem0.replies import Worth, worth_of
from memarena_backend_mem0.tally import Tally

_BY_THE_REPLY = (AttributeError, TypeError, KeyError, ValueError, RecursionError)
"""Exceptions with which Mem0 fails if a reply is JSON of another form than it expects."""


def take_in(store: Store, sessions: Sequence[Sequence[SessionPart]], work: Work, tally: Tally, *, infer: bool) -> None:
    """Add the sessions of a day, each in one or more parts.

    Raises CallError if a model fails or the client no longer waits, and any other exception of Mem0 or its store. The
    day must then be discarded.
    """
    with working_with(work):
        for parts in sessions:
            before = store.count()
            reported = sum(_added(store, part, work, tally, infer=infer) for part in parts)
            stored = store.count() - before
            if stored != reported:
                raise RuntimeError(f"Mem0 reported {reported} memories of a session, its store took {stored}")
            tally.memories_stored += stored
            tally.extraction_empty += infer and not stored
    tally.extraction_calls += work.calls
    tally.embedding_cut += work.cut


def _added(store: Store, part: SessionPart, work: Work, tally: Tally, *, infer: bool) -> int:
    """Add a part of a session and return the number of new memories; 0, and counted, if a reply was unusable."""
    work.call.check()
    work.refusal = ""
    work.replies.clear()
    try:
        added = store.add(part.messages, part.metadata, infer=infer)
    except Exception as error:
        if work.failure is not None:
            raise work.failure from error
        if work.refusal:
            tally.lost(work.refusal)
            return 0
        if work.replies and isinstance(error, _BY_THE_REPLY):
            tally.extraction_unusable += 1
            return 0
        raise
    if work.failure is not None:
        raise work.failure
    if infer and not added and worth_of(work.replies[-1]) is Worth.UNUSABLE:
        tally.extraction_unusable += 1
    return added
