"""Words planned sessions with a language model (the LLM engine), several at a time, also across the end of a day.

A plan decides all that is stated, so the words of a day do not depend on those of the day before: sessions of the next
day begin as soon as there is a free slot, and days are still returned complete and in order. A model's text is not
deterministic.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import JsonValue

from memarena_masim.engines import hard_facts, prompting
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.endpoint import Endpoint
from memarena_masim.engines.hard_facts import Detector
from memarena_masim.engines.model import DayWords, Question, Rewordings, Setting, Status
from memarena_masim.engines.rewording import reword_all
from memarena_masim.engines.tally import Tally
from memarena_masim.engines.writer import SessionWriter, Shared
from memarena_masim.plan.day import DayPlan
from memarena_masim.plan.model import SessionPlan
from memarena_masim.plan.state import StatedFact
from memarena_masim.realization.corpus_lines import line_of

DAYS_AHEAD = 3
"""Maximum unfinished days at a time: the next to be returned, and those that keep the endpoint busy."""
SPARE = 2
"""Workers beyond the concurrency, so that a session is ready to be sent when a reply comes in."""
T = TypeVar("T")


@dataclass(slots=True)
class _Day:
    """An unfinished day. ``left`` is the number of sessions without words; ``lines`` has one line per session."""

    plan: DayPlan
    stated: Mapping[str, Mapping[str, StatedFact]]
    """Statements by session and statement id."""
    lines: list[str]
    left: int
    tally: Tally = field(default_factory=Tally)
    log: list[Mapping[str, JsonValue]] = field(default_factory=list)
    done: Future[None] = field(default_factory=Future)


class LlmEngine:
    """Words plans with a model. Use it as a context manager: it keeps an event loop in its own thread."""

    def __init__(self, config: EndpointConfig, *, progress: Callable[[Status], None] = lambda _: None) -> None:
        self._config, self._progress = config, progress
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="masim-llm", daemon=True)
        self._thread.start()
        self._endpoint = self._run(_made(config))
        self._planned = self._done = self._tokens = 0

    def __enter__(self) -> LlmEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel requests in flight and close the connections."""
        if not self._thread.is_alive():
            return
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Return model, temperature and prompts: a data set has one of each, while the URL may change."""
        files: dict[str, JsonValue] = {**prompting.data_files(), **hard_facts.data_files()}
        return {
            "name": "llm",
            "model": self._config.model,
            "temperature": self._config.temperature,
            "deterministic": False,
            "files": files,
        }

    @property
    def run_info(self) -> Mapping[str, JsonValue]:
        """Return the model's URL and the number of requests in flight at a time."""
        return {
            "endpoint": self._config.url,
            "model": self._config.model,
            "concurrency": self._config.concurrency,
            "deterministic": False,
        }

    @property
    def rewords(self) -> bool:
        """Whether ``reword`` can do anything: yes."""
        return True

    def words(self, setting: Setting, plans: Iterator[DayPlan]) -> Iterator[DayWords]:
        """Yield the days' words, in order. MasimError if the endpoint is unusable; days yielded before remain valid."""
        shared = Shared(setting, self._endpoint, Detector(setting.world, setting.config.words))
        queue: asyncio.Queue[tuple[_Day, int]] = asyncio.Queue()
        crew = self._submit(self._crew(shared, queue))
        # All days are planned first: planning is seconds, the words are hours, and replies should not wait for it.
        planned = list(plans)
        self._planned = sum(len(plan.sessions) for plan in planned)
        waiting: list[_Day] = []
        try:
            while planned or waiting:
                while planned and len(waiting) < DAYS_AHEAD:
                    waiting.append(self._queued(planned.pop(0), queue))
                day = waiting.pop(0)
                _first_of(day.done, crew)
                yield DayWords(day.plan.day, day.lines, {**day.tally.as_json(), **self._taken()}, day.log)
        finally:
            crew.cancel()

    def reword(self, questions: Sequence[Question]) -> Rewordings:
        """Return the model's wordings of those questions for which they pass the checks."""
        return self._run(reword_all(self._endpoint, questions))

    def _queued(self, plan: DayPlan, queue: asyncio.Queue[tuple[_Day, int]]) -> _Day:
        """Queue a day's sessions, long ones first, so that the day does not end with a single long one."""
        stated: dict[str, dict[str, StatedFact]] = {}
        for statement in (*plan.stated, *plan.mentioned):
            stated.setdefault(statement.session_id, {})[statement.statement_id] = statement
        day = _Day(plan, stated, [""] * len(plan.sessions), len(plan.sessions))
        if not plan.sessions:
            day.done.set_result(None)
        order = sorted(range(len(plan.sessions)), key=lambda index: -plan.sessions[index].turn_count)
        for index in order:
            self._loop.call_soon_threadsafe(queue.put_nowait, (day, index))
        return day

    async def _crew(self, shared: Shared, queue: asyncio.Queue[tuple[_Day, int]]) -> None:
        """Run the workers, which write queued sessions; the first failure ends all."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._config.concurrency + SPARE):
                group.create_task(self._worker(shared, queue))

    async def _worker(self, shared: Shared, queue: asyncio.Queue[tuple[_Day, int]]) -> None:
        while True:
            day, index = await queue.get()
            plan: SessionPlan = day.plan.sessions[index]
            writer = SessionWriter(shared, plan, day.stated.get(plan.session_id, {}), day.tally)
            day.lines[index] = line_of(plan, await writer.write())
            day.log.extend(writer.log)
            day.left -= 1
            self._done += 1
            self._tell()
            if not day.left:
                day.done.set_result(None)

    def _tell(self) -> None:
        tokens = self._tokens + sum(self._endpoint.tokens.values())
        self._progress(Status(self._done, self._planned, self._endpoint.in_flight, tokens))

    def _taken(self) -> dict[str, JsonValue]:
        """Return calls and tokens since the last day; they are read in the loop's own thread."""
        self._tokens += sum(self._endpoint.tokens.values())
        return self._run(_counts(self._endpoint))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._submit(work).result()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._endpoint.close()


async def _made(config: EndpointConfig) -> Endpoint:
    return Endpoint(config)


async def _counts(endpoint: Endpoint) -> dict[str, JsonValue]:
    return endpoint.take_counts()


def _first_of(day: Future[None], crew: Future[None]) -> None:
    """Wait for a day; raise the crew's exception if it fails before."""
    ready = threading.Event()
    for future in (day, crew):
        future.add_done_callback(lambda _: ready.set())
    ready.wait()
    if day.done():
        return
    try:
        crew.result()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    raise AssertionError("the crew only ends when it fails")
