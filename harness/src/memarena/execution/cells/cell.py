"""Executes one cell: a backend with one reader and one seed, from its first day to its last question, ego by ego.

An ego is the person whose device is simulated; its namespace is the backend's memory of it. A backend or model that
fails on the way must neither end the run nor change what the memory holds, which is why days are sent again, backends
restored and questions repeated here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.audit.life_audit import MOST_WORDS
from memarena.execution.backends.session import BackendGoneError, BackendSession, described, preferred_style
from memarena.execution.cells.asking import ask, record_of
from memarena.execution.cells.context import AskContext, fixed_names
from memarena.execution.cells.deletion import DeletionProbe, draw_targets
from memarena.execution.cells.ingest import DaySender, NamespaceLostError, lost_after_crash
from memarena.execution.cells.messages import add_privileged_evidence, check_questions, search_request
from memarena.execution.cells.opaque_ids import NamespaceIds, opaque_id
from memarena.execution.cells.setup import CellHost, CellSetup
from memarena.execution.cells.timed_search import time_searches
from memarena.execution.errors import InfraError
from memarena.execution.metering import CellPhases
from memarena.execution.planning.progress import CellProgress, EgoProgress
from memarena.log.records import AnyRecord, Cell, FootprintTaken, NamespaceOpened, Problem, Question, QuestionAsked

# Unspecified means bytes divided by 4, too.
_COUNTS_BYTES = {pb.TOKEN_COUNTING_UNSPECIFIED, pb.TOKEN_COUNTING_UTF8_BYTES_DIV_4}


class CellRun:
    """One cell in progress. ``run`` does the work; use it once."""

    def __init__(
        self, cell: Cell, session: BackendSession, setup: CellSetup, host: CellHost, phases: CellPhases
    ) -> None:
        self._cell = cell
        self._session = session
        self._setup = setup
        self._host = host
        self._phases = phases

    def run(self, questions: Sequence[Question], progress: CellProgress) -> None:
        """Ask all questions that have no outcome yet. ``questions`` are ordered by ego, then day.

        Raises CellError if the backend does not start, does not fit, or is gone from its address, InfraError if a
        failure of the harness or a model persists, RunError if a day or a question is above a limit that the backend
        states.
        """
        description = self._session.open(self._cell)
        check_questions(self._cell.backend, description.limits, questions)
        self._host.append(described(self._cell.cell_id, description, self._session.isolation_grade))
        self._host.opened()
        context = self._context(description)
        egos = (
            _EgoRun(ego, list(group), context, self._session, self._setup, self._host, progress, self._phases)
            for ego, group in groupby(questions, key=lambda q: q.instance.ego_agent_id)
        )
        if self._setup.config.protocol != "end_of_horizon":
            for ego in egos:
                ego.run()
            return
        # Days and questions are separate phases: a meter can separate them only if all days come before all questions.
        all_egos = list(egos)
        for ego in all_egos:
            ego.take_in()
        for ego in all_egos:
            ego.run()

    def _context(self, description: pb.DescribeResponse) -> AskContext:
        """Return the context of the cell's questions, with the capabilities that the backend describes."""
        models, config = self._setup.models, self._setup.config
        token = None
        if pb.CAPABILITY_CELL_MODEL_ACCESS in description.capabilities:
            names = fixed_names(models.reader.upstream.model, models.helpers)
            token = models.gateway.open_cell(self._setup.cell_token, self._cell.cell_id, names)
        style = self._cell.reading.prompt_style
        return AskContext(
            cell=self._cell,
            gateway=models.gateway,
            reader=models.reader.ref,
            model=models.reader.upstream.model,
            reader_client=models.reader_client,
            answers_itself=pb.CAPABILITY_ANSWER in description.capabilities and not config.central_reading,
            prompt_style=preferred_style(description) if style == "backend" else style,
            counts_bytes=description.token_counting in _COUNTS_BYTES,
            answer_timeout_s=config.deadlines_s.answer,
            forgets=pb.CAPABILITY_FORGET in description.capabilities,
            own_model=pb.CAPABILITY_OWN_MODEL in description.capabilities,
            helpers=models.helpers,
            cell_token=token,
        )


class _EgoRun:
    """One ego of a cell: its namespace, its days, its questions."""

    def __init__(
        self,
        ego: str,
        questions: Sequence[Question],
        context: AskContext,
        session: BackendSession,
        setup: CellSetup,
        host: CellHost,
        progress: CellProgress,
        phases: CellPhases,
    ) -> None:
        self._ego = ego
        self._context = context
        self._session = session
        self._dataset = setup.dataset
        self._config, self._id_key = setup.config, setup.id_key
        self._host = host
        self._progress = progress
        self._phases = phases
        self._state: EgoProgress = progress.ego(ego)
        self._questions = tuple(questions)
        self._pending = [q for q in questions if q.instance.instance_id not in progress.finished]
        self._last_day = setup.dataset.day_count - 1
        # A repair ingests up to the days of its questions; a first pass ingests every day of the world.
        repair = self._state.horizon_reached
        self._horizon = max((q.day for q in self._pending), default=0) if repair else self._last_day
        self._fresh_after_crash = setup.config.after_crash == "fresh"
        self._sender = DaySender(
            ego,
            context,
            session,
            setup.dataset,
            host.append,
            self._problem,
            host.heal_reader,
            again=self._fresh_after_crash,
        )
        self._audits = setup.audits
        self._is_unaudited = False
        self._ids: NamespaceIds | None = None
        """Opaque ids of the current namespace; None until one is opened."""
        self._proven = 0
        """Number of the backend's restarts when it was last known to have the namespace's days."""
        self._counted_days = 0
        self._days_with_failures = 0

    def run(self) -> None:
        """Bring every pending question to an outcome: answered or failed."""
        if self._is_done():
            return
        try:
            day = self._enter() if self._ids is None else self._horizon
            while True:
                self._ask_all([q for q in self._pending if q.day == day])
                if day >= self._horizon:
                    break
                day += 1
                self._ingest_through(day)
            self._probe_deletion(day)
        except BackendGoneError as error:
            self._give_up(error)

    def take_in(self) -> None:
        """Ingest all days that are needed without asking anything; ``run`` then asks all questions.

        Only for runs in which every question is asked after the last day.
        """
        if self._is_done():
            return
        try:
            if self._enter() < self._horizon:
                self._ingest_through(self._horizon)
        except BackendGoneError as error:
            self._give_up(error)

    def _is_done(self) -> bool:
        """Whether all questions have an outcome and all days came in, unless the backend is gone for this ego."""
        questions_left = any(q.instance.instance_id not in self._progress.finished for q in self._pending)
        return not questions_left and (self._state.horizon_reached or self._state.gone)

    def _give_up(self, error: BackendGoneError) -> None:
        """Note that the backend failed for the rest of this ego: its open questions count as backend failures."""
        self._state.gone = True
        for question in self._pending:
            if question.instance.instance_id not in self._progress.finished:
                self._record(self._without_asking(question, str(error)))

    # -------------------------------------------------------------- namespace and days

    def _enter(self) -> int:
        """Enter the old namespace if it still lives, else a new one; return its last ingested day."""
        state = self._state
        first = min((q.day for q in self._pending), default=self._horizon)
        if state.attempt is not None and state.last_day is not None and state.last_day <= first:
            ids = self._ids_of(state.attempt)
            # Earlier days are not sent again, but items may name their sessions and turns by opaque id.
            for day in range(state.last_day):
                self._sender.remember(day, ids)
            # A backend that is ahead of the log, because the harness was killed in between, shows too much.
            if self._sender.holds(state.last_day, ids, latest=first):
                self._ids = ids
                self._proven = self._session.returns
                return state.last_day
        self._ingest_through(0)
        return 0

    def _open_namespace(self) -> NamespaceIds:
        """Open a new namespace, without a day."""
        state = self._state
        state.attempt = 0 if state.attempt is None else state.attempt + 1
        state.last_day = None
        ids = self._ids_of(state.attempt)
        self._sender.reset(ids)
        self._host.append(
            NamespaceOpened(
                cell_id=self._context.cell.cell_id, ego=self._ego, namespace=ids.namespace, attempt=state.attempt
            )
        )
        return ids

    def _ids_of(self, attempt: int) -> NamespaceIds:
        return NamespaceIds(self._id_key, self._context.cell.cell_id, self._ego, attempt)

    def _ingest_through(self, day: int) -> None:
        """Ingest all days up to ``day``, from the start in a new namespace if the current one is lost meanwhile."""
        while True:
            try:
                if self._ids is None:
                    self._ids = self._open_namespace()
                last = self._state.last_day
                if last is not None and last >= day:
                    return
                self._ingest(0 if last is None else last + 1, self._ids)
            except NamespaceLostError as loss:
                self._leave_namespace(loss)

    def _leave_namespace(self, lost: NamespaceLostError) -> None:
        """Leave the namespace; the next ingest opens a new one. Raises InfraError if models keep failing meanwhile."""
        if lost.cause == "infra":
            self._host.heal_reader()
            self._days_with_failures += 1
            if self._days_with_failures > self._config.infra_retries:
                raise InfraError(f"ego {self._ego}: {lost}")
        self._problem(f"ego {self._ego}: {lost}; its days come in again, into a fresh namespace", lost.cause)
        self._ids, self._state.last_day = None, None
        if lost.cause == "backend":
            self._session.note_days_lost()

    def _ingest(self, day: int, ids: NamespaceIds) -> None:
        """Ingest a day, measure its time, footprint and searches, and record the progress."""
        began = time.monotonic_ns()
        try:
            self._sender.ingest(day, ids)
        finally:
            self._phases.add("ingest", began, time.monotonic_ns())
        self._proven = self._session.returns
        self._note_footprint(day)
        self._time_searches(day, ids)
        self._state.last_day = day
        self._state.horizon_reached |= day == self._last_day
        if day >= self._counted_days:
            self._counted_days = day + 1
            self._host.advance("day")

    def _note_footprint(self, day: int) -> None:
        footprint = self._session.footprint()
        self._host.append(
            FootprintTaken(
                cell_id=self._context.cell.cell_id,
                ego=self._ego,
                day=day,
                taken_mono_ns=time.monotonic_ns(),
                memory=footprint.memory,
                memory_peak=footprint.memory_peak,
                disk=footprint.disk,
            )
        )

    def _time_searches(self, day: int, ids: NamespaceIds) -> None:
        """Time Search if this number of days was requested. A repair times nothing twice."""
        if day + 1 not in self._config.search_days or self._state.horizon_reached:
            return
        search_times = time_searches(
            self._context, self._session.client, self._dataset, self._questions, ids, day, self._config.searches
        )
        self._host.append(search_times)
        if search_times.failures:
            codes = ", ".join(f"{count} {code}" for code, count in search_times.failures.items())
            self._problem(f"ego {self._ego}, day {day}: searches that were timed failed: {codes}")

    def _probe_deletion(self, day: int) -> None:
        """Run the deletion probe, if no more questions will be asked in this namespace."""
        context, count = self._context, self._config.deletions
        every_question_ended = all(q.instance.instance_id in self._progress.finished for q in self._questions)
        if not count or not context.forgets or not every_question_ended or day != self._last_day or self._ids is None:
            return
        probe = DeletionProbe(context, self._session.client, self._dataset, self._ego, self._ids, day)
        seed = opaque_id(self._id_key, "deletions", self._ego)
        for target in draw_targets(self._dataset, self._ego, count, seed):
            try:
                self._host.append(probe.probe(target))
            except (BackendCallError, BackendContractError) as error:
                self._problem(f"ego {self._ego}: the deletion probe ends early: {error}")
                return

    # -------------------------------------------------------------- questions

    def _ask_all(self, questions: Sequence[Question]) -> None:
        """Ask a day's questions, and repeat those with infrastructure failures before the next day is ingested."""
        waiting = list(questions)
        for _round in range(self._config.infra_retries + 1):
            failures = []
            for question in waiting:
                if self._ask(question).status == "infra_failed":
                    failures.append(question)
                    # Go on only with a sane reader: one odd question does not end a run, a dead reader does not
                    # fail all the others.
                    self._host.heal_reader()
            waiting = failures

    def _ask(self, question: Question) -> QuestionAsked:
        """Ask a question, and again if it was lost because the backend ended or went away (see lost_retries)."""
        # Counts the attempts that remain: 1, 0 for a single retry.
        for again in reversed(range(self._config.lost_retries + 1)):
            attempt = self._ask_once(question, again=again > 0)
            if not attempt.lost:
                break
        return attempt

    def _ask_once(self, question: Question, *, again: bool) -> QuestionAsked:
        """Ask a question once, after restoring a lost backend, and record the attempt.

        ``again``: it may be asked another time, so that an attempt that ended with the backend is marked as lost and is
        no outcome.
        """
        if self._session.lost() or self._session.returns != self._proven:
            self._come_back(question.day)
        assert self._ids is not None
        ids = self._ids
        instance_id = question.instance.instance_id
        cell = self._context.cell
        request = search_request(question, cell.reading, ids, cell.backend_options.items())
        if cell.send_evidence:
            add_privileged_evidence(request, self._dataset, question, ids, access_marker=cell.access_markers)
        attempt = self._progress.attempts.get(instance_id, 0)
        began = time.monotonic_ns()
        replies = ask(self._context, self._session.client, question, request, ids)
        self._phases.add("answer", began, time.monotonic_ns())
        audit = self._audits.of(self._ego if cell.projection == "ego" else None)
        if audit is None and not self._is_unaudited:
            self._is_unaudited = True
            self._problem(
                f"ego {self._ego}: a life of more than {MOST_WORDS:,} words: items and prompts are not compared "
                "with it, and sources count as the backend names them",
                "infra",
            )
        asked_record = record_of(self._context, question, ids.namespace, attempt, replies, audit)
        if asked_record.status == "backend_failed":
            self._session.settle_failure(
                asked_record.answer.code
                if asked_record.answer
                else asked_record.search.code
                if asked_record.search
                else ""
            )
            if again and self._session.lost():
                asked_record = asked_record.model_copy(update={"lost": True})
                self._problem(f"{instance_id}: lost with the backend ({asked_record.cause}); it is asked again")
        self._record(asked_record)
        for reply, span in (("Search", asked_record.search), ("Retrieved", asked_record.answer)):
            visible_day = span.visible_through_day if span else None
            if visible_day is not None and visible_day != question.day:
                self._problem(
                    f"{instance_id}: {reply} saw through day {visible_day}, the last committed is {question.day}"
                )
        return asked_record

    def _come_back(self, day: int) -> None:
        """Restore the backend after a crash, and make sure that it holds every day through ``day``.

        A backend that cannot prove it gets its days again, in a new namespace.
        """
        if (failure := self._session.revive()) is not None:
            self._problem(failure)
        if self._fresh_after_crash or self._ids is None or not self._sender.holds(day, self._ids, latest=day):
            self._leave_namespace(NamespaceLostError(lost_after_crash(day, again=self._fresh_after_crash), "backend"))
            self._ingest_through(day)
        self._proven = self._session.returns

    def _record(self, attempt: QuestionAsked) -> None:
        self._host.append(attempt)
        self._progress.note(attempt)
        if attempt.instance_id in self._progress.finished:
            self._host.advance("question")

    def _without_asking(self, question: Question, cause: str) -> QuestionAsked:
        """Return the record of a question that could not be asked, because the backend had failed before."""
        instance_id = question.instance.instance_id
        return QuestionAsked(
            cell_id=self._context.cell.cell_id,
            instance_id=instance_id,
            ego=self._ego,
            namespace=self._ids_of(self._state.attempt or 0).namespace,
            day=question.day,
            attempt=self._progress.attempts.get(instance_id, 0),
            status="backend_failed",
            cause=cause,
            asked_mono_ns=0,
        )

    def _problem(self, message: str, cause: Literal["backend", "infra"] = "backend") -> None:
        cell_id = self._context.cell.cell_id
        at = datetime.now(UTC).isoformat(timespec="seconds")
        records: tuple[AnyRecord, ...] = (
            Problem(at=at, where=f"cell {cell_id}", cause=cause, message=message, cell_id=cell_id),
        )
        self._host.append(*records)
