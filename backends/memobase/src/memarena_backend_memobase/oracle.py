"""Implements memobase_oracle, a diagnostic that separates losses of Memobase's extraction from losses of its search.

For each question it creates a Memobase user, sends only the evidence sessions, searches, and deletes the user. Any
evidence that is missing then was lost in extraction.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Evidence,
    KeptFact,
    Kind,
    Memory,
    Notice,
    Participant,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    Session,
    invalid_argument,
)

from memarena_backend_memobase.extracting import take_in
from memarena_backend_memobase.journal import Holding
from memarena_backend_memobase.memory import BEFORE_ANY_DAY, KEPT_FACTS
from memarena_backend_memobase.retrieving import OPTIONS, plan_of, retrieve
from memarena_backend_memobase.server import Server
from memarena_backend_memobase.settings import Settings


class MemobaseOracleMemory(Memory):
    """Extracts at the time of the question from the sessions of its privileged evidence (EVD-3).

    STATEFUL_SEARCH is declared because a model that extracts twice need not extract the same.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._server = Server(settings.url, settings.token, settings.flush_timeout_s)
        self._server.await_start(settings.start_timeout_s)
        self._days: dict[str, dict[str, tuple[Day, Session]]] = {}

    def describe(self) -> Description:
        capabilities = {Capability.ANSWER, Capability.CELL_MODEL_ACCESS, Capability.STATEFUL_SEARCH}
        if self._settings.flush == "session":
            capabilities.add(Capability.PROVENANCE)
        kept_facts: tuple[KeptFact, ...] = KEPT_FACTS
        return Description(
            name="memobase_oracle",
            version=f"{version('memarena-backend-memobase')} (memobase client {version('memobase')})",
            kind=Kind.DIAGNOSTIC,
            capabilities=frozenset(capabilities),
            options=OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED,
            kept_facts=kept_facts,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        sessions = self._days.setdefault(namespace, {})
        sessions.update((session.session_id, (day, session)) for session in day.sessions)
        return ()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        if query.evidence is None:
            raise invalid_argument("privileged_evidence", "memobase_oracle extracts from evidence; none was sent")
        plan = plan_of(query)
        evidence = self._evidence_sessions(namespace, query.evidence)
        if not evidence:
            return SearchResult(())
        if call.models is None:
            raise invalid_argument("model_access", "is required: Memobase extracts and searches with models")
        user = str(uuid.uuid4())
        self._server.create_user(user)
        try:
            holding, notices = self._extracted(user, evidence, call)
            result = retrieve(self._server, user, holding, query, plan, attributed=self._settings.flush == "session")
        finally:
            self._server.delete_user(user)
        return replace(result, notices=(*result.notices, *notices))

    def forget(self, namespace: str) -> None:
        self._days.pop(namespace, None)

    def close(self) -> None:
        self._server.close()

    def _extracted(
        self, user: str, evidence: Sequence[tuple[Day, Session]], call: Call
    ) -> tuple[Holding, Sequence[Notice]]:
        owner: Participant = evidence[-1][0].owner
        day = Day(evidence[-1][0].index, evidence[-1][0].date, owner, tuple(session for _, session in evidence), ())
        empty = Holding(day=BEFORE_ANY_DAY)
        return take_in(self._server, user, empty, day, self._settings.flush, self._settings.blob_bytes, call)

    def _evidence_sessions(self, namespace: str, evidence: Evidence) -> list[tuple[Day, Session]]:
        """Return the evidence sessions with their days, in order of time, each once."""
        by_id = self._days.get(namespace, {})
        for position, session_id in enumerate(evidence.session_ids):
            if session_id not in by_id:
                field = f"privileged_evidence.session_ids[{position}]"
                raise invalid_argument(field, f"{session_id!r} was not ingested into the namespace")
        return sorted((by_id[name] for name in set(evidence.session_ids)), key=lambda entry: entry[1].started_at)
