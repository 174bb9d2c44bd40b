"""Tests the trace of a question: everything from question to verdict; long texts are cut unless all is wanted."""

from __future__ import annotations

from memarena.log.records import EvidenceSession, HeldText, Question, QuestionAsked
from memarena.report.question_view.making import answer_view, question_view
from memarena.report.question_view.terminal import SHOWN_CHARACTERS, question_document
from memarena_dataset.model import Family

from ..support.golden_reports import plain
from ..support.logs import (
    make_asked,
    make_call,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_run,
    text_gold,
)
from ..support.scoring import score_records

CELL = make_cell("bm25")
EVIDENCE = make_evidence("s1", ("Maya Chen", "The kiln comes from Porto."), ("Ines Okafor", "Good."))
QUESTION = make_question(
    "qa_1",
    Family.QA,
    text_gold("Porto"),
    "From where does the kiln come?",
    evidence=["s1"],
    asker="bob_ray",
    asker_name="Bob Ray",
    lag_days=1,
)
PROMPT = '[{"role": "system", "content": "Answer from the context."}, {"role": "user", "content": "%s"}]'
CALL = make_call("c1", CELL, QUESTION, ttft_ms=90, server_ms=88, prompt=PROMPT % ("x" * 3000))
ITEMS = [make_item("Good morning!", "s0", score=0.5), make_item("The kiln comes from Porto.", "s1", score=7.25)]


def trace(*attempts: QuestionAsked, question: Question = QUESTION, full: bool = False) -> str:
    evidence: dict[str, EvidenceSession] = {"s1": EVIDENCE}
    scored = score_records(make_run([CELL], [question], [EVIDENCE], [CALL, *attempts])).questions[0]
    answer = answer_view(question, evidence, CELL, scored, attempts, [CALL], [])
    return plain(question_document(question_view(question, evidence, [answer]), full=full))


ANSWERED = make_asked(
    CELL, QUESTION, "From Porto.", raw='{"answer": "From Porto."}', reason="said so", items=ITEMS, search_ms=1.5,
    ttft_ms=90, call_ids=["c1"],
)  # fmt: skip


def test_a_trace_has_asker_question_time_and_gold() -> None:
    text = trace(ANSWERED)
    for piece in ("Bob Ray", "From where does the kiln come?", "2025-01-09", "1 day after", "gold      Porto"):
        assert piece in text, piece


def test_a_trace_marks_the_evidence_among_the_items() -> None:
    lines = trace(ANSWERED).splitlines()
    assert any(line.split() == ["→", "2", "7.250", "s1"] for line in lines)
    assert any(line.split() == ["1", "0.500", "s0"] for line in lines)


def test_items_of_search_and_answer_name_the_turns_in_their_text() -> None:
    held_text = HeldText(session_ids=("s1",), turn_ids=tuple(f"s1_t{n}" for n in range(8)), verbatim_share=0.875)
    item = ITEMS[1].model_copy(update={"held": held_text})
    assert ANSWERED.search is not None
    assert ANSWERED.answer is not None
    nothing = make_item("A poem.", "s1").model_copy(update={"held": HeldText(verbatim_share=0.0)})
    own = ANSWERED.answer.model_copy(update={"searched_items": False, "items": (nothing,)})
    search = ANSWERED.search.model_copy(update={"items": (item,)})
    text = trace(ANSWERED.model_copy(update={"search": search, "answer": own}))
    turn_list = ", ".join(held_text.turn_ids[:6])
    assert f"[holds turns {turn_list} and 2 more; 88% of its words are from the life]" in text
    assert "read from 1 items of its own search, 1 with evidence" in text
    assert "[holds no turn; 0% of its words are from the life]" in text.split("of its own search")[1]
    assert "[holds" not in trace(ANSWERED), "in a log from before items were audited"


def test_a_trace_has_prompt_answer_verdict_and_times() -> None:
    text = trace(ANSWERED)
    for piece in (
        "Answer from the context.",
        '{"answer": "From Porto."}',
        "answer    From Porto.",
        "reason    said so",
        "decided by text",
        f"{'Search+floor':<47}  1.50 ms",
        f"{'TTFT, at the gateway':<47}  90.00 ms",
        f"{'S+TTFT: Search+floor and TTFT':<47}  91.50 ms",
        f"{'reading the prompt, as the model server says':<47}  88.00 ms",
    ):
        assert piece in text, piece


def test_long_texts_are_cut_unless_full_is_set() -> None:
    assert f"{3000 - SHOWN_CHARACTERS:,} more characters (--full shows them)" in trace(ANSWERED)
    full_text = trace(ANSWERED, full=True)
    assert "more characters" not in full_text
    assert full_text.count("x") >= 3000


def test_earlier_attempts_stay_visible_and_the_latest_counts() -> None:
    first = make_asked(CELL, QUESTION, status="infra_failed", cause="reader: connection refused")
    text = trace(first, ANSWERED.model_copy(update={"attempt": 1}))
    assert "Attempt 1 of 2 (a later one counts)" in text
    assert "infra failed: reader: connection refused" in text
    assert "Attempt 2 of 2\n" in text
    assert "decided by text" in text


def test_a_failed_search_is_shown_with_its_code() -> None:
    failed = make_asked(CELL, QUESTION, status="backend_failed", cause="Search: UNAVAILABLE: gone", search_ok=False)
    text = trace(failed)
    assert "backend failed: Search: UNAVAILABLE: gone" in text
    assert "UNAVAILABLE" in text.split("Search\n")[1]
