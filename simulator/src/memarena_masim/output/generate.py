"""Generates a data set: plans the days, writes their text, derives the questions, writes the files.

Days are written as they are finished, into a folder inside the output folder. A generation that is killed goes on
where it stopped: plans are made again (they are cheap and exact), days that have their text are used as they are.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from memarena_dataset.model import Family
from pydantic import JsonValue

from memarena_masim import __version__
from memarena_masim.config import WorldConfig
from memarena_masim.engines.model import Engine, Setting
from memarena_masim.engines.offline import OfflineEngine
from memarena_masim.engines.tally import summed
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.json_files import dump
from memarena_masim.output.chronicle import Chronicle
from memarena_masim.output.lock import only_writer
from memarena_masim.output.parts import PARTS, Parts, clear_left, is_left
from memarena_masim.output.rows import fact_row, report_row
from memarena_masim.output.world_files import write_lines, write_world
from memarena_masim.output.worlds import REPORT, counts_of_complete
from memarena_masim.pack import unchanged
from memarena_masim.phrases.library import folder_of
from memarena_masim.plan.day import DayPlan, Planner
from memarena_masim.plan.facts import FactSource
from memarena_masim.questions import phrasing
from memarena_masim.questions.book import Book
from memarena_masim.questions.derive import Asked, Deriver, spread_of_interference
from memarena_masim.questions.rewordable import rewordable
from memarena_masim.world.build import build_world
from memarena_masim.world.model import World

__all__ = ["PARTS", "Progress", "generate"]

ENGINE_LOG = "engine_log.jsonl"
"""File of an engine's log: a row for each removed unplanned fact, each session worded offline, and so on."""

Progress = Callable[[str], None]


def generate(
    config: WorldConfig,
    out: Path,
    *,
    workers: int = 1,
    engine: Engine | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, int]:
    """Make the data set of ``config`` in ``out`` with ``engine`` (offline, on ``workers``, if none is given).

    Returns instances per family.

    Raises:
        MasimError: ``out`` holds something else than the unfinished data set of the same configuration and engine, or
            the engine cannot go on; finished days are kept. Or another process works there, or nothing can be asked
            of a world so small.
        OSError: a file cannot be written; finished days are kept.
    """
    began = time.monotonic()
    engine = engine or OfflineEngine(workers)
    with only_writer(out, progress):
        if is_left(out) and (complete := counts_of_complete(config, engine.identity, out)) is not None:
            clear_left(out)
            return complete
        parts = Parts.open(config, engine.identity, out)
        world = build_world(config)
        planner = Planner(config, world, catalogue(config.words))
        chronicle, day_lines = Chronicle(world), dict[int, str]()
        for words in engine.words(Setting(config, world), _unwritten(planner, chronicle, day_lines, parts, progress)):
            parts.write(words)
            progress(day_lines.pop(words.day))
        counts = _finish(config, world, planner, chronicle, out, parts, engine)
        _write_run_info(out, time.monotonic() - began, engine)
        parts.remove()  # last: until then the same command finishes what is not there yet
    return counts


def _unwritten(
    planner: Planner, chronicle: Chronicle, day_lines: dict[int, str], parts: Parts, progress: Progress
) -> Iterator[DayPlan]:
    """Plan and commit all days in order; yield those that have no words yet.

    ``day_lines`` gets the line of progress for each of these, by day.
    """
    for day in range(planner.config.days):
        plan = planner.plan(day)
        planner.commit(plan)
        chronicle.add(plan)
        line = f"day {day + 1} of {planner.config.days}: {len(plan.sessions)} sessions"
        if parts.has(day):
            progress(line)
        else:
            day_lines[day] = line
            yield plan


def _finish(
    config: WorldConfig,
    world: World,
    planner: Planner,
    chronicle: Chronicle,
    out: Path,
    parts: Parts,
    engine: Engine,
) -> dict[str, int]:
    """Derive and word the questions, and write all files of the data set; return the questions by family."""
    book = Book(config, world, planner.catalogue, planner.knowledge.said, chronicle.named)
    book.met.update(chronicle.met)
    questions = Deriver(book, FactSource(config, planner.catalogue)).derive()
    if not questions:
        parts.remove()
        raise MasimError(_too_little(config, chronicle.sessions))
    needed_turns = {
        question.draft.truth["antecedent_turn"] for question in questions if "antecedent_turn" in question.draft.truth
    }
    needed_turns |= {stated.turn_id for question in questions for stated in question.draft.evidence}
    texts = _write_corpus(out, parts, config.days, needed_turns)
    write_world(config, world, chronicle.sessions_of, planner.impressions, out)
    plain = {question.instance_id: question.draft.query for question in questions}
    work = [*parts.counts(config.days), _reword(questions, book, texts, config, engine)]
    reworded = frozenset(
        question.instance_id for question in questions if question.draft.query != plain[question.instance_id]
    )
    worded = phrasing.put(questions, book, texts, reworded)
    counts = _write_questions(questions, out, texts)
    evidence = {stated.statement_id for question in questions for stated in question.draft.evidence}
    rows = (fact_row(stated, stated.statement_id in evidence) for stated in planner.knowledge.said)
    write_lines(out / "facts.jsonl", rows)
    log = list(parts.log(config.days))
    if log:
        write_lines(out / ENGINE_LOG, log)
    report = _counts(config, chronicle, counts, len(planner.knowledge.said), {**engine.identity, **summed(work)})
    more = {"interference": spread_of_interference(questions), "wording": worded}
    (out / REPORT).write_text(dump({**report, **more}) + "\n", encoding="utf-8")
    return counts


def _too_little(config: WorldConfig, sessions: int) -> str:
    size = f"{config.agents} people over {config.days} days"
    return f"--density {config.density:g}: {sessions} sessions of {size} give no question; a higher one is expected"


def _reword(
    asked: list[Asked], book: Book, texts: dict[str, str], config: WorldConfig, engine: Engine
) -> Mapping[str, JsonValue]:
    """Reword questions, if the engine can; return its counts."""
    if not engine.rewords:
        return {}
    result = engine.reword(rewordable(asked, book, texts, config.calendar_epoch))
    for question in asked:
        question.draft.query = result.texts.get(question.instance_id, question.draft.query)
    return result.counts


def _write_corpus(out: Path, parts: Parts, days: int, wanted: set[str]) -> dict[str, str]:
    """Write the corpus from the finished days; return the texts of the ``wanted`` turns, by turn id."""
    sessions = {turn.rsplit("_t", 1)[0] for turn in wanted}
    texts: dict[str, str] = {}
    draft = out / "corpus_sessions.part"
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for line in parts.lines(days):
            file.write(line)
            # 15 characters, {"session_id":", are before the id: most lines need not be parsed
            if line[15 : line.index('"', 15)] in sessions:
                texts |= {turn["turn_id"]: turn["text"] for turn in json.loads(line)["turns"]}
    draft.replace(out / "corpus_sessions.jsonl")
    return texts


def _write_questions(asked: list[Asked], out: Path, texts: dict[str, str]) -> dict[str, int]:
    folder = out / "eval_instances"
    folder.mkdir(exist_ok=True)
    counts: dict[str, int] = {}
    for family in Family:
        rows = [question.row(texts) for question in asked if question.draft.family is family]
        counts[family.value] = len(rows)
        write_lines(folder / f"{family.value}.jsonl", rows)
    return counts


def _counts(
    config: WorldConfig,
    chronicle: Chronicle,
    questions: dict[str, int],
    stated: int,
    engine: Mapping[str, JsonValue],
) -> dict[str, object]:
    """Return the report of the data set, with families that have fewer questions than aimed at (``short``)."""
    counts = {
        "agents": config.agents,
        "days": config.days,
        "sessions": chronicle.sessions,
        "turns": chronicle.turns,
        "events": chronicle.events,
        "statements": stated,
        "mentioned": chronicle.mentioned,
        "instances": sum(questions.values()),
    }
    short = {
        family.value: {"wanted": config.questions(family), "found": questions[family.value]}
        for family in Family
        if questions[family.value] < config.questions(family)
    }
    figures = {
        "counts": counts,
        "session_kinds": dict(sorted(chronicle.kinds.items())),
        "instances": questions,
        "short": short,
    }
    pack = unchanged(folder_of(config.words), config.pack.sha256)
    return report_row(config, {**figures, "engine": dict(engine), "banks": dict(pack.hashes)})


def _write_run_info(out: Path, wall_s: float, engine: Engine) -> None:
    info: dict[str, JsonValue] = {
        "masim": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        **engine.run_info,
        "wall_s": round(wall_s, 2),
    }
    (out / "run_info.json").write_text(dump(info) + "\n", encoding="utf-8")
