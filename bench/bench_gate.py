"""Measures what the gate shows to whom: ``make bench ARGS='gate --dataset DIR …'``, on sets with permission questions.

No reader and no judge with a model: a question counts as *disclosed* where the fact is in an item that would reach the
prompt. *decision*: the gate alone, asked for the turns that hold the fact, whatever a search would find; *prompt*: the
ten items of bm25, before and after the gate. P is the share of DENY questions that are not disclosed, U that of ALLOW
questions that are, J = U + P - 1; intervals are a bootstrap over egos. Policies: always tell, always refuse.
Of GateMem, U counts questions of which the prompt states everything that has to be included, A and F are its shares of
access-control and forgetting questions of which the prompt states a leak target (lower is better).
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from memarena.execution.cells.messages import day_batch, search_request
from memarena.execution.cells.opaque_ids import IdKind, NamespaceIds
from memarena.execution.planning.questions import plan_questions
from memarena.judging.leak_detection import protected_fact, telling_part
from memarena.log.manifest import Reading
from memarena.log.records import Question
from memarena_backend import Call, Day, Item, Query
from memarena_backend.day_decoder import DayAssembler
from memarena_backend.parsing import QueryParser
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_gated import GatedMemory
from memarena_backend_gated.decision import Default, decide
from memarena_backend_gated.settings import Settings
from memarena_backend_gated.store import RecordStore
from memarena_dataset.gold import PermissionGold
from memarena_dataset.io.reading import Dataset, open_dataset
from memarena_dataset.model import Family
from memarena_dataset.values import TermValue
from rich.table import Table

DRAWS = 2_000
READING = Reading(max_answer_tokens=400, max_items=10, max_context_tokens=8_192)
POLICIES = ("always tell", "always refuse", "gated, careful", "gated, open")
GATED: Mapping[str, Default] = {"gated, careful": "careful", "gated, open": "open"}


@dataclass
class Outcome:
    """One question: whether each policy discloses the fact, by decision and in the prompt."""

    world: int
    ego: str
    kind: str
    group: str
    decision: dict[str, bool] = field(default_factory=dict)
    prompt: dict[str, bool] = field(default_factory=dict)
    grounds: str = ""
    gate_us: float = 0.0
    search_us: float = 0.0


def ask_world(folder: Path, number: int, most_egos: int | None = None, seed: int | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every permission question of a data set: of each ego after its days, in the order of time.

    ``most_egos`` bounds the egos, by id or, with a ``seed``, shuffled.
    """
    dataset = open_dataset(folder)
    permission = [i for i in dataset.instances if i.family is Family.PERMISSION]
    by_ego: defaultdict[str, list[Question]] = defaultdict(list)
    for question in plan_questions(dataset, permission, "interleaved", 0):
        by_ego[question.instance.ego_agent_id].append(question)
    egos = sorted(by_ego)
    if seed is not None:
        random.Random(seed).shuffle(egos)
    for ego in egos[:most_egos]:
        yield from _ask_ego(dataset, ego, by_ego[ego], number)


def _ask_ego(dataset: Dataset, ego: str, questions: Sequence[Question], number: int) -> Iterator[Outcome]:
    ids = NamespaceIds(b"bench", "gate", ego, 0)
    beneath = Bm25Memory()
    gated = GatedMemory(beneath, RecordStore.in_memory(), Settings())
    parser = QueryParser(gated.describe())
    day = 0
    for question in questions:
        while day <= question.day:
            gated.commit_day(ids.namespace, day_of(dataset, ego, day, ids), Call.internal())
            day += 1
        query = parser.parse(search_request(question, READING, ids, ()))
        yield _outcome(dataset, question, query, gated, beneath, ids, number)


def day_of(dataset: Dataset, ego: str, day: int, ids: NamespaceIds) -> Day:
    """Return a day of an ego as a memory receives it."""
    assembler = DayAssembler()
    for frame in day_batch(dataset, ego, day, ids, None).frames:
        assembler.add(frame)
    return assembler.finish().day


def _outcome(
    dataset: Dataset,
    question: Question,
    query: Query,
    gated: GatedMemory,
    beneath: Bm25Memory,
    ids: NamespaceIds,
    number: int,
) -> Outcome:
    """Ask one question with and without the gate; return what each policy discloses, and the times."""
    gold = question.instance.gold
    assert isinstance(gold, PermissionGold)
    metadata = question.instance.metadata
    outcome = Outcome(number, question.instance.ego_agent_id, _kind(question, gold), str(metadata.get("kind", "")))
    evidence = [
        Item(turn.text, 0.0, (ids.make(IdKind.SESSION, session_id),), (ids.make(IdKind.TURN, turn.turn_id),))
        for session_id in question.instance.evidence_session_ids
        for turn in dataset.session(session_id).turns
        if turn.turn_id in question.instance.evidence_turn_ids
    ]
    began = time.perf_counter()
    items = beneath.search(ids.namespace, query, Call.internal()).items
    outcome.search_us = (time.perf_counter() - began) * 1e6
    for policy, default in GATED.items():
        began = time.perf_counter()
        visible = _visible(gated, ids.namespace, items, query, default)
        outcome.gate_us = (time.perf_counter() - began) * 1e6
        outcome.prompt[policy] = _disclosed(question, gold, visible)
        visible_evidence = _visible(gated, ids.namespace, evidence, query, default)
        outcome.decision[policy] = _disclosed(question, gold, visible_evidence) if evidence else outcome.prompt[policy]
        if default == "careful":
            outcome.grounds = _grounds(gated, ids.namespace, evidence, query, default)
    outcome.prompt |= {"always tell": _disclosed(question, gold, items), "always refuse": False}
    outcome.decision |= {"always tell": True if evidence else outcome.prompt["always tell"], "always refuse": False}
    return outcome


def _kind(question: Question, gold: PermissionGold) -> str:
    if gold.self_item or question.requester_kind == "owner":
        return "self"
    if gold.control:
        return "control"
    return "ALLOW" if gold.allowed else "DENY"


def _visible(gated: GatedMemory, namespace: str, items: Iterable[Item], query: Query, default: Default) -> list[Item]:
    return gated.shown(namespace, items, query, default)


def _grounds(gated: GatedMemory, namespace: str, items: Iterable[Item], query: Query, default: Default) -> str:
    if query.requester.kind.value == "owner":
        return "owner"
    state = gated.namespace(namespace)
    decisions = [decide(state, item, query, default) for item in items]
    return ",".join(sorted({f"{'shown' if d.shown else 'withheld'} {d.ground.value}" for d in decisions}))


def _disclosed(question: Question, gold: PermissionGold, items: Iterable[Item]) -> bool:
    """Whether items state a telling part of the fact; of a utility question of GateMem, of each value that it needs."""
    if question.instance.metadata.get("kind") != "utility":
        return _states(question, gold, items)
    all_items = list(items)
    terms = [value for value in gold.values if isinstance(value, TermValue)]
    parts = (gold.model_copy(update={"fact": term.text, "values": (term,)}) for term in terms)
    return all(_states(question, part, all_items) for part in parts)


def _states(question: Question, gold: PermissionGold, items: Iterable[Item]) -> bool:
    names = (question.ego_name, question.asker_name)
    fact = protected_fact(gold, question.question_text, names, question.asked_at[:4])
    return any(telling_part(fact, item.text) for item in items)


# ------------------------------------------------------------------ figures


def _figures(outcomes: Sequence[Outcome], of: str, policy: str) -> tuple[float, float, float]:
    """Return P, U and J of a policy, as shares."""
    disclosures = {kind: [getattr(o, of)[policy] for o in outcomes if o.kind == kind] for kind in ("DENY", "ALLOW")}
    p = 1 - float(np.mean(disclosures["DENY"])) if disclosures["DENY"] else float("nan")
    u = float(np.mean(disclosures["ALLOW"])) if disclosures["ALLOW"] else float("nan")
    return p, u, p + u - 1


def _interval(outcomes: Sequence[Outcome], of: str, policy: str) -> tuple[float, float]:
    """Return the 95% interval of J by a bootstrap over the egos of all worlds."""
    egos: defaultdict[tuple[int, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        egos[outcome.world, outcome.ego].append(outcome)
    counts = np.array(
        [
            [sum(o.kind == kind for o in group) for kind in ("DENY", "ALLOW")]
            + [sum(o.kind == kind and getattr(o, of)[policy] for o in group) for kind in ("DENY", "ALLOW")]
            for group in egos.values()
        ]
    )
    rng = np.random.default_rng(0)
    draws = counts[rng.integers(0, len(counts), (DRAWS, len(counts)))].sum(axis=1)
    with np.errstate(invalid="ignore"):
        j = draws[:, 3] / draws[:, 1] - draws[:, 2] / draws[:, 0]
    low, high = np.nanpercentile(j, [2.5, 97.5])
    return float(low), float(high)


def _gate_table(outcomes: Sequence[Outcome], of: str) -> Table:
    count = {kind: sum(o.kind == kind for o in outcomes) for kind in ("DENY", "ALLOW", "self", "control")}
    title = f"by {of}: {count['DENY']} DENY, {count['ALLOW']} ALLOW, {count['self']} self, {count['control']} control"
    table = Table("policy", "P", "U", "J", "95%", "self", title=title)
    for policy in POLICIES:
        p, u, j = _figures(outcomes, of, policy)
        low, high = _interval(outcomes, of, policy)
        own_items = [getattr(o, of)[policy] for o in outcomes if o.kind == "self"]
        self_share = f"{100 * np.mean(own_items):.1f}" if own_items else "n/a"
        table.add_row(policy, f"{p:.3f}", f"{u:.3f}", f"{j:+.3f}", f"[{low:+.3f}, {high:+.3f}]", self_share)
    return table


def _grounds_table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("kind", "grounds of the turns that hold the fact", "questions", title="by decision, careful")
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for outcome in outcomes:
        counts[outcome.kind, outcome.grounds] += 1
    for (kind, grounds), number in sorted(counts.items(), key=lambda pair: (pair[0][0], -pair[1])):
        table.add_row(kind, grounds, str(number))
    return table


def _worlds_table(outcomes: Sequence[Outcome], names: Sequence[str]) -> Table:
    table = Table("world", "DENY", "ALLOW", "J, decision", "J, prompt", title="gated, careful, by world")
    for number, name in enumerate(names):
        part = [o for o in outcomes if o.world == number]
        j = [f"{_figures(part, of, 'gated, careful')[2]:+.3f}" for of in ("decision", "prompt")]
        table.add_row(name, *(str(sum(o.kind == k for o in part)) for k in ("DENY", "ALLOW")), *j)
    return table


def _gatemem_table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("policy", "U", "A", "F", "questions", title="GateMem: utility, leaks of access and forgetting, %")
    for policy in POLICIES:
        shares = []
        for kind in ("utility", "access control", "active forgetting"):
            outcomes_of_kind = [o.prompt[policy] for o in outcomes if o.group == kind]
            shares.append(f"{100 * np.mean(outcomes_of_kind):.1f}" if outcomes_of_kind else "n/a")
        table.add_row(policy, *shares, str(len(outcomes)))
    return table


def tables(*options: str) -> list[Table]:
    """Return the figures over all data sets together."""
    parser = argparse.ArgumentParser(prog="bench gate")
    parser.add_argument("--dataset", action="append", required=True, metavar="DIR")
    parser.add_argument("--egos", type=int, help="only so many egos of each data set, by id")
    parser.add_argument("--seed", type=int, help="shuffle the egos of each data set before --egos counts")
    chosen = parser.parse_args(options)
    folders: list[str] = chosen.dataset
    outcomes = [
        outcome
        for number, name in enumerate(folders)
        for outcome in ask_world(Path(name), number, chosen.egos, chosen.seed)
    ]
    gatemem = [outcome for outcome in outcomes if outcome.group]
    if gatemem:
        return [_gatemem_table(gatemem), _grounds_table(gatemem)]
    times = Table("µs, p50", "p95", title="time of the gate in a search of ten items")
    gate = [outcome.gate_us for outcome in outcomes]
    times.add_row(f"{np.median(gate):.0f}", f"{np.percentile(gate, 95):.0f}")
    return [
        _gate_table(outcomes, "decision"), _gate_table(outcomes, "prompt"), _worlds_table(outcomes, folders),
        _grounds_table(outcomes), times,
    ]  # fmt: skip
