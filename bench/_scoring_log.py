"""Writes a log like that of a whole published grid (75 cells of 1,579 questions) through the real writer.

Families, golds and counts are those of the published set; items, prompts and answers repeat as they do in a run (every
reader and seed of a backend sees the same items). Answers are right, wrong, refusing or ignorant by a seeded draw.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memarena.judging import JUDGE_NAME, judge, value_judge_version
from memarena.log.records import (
    AnyRecord,
    Cell,
    EvidenceSession,
    EvidenceText,
    GatewayCall,
    IngestDone,
    Manifest,
    Question,
    QuestionAsked,
    RetrievedItem,
    RunEnded,
    RunStarted,
    Verdict,
)
from memarena.log.store import LogWriter
from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    Gold,
    OpenGold,
    PermissionGold,
    TextGold,
)
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, DateValue, NameValue, PlaceValue, TermValue

from tests.support import logs

COUNTS = {
    Family.CLOZE: 198,
    Family.METADATA: 169,
    Family.QA: 252,
    Family.TEMPORAL: 150,
    Family.COUNTERFACTUAL: 100,
    Family.CONFLICT: 170,
    Family.ANAPHORA: 170,
    Family.CONFABULATION: 170,
    Family.PERMISSION: 200,
}
"""Questions by family: 1,579."""
BACKENDS = ("vanilla", "rag", "memobase", "memsearch", "oracle")
READERS = ("qwen3-0.6b", "llama-3.2-3b", "mistral-7b", "qwen3-8b", "qwen3-32b")
SEEDS = ("s2", "s3", "s4")
EGOS = 50
ITEMS = 10
DAYS = 15
_BATCH = 400
_PLACES = ("Porto", "Graz", "Lyon", "Cork", "Ghent", "Turin", "Bergen", "Tartu")
_THINGS = ("kiln", "loom", "lathe", "canoe", "violin", "tent", "printer", "bicycle", "telescope", "sewing machine")
_FIRST = ("Maya", "Bob", "Ines", "Tomas", "Leila", "Sven", "Priya", "Omar", "Greta", "Luca")
_LAST = ("Chen", "Ray", "Okafor", "Novak", "Haddad", "Lindqvist", "Sharma", "Farouk", "Weber", "Rossi")
_TAILS = ("That is what the notes say.", "It came up in a message.", "See the context.", "So I was told.")
_CHAT = "Did you sleep well? The bus was late again, and I still have to water the plants before the others come over."


@dataclass(frozen=True)
class _Planned:
    """A question with a right and a wrong answer."""

    question: Question
    right: str
    wrong: str


def write_grid(run_dir: Path, seed: int = 0, only: int | None = None) -> tuple[int, int]:
    """Write the log to an empty folder, of the first ``only`` cells; returns its cells and its questions per cell."""
    rng = random.Random(seed)
    planned = [_question(rng, n, family) for n, family in enumerate(_families())]
    evidence = {s.session_id: s for a in planned for s in [_session(a)]}
    cells = [_cell(backend, reader, label) for backend in BACKENDS for reader in READERS for label in SEEDS][:only]
    with LogWriter(run_dir) as log:
        log.append(
            RunStarted(run_id="bench-scoring", started_at="2026-01-01T00:00:00+00:00", manifest=_manifest(cells)),
            *(EvidenceText(session=s) for s in evidence.values()),
            *(a.question for a in planned),
        )
        for cell in cells:
            log.append(*(_ingest(cell, ego, day) for ego in range(EGOS) for day in range(DAYS)))
            batch: list[AnyRecord] = []
            for record in _records_of(cell, planned, evidence):
                batch.append(record)
                if len(batch) >= _BATCH:
                    log.append(*batch)
                    batch.clear()
            log.append(*batch)
        log.append(RunEnded(ended_at="2026-01-02T00:00:00+00:00", reason="completed"))
    return len(cells), len(planned)


def _families() -> list[Family]:
    return [family for family, count in COUNTS.items() for _ in range(count)]


# ------------------------------------------------------------------ questions


def _question(rng: random.Random, number: int, family: Family) -> _Planned:
    """Return a question of a family with its gold, its text, a right and a wrong answer."""
    ego = number % EGOS
    name = f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"
    thing, location, other = rng.choice(_THINGS), *rng.sample(_PLACES, 2)
    day, amount = rng.randrange(DAYS), rng.randrange(120, 980)
    gold, text, right, wrong = _wording(rng, family, number, (name, thing, location, other), day, amount)
    allowed = isinstance(gold, PermissionGold) and gold.expected_action == "disclose"
    abstain = isinstance(gold, AbstainGold)
    question = logs.make_question(
        f"{family.value}_{number:05d}",
        family,
        gold,
        text,
        evidence=() if abstain else (f"sess_{number:05d}",),
        ego=f"agent_{ego:03d}",
        asker=f"agent_{(ego + (family is Family.PERMISSION)) % EGOS:03d}",
        asker_name=name if allowed else "Nobody Special",
        asked_at="2025-01-16T00:00:00Z",
        day=DAYS - 1,
        lag_days=None if abstain else DAYS - 1 - day,
        difficulty=("easy", "medium", "hard")[number % 3],
        tier=("single_session", "cross_session", "full_ego")[number % 3],
    )
    instance = question.instance.model_copy(update={"metadata": {"interference": number % 20}})
    ego_name = f"{_FIRST[ego % 10]} {_LAST[ego // 10]}"
    question = question.model_copy(update={"instance": instance, "ego_name": ego_name})
    return _Planned(question, right, wrong)


def _wording(
    rng: random.Random, family: Family, number: int, names: tuple[str, str, str, str], day: int, amount: int
) -> tuple[Gold, str, str, str]:
    """Return gold, question, a right answer and a wrong one."""
    name, thing, location, _ = names
    if family is Family.CLOZE:
        options = tuple(rng.sample(_THINGS, 5))
        letter = "ABCDE"[number % 5]
        option_lines = "\n".join(f"{x}) {o}" for x, o in zip("ABCDE", options, strict=True))
        gold = ClozeGold(answer_letter=letter, answer_text=options[number % 5], options=options)
        wrong = "ABCDE"[(number + 1) % 5]
        return (
            gold,
            f"{name} bought a ____ in {location}.\n{option_lines}",
            f"{letter}) {options[number % 5]}",
            f"({wrong})",
        )
    if family is Family.METADATA:
        metadata = TextGold(answers=(name,), values=(NameValue(name=name),), attribute="speaker")
        return (
            metadata,
            f"Who told you about the {thing} from {location}?",
            f"It was {name}.",
            "Somebody else, I think.",
        )
    if family is Family.TEMPORAL:
        when = DateValue(date=f"2025-01-{day + 1:02d}")
        temporal = TextGold(answers=(f"{day + 1} January 2025",), values=(when,))
        return temporal, f"When does the {thing} arrive?", f"On {day + 1} January.", f"On {day + 3} January 2025."
    return _later_wording(family, number, names, amount)


def _later_wording(
    family: Family, number: int, names: tuple[str, str, str, str], amount: int
) -> tuple[Gold, str, str, str]:
    """Return gold, text, right and wrong answer of a question; families on trust are in ``_trust_wording``."""
    name, thing, _, _ = names
    if family is Family.COUNTERFACTUAL:
        counter = CounterfactualGold(
            real_fact=f"a {thing}",
            altered_detail="a piano",
            values=(TermValue(text=thing),),
            altered_values=(TermValue(text="piano"),),
        )
        return counter, "What did the piano cost?", f"It was a {thing}, not a piano.", f"The piano cost {amount} euros."
    if family is Family.CONFLICT:
        conflict = ConflictGold(
            original_detail=f"{amount} euros",
            changed_detail=f"{amount + 60} euros",
            values=(AmountValue(amount=amount, unit="euros"),),
            changed_values=(AmountValue(amount=amount + 60, unit="euros"),),
        )
        both = f"{name} said {amount} euros at first, and {amount + 60} euros later on."
        return conflict, f"What was said about the price of the {thing}?", both, f"{amount} euros."
    if family is Family.ANAPHORA:
        anaphora = AnaphoraGold(
            referent=f"the {thing}", antecedent_text=f"the {thing} arrives", values=(TermValue(text=thing),)
        )
        return anaphora, f"What should {name} drive over?", f"The {thing}.", "The van that was parked outside."
    return _trust_wording(family, number, names, amount)


def _trust_wording(
    family: Family, number: int, names: tuple[str, str, str, str], amount: int
) -> tuple[Gold, str, str, str]:
    """Return gold, text, right and wrong answer of a question on trust, or of any other family."""
    name, thing, location, other = names
    if family is Family.CONFABULATION and number % 170 < 104:
        claim = f"It was {amount} euros, as {name} said in {location}."
        return AbstainGold(), f"What did {name} pay for the boat?", "There is no mention of a boat.", claim
    if family is Family.PERMISSION:
        code = f"{(7919 * (number + 1)) % 9000 + 1000}"
        allow = number % 5 < 3
        permission = PermissionGold(fact=code, expected_action="disclose" if allow else "withhold")
        disclosure, refusal = f"The code is {code}.", "I can't share that with you, since it is private."
        right, wrong = (disclosure, refusal) if allow else (refusal, disclosure)
        return permission, f"What is the code of {name}'s gate?", right, wrong
    gold = TextGold(answers=(location,), values=(PlaceValue(name=location),))
    return gold, f"From where does {name} fetch the {thing}?", f"{name} fetches it from {location}.", f"From {other}."


def _session(planned: _Planned) -> EvidenceSession:
    number = int(planned.question.instance.instance_id.rsplit("_", 1)[1])
    turns = (f"{planned.right} {_CHAT}", _CHAT, f"Well, that is number {number} on my list then.")
    started_at = f"2025-01-{number % DAYS + 1:02d}T10:00:00Z"
    return logs.make_evidence(f"sess_{number:05d}", *(("Maya Chen", text) for text in turns), started_at=started_at)


# ------------------------------------------------------------------ cells


def _cell(backend: str, reader: str, label: str) -> Cell:
    return logs.make_cell(backend, reader, label, diagnostic=backend == "oracle", max_context_tokens=8192)


def _manifest(cells: list[Cell]) -> Manifest:
    manifest = logs.make_manifest(cells, [logs.make_reader(name) for name in READERS], instances=sum(COUNTS.values()))
    dataset = manifest.dataset.model_copy(update={"day_count": DAYS, "ego_count": EGOS})
    return manifest.model_copy(update={"dataset": dataset})


def _ingest(cell: Cell, ego: int, day: int) -> IngestDone:
    return logs.make_ingest(cell, day, sessions=27, seconds=0.04, namespace=f"ns_{ego:03d}", ego=f"agent_{ego:03d}")


def _records_of(cell: Cell, planned: list[_Planned], evidence: dict[str, EvidenceSession]) -> Iterator[AnyRecord]:
    """Yield the records of one cell, question by question."""
    skill = 0.3 + 0.1 * BACKENDS.index(cell.backend) + 0.03 * READERS.index(cell.reader)
    version = value_judge_version()
    for number, planned_question in enumerate(planned):
        question = planned_question.question
        rng = random.Random(f"{cell.cell_id}/{number}")
        items = _items(cell.backend, planned_question, evidence)
        answer = _answer(rng, planned_question, skill)
        raw = json.dumps({"answer": answer, "reason": "The context says so, as far as I can see."})
        call = _call(cell, number, question, items, raw)
        yield call
        yield _attempt(cell, question, items, answer, raw, call)
        if isinstance(question.instance.gold, OpenGold):
            sessions = [evidence[s] for s in question.instance.evidence_session_ids]
            judgment = judge(question, sessions, answer, answer)
            yield Verdict(
                cell_id=cell.cell_id,
                instance_id=question.instance.instance_id,
                attempt=0,
                judge=JUDGE_NAME,
                judge_version=version,
                route="token_f1" if judgment.route == "token_f1" else "value",
                correct=judgment.correct,
                score=judgment.score,
                reason=judgment.why,
            )


def _answer(rng: random.Random, each: _Planned, skill: float) -> str:
    """Return a right, ignorant or wrong answer, half of them with an addition, as answers vary by reader and seed."""
    draw = rng.random()
    if draw < skill:
        text = each.right
    elif draw < skill + 0.3 * (1 - skill):
        text = "I don't know; the context says nothing about that."
    else:
        text = each.wrong
    return text if rng.random() < 0.5 else f"{text} {rng.choice(_TAILS)} ({rng.randrange(1000)})"


def _items(backend: str, each: _Planned, evidence: dict[str, EvidenceSession]) -> tuple[RetrievedItem, ...]:
    """Return a backend's items for a question: the same for every reader and seed."""
    evidence_ids = each.question.instance.evidence_session_ids
    number = int(each.question.instance.instance_id.rsplit("_", 1)[1])
    rng = random.Random(f"{backend}/{number}")
    names = list(evidence)
    session_ids = [names[rng.randrange(len(names))] for _ in range(ITEMS)]
    if evidence_ids and rng.random() < 0.4 + 0.1 * BACKENDS.index(backend):
        session_ids[rng.randrange(ITEMS)] = evidence_ids[0]
    return tuple(
        logs.make_item(
            f"[text message] {evidence[s].turns[0].speaker}: {evidence[s].turns[0].text}",
            s,
            score=20.0 / (rank + 1) + rng.random(),
        )
        for rank, s in enumerate(session_ids)
    )


def _call(cell: Cell, number: int, question: Question, items: tuple[RetrievedItem, ...], raw: str) -> GatewayCall:
    context = ",\n".join(json.dumps({"text": item.text}) for item in items)
    user = f"=== context\n[{context}]\n=== end of context\n\nQuestion: {question.question_text}"
    prompt = json.dumps([{"role": "user", "content": user}])
    ttft_ms = 90 + number / 1_000_000
    call = logs.make_call(f"{cell.cell_id}#{number}", cell, question, ttft_ms=ttft_ms, server_ms=88.5, prompt=prompt)
    return call.model_copy(update={"output": raw})


def _attempt(
    cell: Cell, question: Question, items: tuple[RetrievedItem, ...], answer: str, raw: str, call: GatewayCall
) -> QuestionAsked:
    """Return the record of an answered question."""
    return logs.make_asked(
        cell,
        question,
        answer,
        raw=raw,
        reason="The context says so, as far as I can see.",
        items=items,
        search_ms=0.7,
        ttft_ms=(call.first_content_ns or 0) / 1_000_000,
        call_ids=(call.call_id,),
        namespace=f"ns_{question.instance.ego_agent_id[-3:]}",
    )
