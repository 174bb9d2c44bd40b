"""Implements the backend mempalace: a palace per namespace, of which each day changes a copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from memarena_backend import (
    Call,
    Capability,
    Day,
    DayFolders,
    Description,
    Item,
    Memory,
    ModelClient,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    SearchResult,
    failed_precondition,
    fit_ranked,
)
from memarena_backend.embedders import Embedders

from memarena_backend_mempalace.drawers import drawers_of
from memarena_backend_mempalace.library import Palace, Passage
from memarena_backend_mempalace.settings import Settings

QUERY_LIMIT_CHARS = 8_192
"""Characters of a question that are searched for; no question needs more."""
MODEL_FILE = "embedder"
"""File next to a palace with the model that made its vectors, of which the library only knows that it is an API."""

_OPTIONS = (OptionSpec("k", "How many passages are returned at most, an integer of at least 1.", "10"),)


class MemPalaceMemory(Memory):
    """Keeps a palace per namespace. Call ``keep_to_itself`` before."""

    def __init__(self, data_dir: Path, settings: Settings) -> None:
        self._settings = settings
        self._folders = DayFolders(data_dir / "palaces")
        self._held: dict[str, Path] = {}
        """By namespace, the folder of its last day, if the palace there is loaded."""
        self._client = ModelClient()
        self._embedders = Embedders(self._client, only_in_process=settings.only_in_process)

    def describe(self) -> Description:
        # Forget rebuilds a namespace from its days without access to models, so it needs the model in the process.
        forget = {Capability.FORGET} if self._settings.only_in_process else set()
        return Description(
            name="mempalace",
            version=f"{version('memarena-backend-mempalace')} (mempalace {version('mempalace')}, sqlite_exact)",
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE, *forget}),
            options=_OPTIONS,
            prompt_style=PromptStyle.JSON_CONTEXT,
        )

    # -------------------------------------------------------------- days

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        drawers = drawers_of(day)
        if drawers:
            embedder = self._embedders.choose(call, _model_of(self._held.get(namespace)), "header.model_access")
            # Equal texts, which people and long texts repeat, are embedded once.
            texts = list(dict.fromkeys(drawer.text for drawer in drawers))
            vectors = dict(zip(texts, embedder.embed(texts, "passage", call), strict=True))
        folder = self._folders.begin(namespace, day.index)
        if drawers:
            (folder / MODEL_FILE).write_text(embedder.model, encoding="utf-8")
            Palace(folder).add(drawers, [vectors[drawer.text] for drawer in drawers])
        self._folders.keep(namespace, day.index)
        self._hold(namespace, folder)
        sessions = sum(any(turn.text.strip() for turn in session.turns) for session in day.sessions)
        return (
            Notice("sessions_given", f"{sessions} sessions with text were given to MemPalace", sessions),
            Notice("memories_stored", f"{len(drawers)} drawers were stored", len(drawers)),
        )

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        all_days = tuple(days)
        folder = self._folders.restore(namespace, all_days[-1].index)
        if folder is not None:
            self._hold(namespace, folder)
        elif self._settings.only_in_process:
            for day in all_days:
                self.commit_day(namespace, day, call)
        else:
            raise failed_precondition(
                f"the palace of day {all_days[-1].index} is not in the data folder, and there is no model at hand to "
                "make it again: Reset the namespace and ingest it again"
            )

    def _hold(self, namespace: str, folder: Path) -> None:
        self._let_go(namespace)
        self._held[namespace] = folder

    def _let_go(self, namespace: str) -> None:
        folder = self._held.pop(namespace, None)
        if folder is not None:
            Palace(folder).close()

    def unload(self, namespace: str) -> None:
        self._let_go(namespace)
        self._folders.unload(namespace)

    def forget(self, namespace: str) -> None:
        self._let_go(namespace)
        self._folders.forget(namespace)

    def close(self) -> None:
        for namespace in list(self._held):
            self._let_go(namespace)
        self._client.close()

    # -------------------------------------------------------------- questions

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        count = query.int_option("k", minimum=1)
        folder = self._held[namespace]
        palace = Palace(folder)
        if palace.is_empty:
            return SearchResult(())
        text = query.text[:QUERY_LIMIT_CHARS]
        (vector,) = self._embedders.choose(call, _model_of(folder), "model_access").embed([text], "query", call)
        results = palace.search(text, vector, count)
        return fit_ranked(_items(results), query.max_items, query.max_context_tokens)


def _model_of(folder: Path | None) -> str | None:
    """Return the model that made a palace's vectors; None for a palace without drawers."""
    try:
        return None if folder is None else (folder / MODEL_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _items(results: Sequence[Passage]) -> list[Item]:
    """Return items in the library's order. It does not return its scores, so the score is 1 / rank."""
    return [
        Item(
            text=passage.text,
            score=1 / rank,
            session_ids=passage.session_ids,
            turn_ids=passage.turn_ids,
            time=passage.time,
            event_ids=passage.event_ids,
        )
        for rank, passage in enumerate(results, start=1)
    ]
