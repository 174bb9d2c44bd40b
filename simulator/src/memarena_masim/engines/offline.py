"""Words planned sessions from the phrase banks (the offline engine), in several processes.

The same plan gives the same bytes on every machine and with any number of processes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool

from pydantic import JsonValue

from memarena_masim.config import WorldConfig
from memarena_masim.engines.model import DayWords, Question, Rewordings, Setting
from memarena_masim.phrases.library import library
from memarena_masim.plan.day import DayPlan
from memarena_masim.plan.model import SessionPlan
from memarena_masim.realization.corpus_lines import line_of
from memarena_masim.realization.speech import speak
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.rng import Stream

_CHUNK = 48
"""Sessions of one job of a worker."""
_SAFE_PATH = "PYTHONSAFEPATH"


@dataclass(frozen=True)
class OfflineEngine:
    """Words sessions in ``workers`` processes; in this process if that is 1 or less."""

    workers: int = 1

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Return only the name: configuration and banks are compared separately."""
        return {"name": "offline"}

    @property
    def run_info(self) -> Mapping[str, JsonValue]:
        """Return the number of workers."""
        return {"workers": self.workers}

    @property
    def rewords(self) -> bool:
        """Whether ``reword`` can do anything: no, there is no model."""
        return False

    def words(self, setting: Setting, plans: Iterator[DayPlan]) -> Iterator[DayWords]:
        """Yield the days' words. The next day is planned while the workers are still busy with the last one."""
        with _pool(self.workers) as pool:
            waiting: DayWords | None = None
            for plan in plans:
                ready, waiting = waiting, DayWords(plan.day, _realised(setting.config, plan.sessions, pool), {})
                if ready is not None:
                    yield ready
            if waiting is not None:
                yield waiting

    def reword(self, questions: Sequence[Question]) -> Rewordings:
        """Return no wordings, since there is no model."""
        return Rewordings({}, {})


def realise(job: tuple[WorldConfig, tuple[SessionPlan, ...]]) -> str:
    """Return the lines of the corpus for some sessions of a world. Runs in a worker."""
    config, sessions = job
    return "".join(line_of(plan, words_of(config, plan)) for plan in sessions)


def words_of(config: WorldConfig, plan: SessionPlan) -> tuple[SpokenTurn, ...]:
    """Return the turns of a session, drawn from its own random stream."""
    return speak(config, plan, Stream(config.key, "speech", plan.day, plan.session_id), library(config.words))


@contextmanager
def _pool(workers: int) -> Iterator[Pool | None]:
    if workers <= 1:
        yield None
        return
    with _safe_path(), multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield pool


@contextmanager
def _safe_path() -> Iterator[None]:
    """Prevent worker processes from importing files of the current folder instead of modules."""
    previous_setting = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if previous_setting is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = previous_setting


def _realised(config: WorldConfig, sessions: tuple[SessionPlan, ...], pool: Pool | None) -> Iterable[str]:
    jobs = [(config, sessions[start : start + _CHUNK]) for start in range(0, len(sessions), _CHUNK)]
    return map(realise, jobs) if pool is None else pool.imap(realise, jobs)
