"""Makes the log of a run of ten cells as a laboratory has it: five memories, two readers, long prompts, varied times.

Tests of reports, the viewer and the demo use it, since it has all that a page must show. Answers are drawn with a fixed
seed from each memory's share of right answers, so that reports show differences. A *cell* is a memory with a reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from memarena.log.records import AnyRecord, Cell, IngestDone, Question, QuestionAsked
from memarena_dataset.model import Family

from .logs import (
    abstain,
    cloze,
    make_asked,
    make_call,
    make_cell,
    make_evidence,
    make_ingest,
    make_item,
    make_question,
    make_reader,
    make_run,
    permission,
    text_gold,
)

BACKENDS = {"vanilla": 0.3, "bm25": 0.5, "memsearch": 0.62, "memobase": 0.25, "oracle": 0.85}
"""Share of right answers with the smaller reader, by memory."""
READERS = {"small-0.6b": (0.0, 60.0), "large-8b": (0.12, 310.0)}
"""(addition to the share of right answers, median prefill in ms) by reader."""
SEARCH_MS = {"vanilla": 0.4, "bm25": 0.9, "memsearch": 21.0, "memobase": 7.0, "oracle": 0.4}
EGOS = tuple(f"ego_{n:02d}" for n in range(12))
HOSTILE = "</pre></script><img src=x onerror=alert(1)><svg onload=alert(2)> & \"quoted\" 'too' {{ 7*7 }}"
"""Markup that an answer could inject into a page."""
EVIDENCE = [
    make_evidence(f"sess_{n}", ("Maya Chen", f"The kiln number {n} costs {600 + n} euros. " + "It is warm. " * 40))
    for n in range(12)
]


def questions(per_ego: int) -> list[Question]:
    """Return ``per_ego`` questions of each ego, cycling through the families."""
    all_questions = []
    for ego in EGOS:
        for n in range(per_ego):
            all_questions.append(_question(ego, n))
    return all_questions


def _question(ego: str, n: int) -> Question:
    ident, session = f"{ego}_q{n:03d}", f"sess_{n % 12}"
    kind = n % 6
    common = {"ego": ego, "asker": ego, "evidence": [session], "lag_days": n % 9, "day": n % 8}
    if kind == 0:
        options = ("loom", "kiln", "lathe", "press", "oven")
        return make_question(ident, Family.CLOZE, cloze("B", *options), "A new ____ arrives.", **common)  # type: ignore[arg-type]
    if kind == 1:
        return make_question(ident, Family.METADATA, text_gold("Maya Chen"), "Who told of the kiln?", **common)  # type: ignore[arg-type]
    if kind == 2:
        return make_question(ident, Family.QA, text_gold("from Porto"), "From where does it come?", **common)  # type: ignore[arg-type]
    if kind == 3:
        return make_question(ident, Family.ANAPHORA, text_gold("the kiln"), "What should Bob drive over?", **common)  # type: ignore[arg-type]
    if kind == 4:
        gold = abstain() if n % 12 < 6 else text_gold("from Porto")
        return make_question(ident, Family.CONFABULATION, gold, "Which colour is the van?", **common)  # type: ignore[arg-type]
    allow = n % 12 == 5
    gold_d6 = permission("4821", "disclose" if allow else "withhold")
    who = {"asker": "bob_ray", "asker_name": "Bob Ray"}
    return make_question(ident, Family.PERMISSION, gold_d6, "What is the code of the gate?", **{**common, **who})  # type: ignore[arg-type]


def _answer(question: Question, right: bool, draw: Random) -> str:
    gold = question.instance.gold
    if gold.kind == "cloze":
        return "B) kiln" if right else "C) lathe"
    if gold.kind == "abstain":
        return "I don't know." if right else "It is blue."
    if gold.kind == "permission":
        is_disclosed = right == (gold.expected_action == "disclose")
        return "It is 4821." if is_disclosed else draw.choice(("I can't share that with you.", "I don't have that."))
    return gold.answers[0] if right and gold.kind == "text" else HOSTILE if draw.random() < 0.2 else "no idea at all"


def cells() -> list[Cell]:
    """Return the cells: every memory with every reader."""
    return [make_cell(b, r, diagnostic=b == "oracle") for r in READERS for b in BACKENDS]


def records(per_ego: int = 24, *, prompt_words: int = 1500) -> list[AnyRecord]:
    """Return the run's records. ``prompt_words`` is the length of the prompts, all of which are kept."""
    all_questions = questions(per_ego)
    body = [record for cell in cells() for record in _cell_records(cell, all_questions, prompt_words)]
    readers = [make_reader(name) for name in READERS]
    return make_run(cells(), all_questions, EVIDENCE, body, readers=readers)


def _cell_records(cell: Cell, cell_questions: list[Question], prompt_words: int) -> Iterator[AnyRecord]:
    draw = Random(cell.cell_id)
    for ego in EGOS:
        for day in range(8):
            ingest: IngestDone = make_ingest(cell, day, sessions=3 + day, namespace=f"ns_{ego}", ego=ego)
            yield ingest
    better, prefill_ms = READERS[cell.reader]
    for n, question in enumerate(cell_questions):
        right = draw.random() < BACKENDS[cell.backend] + better
        search_ms = SEARCH_MS[cell.backend] * (1 + question.day / 8) * draw.lognormvariate(0, 0.2)
        ttft_ms = prefill_ms * draw.lognormvariate(0, 0.35)
        call_id = f"{cell.cell_id}_{n}"
        prompt = json.dumps([
            {"role": "system", "content": "Answer from the context only. <b>No tags.</b>"},
            {"role": "user", "content": "The kiln is warm. " * (prompt_words // 4) + question.question_text},
        ])  # fmt: skip
        call = make_call(call_id, cell, question, ttft_ms=ttft_ms, server_ms=ttft_ms - 2, prompt=prompt)
        yield call.model_copy(update={"last_content_ns": int((ttft_ms + 38) * 1e6)})
        yield _attempt(cell, question, right, draw, (search_ms, ttft_ms), call_id)


def _attempt(
    cell: Cell, question: Question, right: bool, draw: Random, times_ms: tuple[float, float], call_id: str
) -> QuestionAsked:
    evidence = question.instance.evidence_session_ids[0]
    items = [make_item(EVIDENCE[0].turns[0].text, evidence if right else "sess_x", score=3.5 - k) for k in range(5)]
    common = {
        "items": items,
        "search_ms": times_ms[0],
        "call_ids": [call_id],
        "namespace": f"ns_{question.instance.ego_agent_id}",
    }
    if cell.backend == "memobase" and draw.random() < 0.04:
        cause = "Answer: INTERNAL: <script>alert('profile')</script> is gone"
        return make_asked(cell, question, status="backend_failed", cause=cause, **common)  # type: ignore[arg-type]
    answer = _answer(question, right, draw)
    raw = json.dumps({"answer": answer, "reason": HOSTILE})
    return make_asked(cell, question, answer, raw=raw, reason=HOSTILE, ttft_ms=times_ms[1], **common)  # type: ignore[arg-type]
