"""Implements the backend memobase: a Memobase user per namespace, chat blobs per session, and days made atomic."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    KeptFact,
    Memory,
    Notice,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    failed_precondition,
    invalid_argument,
)

from memarena_backend_memobase.extracting import take_in
from memarena_backend_memobase.journal import Holding, Journal, Journals, user_of
from memarena_backend_memobase.retrieving import OPTIONS, plan_of, retrieve
from memarena_backend_memobase.server import Server
from memarena_backend_memobase.settings import Settings
from memarena_backend_memobase.undoing import check_holding, undo

_log = logging.getLogger(__name__)

KEPT_FACTS = (KeptFact("My dog is called {value}.", "What is my dog called?"),)
"""A fact that any suitable extractor keeps: the name of a pet is in the server's own list of topics."""
BEFORE_ANY_DAY = -1
"""Day index of the state before any day is ingested."""


class MemobaseMemory(Memory):
    """Stores each namespace as a Memobase user. Raises ServeError if the server is not healthy in time."""

    def __init__(self, data_dir: Path, settings: Settings) -> None:
        self._settings = settings
        self._server = Server(settings.url, settings.token, settings.flush_timeout_s)
        self._server.await_start(settings.start_timeout_s)
        self._journals = Journals(data_dir / "memobase")
        self._loaded_journals: dict[str, Journal] = {}
        """By namespace, for those whose state on the server is known to match the committed days."""
        self._mutex = threading.Lock()

    def describe(self) -> Description:
        attributed = {Capability.PROVENANCE} if self._attributed else set()
        return Description(
            name="memobase",
            version=f"{version('memarena-backend-memobase')} (memobase client {version('memobase')})",
            capabilities=frozenset({Capability.ANSWER, Capability.CELL_MODEL_ACCESS, *attributed}),
            options=OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED,
            kept_facts=KEPT_FACTS,
        )

    @property
    def _attributed(self) -> bool:
        """Whether memories have a source session; sessions extracted together cannot be distinguished afterwards."""
        return self._settings.flush == "session"

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if call.models is None and any(turn.text.strip() for session in day.sessions for turn in session.turns):
            raise invalid_argument("header.model_access", "is required: Memobase extracts with a model")
        journal = self._begin(namespace, day.index)
        before = journal.committed or Holding(day=BEFORE_ANY_DAY)
        settings = self._settings
        after, notices = take_in(self._server, journal.user, before, day, settings.flush, settings.blob_bytes, call)
        journal = journal.model_copy(update={"after": after})
        self._journals.write(namespace, journal)
        self._loaded_journals[namespace] = journal
        return notices

    def _begin(self, namespace: str, day: int) -> Journal:
        """Write a journal in which the day is pending, before any of the day is sent to the server, and return it."""
        previous = self._loaded_journals.pop(namespace, None)
        if previous is None:
            # No day is committed: anything on the server is left over from a day that failed.
            self._drop(namespace)
            previous = Journal(user=user_of(namespace, self._journals.generation(namespace)))
            # A user of this id that the data folder does not know of belongs to another or a lost data folder.
            self._server.delete_user(previous.user)
        # The previous day is committed, or else the kit would have unloaded the namespace.
        committed = previous.after or previous.committed
        journal = Journal(user=previous.user, committed=committed, pending_day=day, began_s=time.time())
        self._journals.write(namespace, journal)
        if committed is None:
            self._server.create_user(journal.user)
        return journal

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        last = max(day.index for day in days)
        journal = self._journals.read(namespace)
        if journal is None:
            raise failed_precondition("the data folder knows nothing of the namespace's user; Reset the namespace")
        if journal.pending_day == last and journal.after is not None:
            committed = journal.after
            check_holding(self._server, journal.user, committed)
        elif journal.committed is not None and journal.committed.day == last:
            committed = self._taken_back(namespace, journal, journal.committed, call)
        else:
            raise failed_precondition(f"the journal does not know the committed day {last}; Reset the namespace")
        restored = Journal(user=journal.user, committed=committed)
        self._journals.write(namespace, restored)
        self._loaded_journals[namespace] = restored

    def _taken_back(self, namespace: str, journal: Journal, committed: Holding, call: Call) -> Holding:
        if journal.pending_day is None:
            check_holding(self._server, journal.user, committed)
            return committed
        _log.info("day %d was not committed and is taken back", journal.pending_day)
        return undo(self._server, journal.user, committed, journal.began_s + self._settings.flush_timeout_s, call)

    def unload(self, namespace: str) -> None:
        self._loaded_journals.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        self._loaded_journals.pop(namespace, None)
        self._drop(namespace)

    def _drop(self, namespace: str) -> None:
        """Delete the namespace's user if there is one; the next user gets another id."""
        journal = self._journals.read(namespace)
        if journal is not None:
            self._server.delete_user(journal.user)
            self._journals.give_up(namespace)

    def close(self) -> None:
        self._server.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        plan = plan_of(query)
        if call.models is None and plan.events != "off":
            raise invalid_argument("model_access", "is required: Memobase searches events with an embedding model")
        journal = self._loaded_journals[namespace]
        holding = journal.after or journal.committed
        assert holding is not None, "a search runs on a loaded namespace"
        return retrieve(self._server, journal.user, holding, query, plan, attributed=self._attributed)
