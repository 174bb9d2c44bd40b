"""Words of a life that stand in a prompt although no item was retrieved that holds them.

Under a bound the items are what may be read (SPEC.md ANS-10). A prompt has room for instructions beside them, and a
backend could fill that with more of the memory than the others are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memarena_dataset.io.reading import Dataset

from memarena.execution.cells.prompt_attribution import plain, prompt_text
from memarena.log.records import GatewayCall, RetrievedItem

_TELLING_CHARS = 40
"""Of a turn or an event, so that words that anybody might use are not taken for it."""


class LifeWords:
    """Telling texts of the days of one ego's projection, read once and as far as they are asked for."""

    def __init__(self, dataset: Dataset, ego: str) -> None:
        self._dataset = dataset
        self._ego = ego
        self._read_through = -1
        self._texts: list[str] = []

    def through(self, day: int) -> Sequence[str]:
        """What was said and what happened until the end of a day; days are asked for in rising order."""
        for each in range(self._read_through + 1, day + 1):
            said = (turn.text for session in self._dataset.day_sessions(self._ego, each) for turn in session.turns)
            happened = (event.content for event in self._dataset.day_events(self._ego, each))
            self._texts += [text for text in map(plain, (*said, *happened)) if len(text) >= _TELLING_CHARS]
        self._read_through = max(self._read_through, day)
        return self._texts


def words_beyond(
    items: Iterable[RetrievedItem], question: str, calls: Sequence[GatewayCall], life: Iterable[str]
) -> str:
    """A text of ``life`` that a prompt of the calls holds, and neither the question nor an item; empty if none."""
    prompt = prompt_text(calls)
    allowed = "\n".join(plain(text) for text in (question, *(item.text for item in items)))
    return next((text for text in life if text in prompt and text not in allowed), "")
