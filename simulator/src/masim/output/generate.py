"""Making a data set: plan the days, realise them on all workers, derive the questions, write the files.

Days are written as they are finished, into a folder inside the output folder. A generation that is killed goes on
where it stopped: plans are made again (they are cheap and exact), realised days are taken as they are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool
from pathlib import Path

from memarena.dataset.model import Family

from masim import __version__
from masim.config import WorldConfig
from masim.errors import MasimError
from masim.facts.catalogue import catalogue
from masim.families.book import Book
from masim.families.derive import Asked, Deriver
from masim.output.rows import (
    assistant_row,
    dump,
    event_row,
    fact_row,
    persona_row,
    report_row,
    schedule_row,
    session_row,
)
from masim.plan.day import DayPlan, Planner
from masim.plan.facts import FactSource
from masim.plan.model import SessionPlan
from masim.streams import Stream
from masim.text.library import data_files, library
from masim.text.speech import speak
from masim.world.build import build_world
from masim.world.model import World

PARTS = ".days"
"""Folder of finished days inside the output folder, removed when the data set is complete."""
_CHUNK = 48
Progress = Callable[[str], None]


def generate(
    config: WorldConfig, out: Path, *, workers: int = 1, progress: Progress = lambda _: None
) -> dict[str, int]:
    """Make the data set of ``config`` in ``out``; returns instances per family.

    Raises:
        MasimError: ``out`` holds something else than the unfinished data set of the same configuration.
    """
    began = time.monotonic()
    parts = _open_parts(config, out)
    world = build_world(config)
    planner = Planner(config, world, catalogue())
    plans: list[DayPlan] = []
    with _pool(workers) as pool:
        for day in range(config.days):
            plan = planner.plan(day)
            planner.commit(plan)
            target = parts / f"day_{day:04d}.jsonl"
            if not target.exists():
                _write_atomically(target, _realised(config.key, plan.sessions, pool))
            plans.append(_light(plan))
            progress(f"day {day + 1} of {config.days}: {len(plan.sessions)} sessions")
    counts = _finish(config, world, planner, plans, out, parts)
    _write_run_info(out, time.monotonic() - began, workers)
    return counts


def realise(job: tuple[str, tuple[SessionPlan, ...]]) -> str:
    """Lines of the corpus for some sessions of a world; runs in a worker."""
    key, sessions = job
    lines = []
    for plan in sessions:
        stream = Stream(key, "speech", plan.day, plan.session_id)
        lines.append(dump(session_row(plan, speak(plan, stream, library()))) + "\n")
    return "".join(lines)


@contextmanager
def _pool(workers: int) -> Iterator[Pool | None]:
    if workers <= 1:
        yield None
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield pool


def _realised(key: str, sessions: tuple[SessionPlan, ...], pool: Pool | None) -> Iterable[str]:
    jobs = [(key, sessions[start : start + _CHUNK]) for start in range(0, len(sessions), _CHUNK)]
    return map(realise, jobs) if pool is None else pool.imap(realise, jobs)


def _light(plan: DayPlan) -> DayPlan:
    """A plan without what is written already."""
    return DayPlan(plan.day, plan.sessions, (), plan.events, plan.schedules)


def _open_parts(config: WorldConfig, out: Path) -> Path:
    parts = out / PARTS
    stamp = dump({"configuration": config.model_dump(mode="json"), "banks": data_files(), "masim": __version__})
    if not parts.exists():
        if out.exists() and any(out.iterdir()):
            raise MasimError(f"--out {out}: not empty; an empty or new folder is expected")
        parts.mkdir(parents=True)
        (parts / "configuration.json").write_text(stamp, encoding="utf-8")
        return parts
    written = parts / "configuration.json"
    if not written.exists() or written.read_text(encoding="utf-8") != stamp:
        raise MasimError(f"--out {out}: holds an unfinished data set of another configuration; choose another folder")
    return parts


def _write_atomically(target: Path, texts: Iterable[str]) -> None:
    draft = target.with_suffix(".part")
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for text in texts:
            file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(target)


def _finish(
    config: WorldConfig, world: World, planner: Planner, plans: list[DayPlan], out: Path, parts: Path
) -> dict[str, int]:
    mentions = {
        session.session_id: other for plan in plans for session in plan.sessions for other in _named(session, world)
    }
    book = Book(config, world, planner.catalogue, planner.knowledge.said, mentions)
    for plan in plans:
        for session in plan.sessions:
            people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
            for one in people:
                for other in people:
                    if one != other:
                        book.met[one].setdefault(other, plan.day)
    asked = Deriver(book, FactSource(config, planner.catalogue)).derive()
    wanted = {one.draft.truth["antecedent_turn"] for one in asked if "antecedent_turn" in one.draft.truth}
    texts = _write_corpus(out, parts, config.days, wanted)
    _write_world(config, world, plans, out)
    counts = _write_questions(asked, out, texts)
    told = {one.statement_id for question in asked for one in question.draft.evidence}
    rows = (fact_row(stated, stated.statement_id in told) for stated in planner.knowledge.said)
    _write_lines(out / "facts.jsonl", rows)
    report = _counts(config, plans, counts, len(planner.knowledge.said))
    (out / "pipeline_report.json").write_text(dump(report) + "\n", encoding="utf-8")
    shutil.rmtree(parts)
    return counts


def _named(session: SessionPlan, world: World) -> list[str]:
    name = session.looks_back[0]
    return [person.agent_id for person in world.people if name and name in (person.name, person.first_name)]


def _write_corpus(out: Path, parts: Path, days: int, wanted: set[str]) -> dict[str, str]:
    """Join the days to the corpus; returns the texts of the wanted turns."""
    sessions = {turn.rsplit("_t", 1)[0] for turn in wanted}
    texts: dict[str, str] = {}
    draft = out / "corpus_sessions.part"
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for day in range(days):
            with (parts / f"day_{day:04d}.jsonl").open(encoding="utf-8") as lines:
                for line in lines:
                    file.write(line)
                    if line[15 : line.index('"', 15)] in sessions:
                        texts |= {turn["turn_id"]: turn["text"] for turn in json.loads(line)["turns"]}
    draft.replace(out / "corpus_sessions.jsonl")
    return texts


def _write_world(config: WorldConfig, world: World, plans: list[DayPlan], out: Path) -> None:
    _write_lines(
        out / "agents_personas.jsonl",
        (row for person in world.people for row in (persona_row(person, world), assistant_row(person))),
    )
    _write_lines(
        out / "agent_schedules.jsonl",
        (schedule_row(schedule, plan.day) for plan in plans for schedule in plan.schedules.values()),
    )
    _write_lines(out / "events.jsonl", (event_row(event) for plan in plans for event in plan.events))
    groups = [
        {
            "group_id": group.group_id,
            "name": group.name,
            "kind": group.kind,
            "members": list(group.members),
            "roles": dict(group.roles),
            "location_id": group.place_id,
        }
        for group in world.groups
    ]
    places = [
        {
            "location_id": place.location_id,
            "name": place.name,
            "kind": place.kind,
            "opens": place.opens,
            "closes": place.closes,
            "privacy": place.privacy,
        }
        for place in world.places.values()
    ]
    (out / "groups.json").write_text(dump(groups) + "\n", encoding="utf-8")
    (out / "locations.json").write_text(dump(places) + "\n", encoding="utf-8")
    edges = ({"source": edge.source, "target": edge.target, "weight": edge.weight} for edge in world.edges.values())
    _write_lines(out / "graph_edges.jsonl", edges)
    mapped: dict[str, list[str]] = {}
    for plan in plans:
        for session in plan.sessions:
            for speaker in session.speakers:
                mapped.setdefault(speaker.agent_id, []).append(session.session_id)
    (out / "ego_session_map.json").write_text(dump(dict(sorted(mapped.items()))) + "\n", encoding="utf-8")


def _write_questions(asked: list[Asked], out: Path, texts: dict[str, str]) -> dict[str, int]:
    folder = out / "eval_instances"
    folder.mkdir(exist_ok=True)
    counts: dict[str, int] = {}
    for family in Family:
        rows = [one.row(texts) for one in asked if one.draft.family is family]
        counts[family.value] = len(rows)
        _write_lines(folder / f"{family.value}.jsonl", rows)
    return counts


def _counts(config: WorldConfig, plans: list[DayPlan], questions: dict[str, int], stated: int) -> dict[str, object]:
    kinds = Counter(session.kind.value for plan in plans for session in plan.sessions)
    counts = {
        "agents": config.agents,
        "days": config.days,
        "sessions": sum(kinds.values()),
        "turns": sum(session.turn_count for plan in plans for session in plan.sessions),
        "events": sum(len(plan.events) for plan in plans),
        "statements": stated,
        "instances": sum(questions.values()),
    }
    short = {
        family.value: {"wanted": config.questions(family), "found": questions[family.value]}
        for family in Family
        if questions[family.value] < config.questions(family)
    }
    found = {"counts": counts, "session_kinds": dict(sorted(kinds.items())), "instances": questions, "short": short}
    return report_row(config, {**found, "banks": data_files()})


def _write_lines(path: Path, rows: Iterable[object]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(dump(row) + "\n")


def _write_run_info(out: Path, wall_s: float, workers: int) -> None:
    info = {
        "masim": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "workers": workers,
        "wall_s": round(wall_s, 2),
    }
    (out / "run_info.json").write_text(dump(info) + "\n", encoding="utf-8")
