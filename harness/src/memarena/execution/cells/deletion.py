"""Probes deletion: after an ego's last question it calls Forget, and searches for the deleted text again.

What is forgotten is drawn from the ego's days and not from the questions. Search returns a turn if an item names it (or
its session, where a session is forgotten) or contains its words. Only turns that Search returned before Forget count:
otherwise a memory that returns little would seem to forget well. A control, a turn of another session, shows whether
the memory forgot more than was requested.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from memarena_dataset.io.reading import Dataset
from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import AnswerTrace, BackendClient
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.cells.context import AskContext
from memarena.execution.cells.messages import (
    answer_request,
    forget_request,
    owner_search_request,
    retrieved_items,
)
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.gateway import CallContext
from memarena.log.records import DeletionProbed, RetrievedItem

Kind = Literal["session", "subject", "fact"]
KINDS: tuple[Kind, ...] = ("session", "subject", "fact")

_LEAST_WORDS = 5
"""Least words of a turn that is searched for: shorter turns are often repeated."""
_LEAST_NAME = 3
"""Least characters of a name: shorter names are parts of other words."""
_TURNS = 3
"""Number of turns of each target that are searched for."""


@dataclass(frozen=True)
class _StatedTurn:
    """A turn that is long enough to be searched for by its words."""

    turn_id: str
    session_id: str
    text: str
    words: str
    """The text with single spaces."""


@dataclass(frozen=True)
class Target:
    """What Forget has to delete, and the turns that no later search may return."""

    kind: Kind
    value: str
    """A session id, a person's name, or the words of a turn, by ``kind``."""
    turns: tuple[_StatedTurn, ...]
    control: _StatedTurn | None
    """A turn of another session that must remain."""


def draw_targets(dataset: Dataset, ego: str, count: int, seed: str) -> list[Target]:
    """Draw at most ``count`` targets of each kind from the ego's days, determined by ``seed``. No two share a turn."""
    draw = random.Random(seed)  # noqa: S311 (a sample, no secret)
    turns, texts = _stated_turns(dataset, ego)
    draw.shuffle(turns)
    used_ids: set[str] = set()
    targets: list[Target] = []
    for kind in KINDS:
        for value, members in _groups(dataset, ego, kind, turns, draw):
            if sum(target.kind == kind for target in targets) == count:
                break
            unused_turns = (turn for turn in members if turn.turn_id not in used_ids and _stated_once(turn, texts))
            free = list(islice(unused_turns, _TURNS))
            if not free:
                continue
            sessions = {turn.session_id for turn in members}
            control = next(
                (turn for turn in turns if turn.session_id not in sessions and turn.turn_id not in used_ids), None
            )
            used_ids.update(turn.turn_id for turn in (*free, *((control,) if control else ())))
            targets.append(Target(kind, value, tuple(free), control))
    return targets


def _stated_turns(dataset: Dataset, ego: str) -> tuple[list[_StatedTurn], list[str]]:
    """Return an ego's turns of at least _LEAST_WORDS words, and all texts sent to its memory, with single spaces."""
    turns, texts = [], []
    for day in range(dataset.day_count):
        texts += [_single(event.content) for event in dataset.day_events(ego, day)]
        for session in dataset.day_sessions(ego, day):
            for turn in session.turns:
                words = _single(turn.text)
                texts.append(words)
                if len(words.split()) >= _LEAST_WORDS:
                    turns.append(_StatedTurn(turn.turn_id, session.session_id, turn.text, words))
    return turns, texts


def _stated_once(turn: _StatedTurn, texts: Iterable[str]) -> bool:
    # A turn whose words another text repeats may rightly be returned after it was forgotten.
    return sum(turn.words in text for text in texts) == 1


def _groups(
    dataset: Dataset, ego: str, kind: Kind, turns: Sequence[_StatedTurn], draw: random.Random
) -> Iterator[tuple[str, list[_StatedTurn]]]:
    """Yield possible targets, with the turns that they delete."""
    if kind == "session":
        for session_id in dict.fromkeys(turn.session_id for turn in turns):
            yield session_id, [turn for turn in turns if turn.session_id == session_id]
    elif kind == "subject":
        names_of_others = [agent.name for key, agent in dataset.agents.items() if key != ego]
        # People are mostly called by the first part of their name.
        names = sorted({part for name in names_of_others for part in (name, name.split(" ")[0])})
        draw.shuffle(names)
        for name in names:
            if len(name) >= _LEAST_NAME and (members := [e for e in turns if name.casefold() in e.text.casefold()]):
                yield name, members
    else:
        for turn in turns:
            yield turn.text, [turn]


def _single(text: str) -> str:
    return " ".join(text.split())


class DeletionProbe:
    """Runs the probe in one namespace that has all days. Use it when no more questions are asked there."""

    def __init__(
        self, context: AskContext, client: BackendClient, dataset: Dataset, ego: str, ids: NamespaceIds, day: int
    ) -> None:
        self._context = context
        self._client = client
        self._dataset = dataset
        self._ego = ego
        self._ids = ids
        self._day = day

    def probe(self, target: Target) -> DeletionProbed:
        """Search the turns, call Forget for the target, and search again.

        Raises BackendCallError or BackendContractError if a search fails; a Forget that fails is part of the record.
        """
        returned_turns = [turn for turn in target.turns if self._returns(turn, target, self._search(turn))]
        control = target.control
        control_returned = control is not None and self._returns(control, None, self._search(control))
        code, message = self._forget(target)
        again_count = answered_count = lost_count = 0
        if code == "OK":
            again_count = sum(self._returns(turn, target, self._search(turn)) for turn in returned_turns)
            if self._context.answers_itself:
                answered_count = sum(self._returns(turn, target, self._answer(turn)) for turn in returned_turns)
            lost_count = int(
                control_returned and control is not None and not self._returns(control, None, self._search(control))
            )
        return DeletionProbed(
            cell_id=self._context.cell.cell_id,
            ego=self._ego,
            namespace=self._ids.namespace,
            day=self._day,
            target=target.kind,
            code=code,
            message=message,
            turns=len(target.turns),
            found_before=len(returned_turns),
            found_again=again_count,
            answered_again=answered_count if self._context.answers_itself else None,
            controls=int(control_returned),
            controls_lost=lost_count,
        )

    def _returns(self, turn: _StatedTurn, target: Target | None, items: Sequence[RetrievedItem]) -> bool:
        is_session = target is not None and target.kind == "session"
        return any(
            turn.turn_id in item.turn_ids
            or (is_session and turn.session_id in item.session_ids)
            or turn.words in _single(item.text)
            for item in items
        )

    def _request(self, text: str) -> pb.SearchRequest:
        cell = self._context.cell
        options = cell.backend_options.items()
        return owner_search_request(self._dataset, self._day, text, cell.reading, self._ids, options)

    def _begin(self) -> str:
        return self._context.begin(CallContext("probe", self._context.cell.cell_id, ego=self._ego, day=self._day))

    def _search(self, turn: _StatedTurn) -> tuple[RetrievedItem, ...]:
        request, token = self._request(turn.text), self._begin()
        request.model_access.CopyFrom(self._context.access(token, "reader"))
        try:
            return retrieved_items(self._client.search(request).response.items, self._ids)
        finally:
            self._context.gateway.revoke(token)

    def _answer(self, turn: _StatedTurn) -> tuple[RetrievedItem, ...]:
        """Return the context of an answer. Failures of the reader do not matter to this probe."""
        request, token, trace = self._request(turn.text), self._begin(), AnswerTrace()
        request.model_access.CopyFrom(self._context.access(token, "reader"))
        reading = self._context.cell.reading
        message = answer_request(request, reading, self._context.model, self._context.prompt_style)
        try:
            self._client.answer(message, trace)
        except (BackendCallError, BackendContractError):
            if trace.retrieved is None:
                raise
        finally:
            self._context.gateway.revoke(token)
        return retrieved_items(trace.retrieved.items, self._ids) if trace.retrieved is not None else ()

    def _forget(self, target: Target) -> tuple[str, str]:
        token = self._begin()
        request = forget_request(target.kind, target.value, self._ids)
        request.model_access.CopyFrom(self._context.access(token, "extractor"))
        try:
            self._client.forget(request)
        except BackendCallError as error:
            return error.code, error.message
        finally:
            self._context.gateway.revoke(token)
        return "OK", ""
