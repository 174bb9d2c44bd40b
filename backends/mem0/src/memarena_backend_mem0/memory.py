"""Implements the backends mem0 (facts extracted by a model) and mem0_raw (turns verbatim), a store per namespace."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    KeptFact,
    Memory,
    ModelClient,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    Session,
    extractor_of,
    failed_precondition,
    fit_ranked,
    invalid_argument,
)
from memarena_backend.day_folders import DayFolders
from memarena_backend.embedders import Embedders

from memarena_backend_mem0 import library
from memarena_backend_mem0.index_note import IndexNote, read_note, write_note
from memarena_backend_mem0.ingesting import take_in
from memarena_backend_mem0.library import Store
from memarena_backend_mem0.messages import SessionPart, item_of, single_turns, whole_session
from memarena_backend_mem0.models import Work, working_with
from memarena_backend_mem0.settings import Settings
from memarena_backend_mem0.tally import Tally

_OPTIONS = (
    OptionSpec("k", "How many memories are returned at most, an integer of at least 1.", "20"),
    OptionSpec("threshold", "Memories below this cosine similarity are left out, 0 to 1.", "0"),
)
_KEPT_FACTS = (KeptFact("My dog is called {value}.", "What is my dog called?"),)
"""A fact that any suitable extractor keeps: Mem0's own prompt has the name of a dog among its examples."""
_RESET = "Reset the namespace and ingest it again"


@dataclass(frozen=True, slots=True)
class _Open:
    store: Store
    note: IndexNote


class Mem0Memory(Memory):
    """Keeps a Mem0 store per namespace, in a folder per committed day.

    ``infer``: a model extracts facts from each session; without it each turn is stored verbatim.
    """

    def __init__(self, data_dir: Path, settings: Settings, *, infer: bool) -> None:
        library.prepare(data_dir)
        self._settings, self._infer = settings, infer
        self._days = DayFolders(data_dir / "namespaces")
        self._folders: dict[str, Path] = {}
        """The folder of the last day of each loaded namespace."""
        self._open: dict[str, _Open] = {}
        self._mutex = threading.Lock()
        self._models = ModelClient()
        self._embedders = Embedders(self._models, settings.embedding_chars)

    def describe(self) -> Description:
        return Description(
            name="mem0" if self._infer else "mem0_raw",
            version=f"{version('memarena-backend-mem0')} ({library.versions()})",
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
            retention=Retention.EXTRACTED if self._infer else Retention.VERBATIM,
            kept_facts=_KEPT_FACTS if self._infer else (),
        )

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        sessions = [parts for session in day.sessions if (parts := self._parts(session, day))]
        tally = Tally(sessions_given=len(sessions))
        self._close(namespace)
        folder = self._folders[namespace] = self._days.begin(namespace, day.index)
        if sessions:
            work = self._work(folder, day, call)
            take_in(self._store(namespace, folder, work).store, sessions, work, tally, infer=self._infer)
        self._days.keep(namespace, day.index)
        return tally.notices()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        last = deque(days, maxlen=1)[0]
        folder = self._days.restore(namespace, last.index)
        if folder is None:
            raise failed_precondition(f"the store of day {last.index} is not in the data folder. {_RESET}")
        self._folders[namespace] = folder

    def unload(self, namespace: str) -> None:
        self._close(namespace)
        self._folders.pop(namespace, None)
        self._days.unload(namespace)

    def forget(self, namespace: str) -> None:
        # Mem0's delete_all and reset are not called: the folder is the namespace.
        self.unload(namespace)
        self._days.forget(namespace)

    def close(self) -> None:
        for namespace in list(self._open):
            self._close(namespace)
        self._models.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        count, threshold = query.int_option("k", minimum=1), query.float_option("threshold", 0.0, 1.0)
        opened = self._opened(namespace)
        if opened is None:
            return SearchResult(())
        if not query.text.strip():
            return SearchResult((), (Notice("query_blank", "Mem0 refuses to search for white space"),))
        # Twice as many are searched, so that ties at the limit are broken by id and not by the store.
        work = Work(call, self._embedders.choose(call, opened.note.model, "model_access"))
        with working_with(work):
            memories = opened.store.search(query.text, 2 * count, threshold)
        memories.sort(key=lambda memory: (-memory["score"], memory["id"]))
        items = [item_of(entry["memory"], entry["score"], entry["metadata"], derived=self._infer) for entry in memories]
        # `truncated` reports what the query's bounds cut off (SRC-12), not what k does.
        return fit_ranked(items[:count], query.max_items, query.max_context_tokens)

    # -------------------------------------------------------------- stores

    def _store(self, namespace: str, folder: Path, work: Work) -> _Open:
        """Return the store of a day that is being ingested; create it on the first day with text."""
        if read_note(folder) is None:
            # Any text will do: only the length of its vector is needed.
            dimension = len(work.embedder.embed(["dimension"], "query", work.call)[0])
            write_note(folder, IndexNote(work.embedder.model, dimension))
        opened = self._opened(namespace)
        assert opened is not None
        return opened

    def _opened(self, namespace: str) -> _Open | None:
        """Return the store of a loaded namespace; None if no text was ever ingested."""
        with self._mutex:
            if namespace not in self._open:
                folder = self._folders[namespace]
                note = read_note(folder)
                if note is None:
                    return None
                self._open[namespace] = _Open(Store(folder, note.dimension), note)
            return self._open[namespace]

    def _close(self, namespace: str) -> None:
        with self._mutex:
            opened = self._open.pop(namespace, None)
        if opened is not None:
            opened.store.close()

    # -------------------------------------------------------------- models

    def _parts(self, session: Session, day: Day) -> list[SessionPart]:
        if not self._infer:
            return single_turns(session, day.owner)
        part = whole_session(session, day.owner)
        return [] if part is None else [part]

    def _work(self, folder: Path, day: Day, call: Call) -> Work:
        field = "header.model_access"
        note = read_note(folder)
        embedder = self._embedders.choose(call, None if note is None else note.model, field)
        work = Work(call, embedder, self._models, observed=day.date)
        if self._infer:
            work.extractor = extractor_of(call.models)
            work.extraction_tokens = self._settings.extraction_tokens
            if work.extractor is None:
                raise invalid_argument(field, "is required: Mem0 extracts with a model")
        return work
