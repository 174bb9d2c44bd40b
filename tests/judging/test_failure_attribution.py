"""Tests which failures of a model judge are caused by the answer, which then goes to the rules, or by the judge."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from memarena.judging import JudgeError
from memarena.judging.llm import Budget, Patience, Prices
from memarena.judging.llm.failure_attribution import TURNS
from memarena.log.records import JudgeUsage
from memarena_dataset.model import Family

from ..support.judges import Asked, JudgeScript, rules
from ..support.logs import make_question, text_gold
from ..support.model_judging import COST, QUICK, SECRET, WHERE, WHY, judge, log_of, records, verdicts
from ..support.model_script import Script

PROVOKES: dict[str, Script] = {
    "a content filter": Script(message="the response was filtered due to the content policy", status=400),
    "moderation": Script(message="Input flagged by moderation", status=403),
    "a context that is too long": Script(message="maximum context length is 4096 tokens", status=400),
    "a server that never comes to an end": Script("late", delay_s=1.0),
    "prose": Script("Looks fine."),
}


@pytest.mark.parametrize("name", PROVOKES)
def test_an_answer_that_always_fails_goes_to_the_rules_once_a_control_answer_succeeds(
    name: str, tmp_path: Path
) -> None:
    def stumbles(call: Asked) -> Script:
        return PROVOKES[name] if "zalgo" in call.answer else rules(call)

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"), (WHERE, "zalgo Rome"), (SECRET, "zalgo I don't know."))
    patience = Patience(tries=2, timeout_s=0.3, first_wait_s=0.001, longest_wait_s=0.01)
    judged, _ = judge(run, stumbles, patience=patience)
    assert (judged.open_jobs, judged.failed.total(), judged.handed_over) == (0, 0, 4)
    verdicts_by_id = verdicts(run)
    assert [(verdicts_by_id[i].route, verdicts_by_id[i].correct) for i in ("qa_cost", "qa_where")] == [
        ("value", True),
        ("value", False),
    ]
    assert verdicts_by_id["perm_deny"].label == "dont_know"
    assert all("gives no usable reply to this answer" in v.handed_over for v in verdicts_by_id.values())


def test_an_unavailable_server_is_not_the_answers_fault(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."))
    judged, _ = judge(run, lambda a: Script(message="overloaded", status=503) if "It was" in a.answer else rules(a))
    assert (judged.failed, judged.handed_over) == ({"server_error": 1}, 0)


# ------------------------------------------------------------------ judges that fail by themselves

PASSING: dict[str, Script] = {
    "prose": Script("Looks fine."),
    "no reply in time": Script("late", delay_s=0.3),
    "a huge reply": Script("x" * 200_000),
    "a refusal": Script(message="try another time", status=400),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_judge_that_fails_at_random_hands_over_almost_no_answer(name: str, tmp_path: Path) -> None:
    """If one control decided, a fifth of the answers (8) would go to the rules; chance alone seldom exceeds 1."""
    dice = random.Random(f"{name} 1")
    questions = [make_question(f"q{n}", Family.QA, text_gold("rain"), f"Why {n}?", evidence=["s1"]) for n in range(40)]
    run = log_of(tmp_path / "run", *((q, "It was rain.") for q in questions))
    patience = Patience(tries=1, timeout_s=0.15, first_wait_s=0.001, longest_wait_s=0.01)
    judged, _ = judge(
        run, lambda a: PASSING[name] if dice.random() < 0.65 else rules(a), patience=patience, concurrency=4
    )
    assert judged.handed_over <= 3
    assert judged.failed.total() > 0
    assert all(v.route == "llm" for v in verdicts(run).values() if not v.handed_over)


def test_a_control_that_needs_two_tries_shows_an_unreliable_judge(tmp_path: Path) -> None:
    controls = 0

    def script(call: Asked) -> Script:
        nonlocal controls
        if "zalgo" in call.answer:
            return Script("Looks fine.")
        controls += 1
        return rules(call) if controls != TURNS else Script("Looks fine.")

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    judged, calls = judge(run, script)
    assert (judged.failed, judged.handed_over) == ({"malformed": 1}, 0)
    assert len(calls) == QUICK.tries + 2 * TURNS - 1


def test_an_answer_that_finally_gets_a_reply_keeps_it(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    until = QUICK.tries + 4
    judged, calls = judge(
        run, lambda a: Script("Looks fine.") if "zalgo" in a.answer and a.number < until else rules(a)
    )
    assert (judged.handed_over, judged.failed.total(), len(calls)) == (0, 0, until)
    verdict = verdicts(run)["qa_cost"]
    assert (verdict.route, verdict.correct, verdict.handed_over) == ("llm", True, "")
    assert verdict.usage is not None
    assert verdict.usage.calls == until


def test_retries_with_controls_stay_within_the_budget(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    limit = (QUICK.tries + 2) * 120 + 1500
    judged, calls = judge(
        run, lambda a: Script("Hm.") if "zalgo" in a.answer else rules(a), budget=Budget(max_tokens=limit)
    )
    assert (judged.stopped, judged.open_jobs) == ("the budget is spent", 1)
    assert len(calls) < QUICK.tries + 2 * TURNS
    assert judged.prompt_tokens + judged.completion_tokens <= limit


def test_a_rate_limit_is_waited_out_and_is_no_evidence(tmp_path: Path) -> None:
    def script(call: Asked) -> Script:
        if call.number % 2:
            return Script(message="slow down", status=429, headers={"Retry-After": "0"})
        return Script("Looks fine.") if "zalgo" in call.answer else rules(call)

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    patience = Patience(tries=4, timeout_s=5.0, first_wait_s=0.001, longest_wait_s=0.01)
    judged, _ = judge(run, script, patience=patience)
    assert (judged.handed_over, judged.failed.total()) == (1, 0)


# ------------------------------------------------------------------ forbidden: the key, or the request?

FLAGGED = Script(message="Input flagged by moderation", status=403)


def test_a_question_stopped_by_moderation_does_not_mean_a_forbidden_key(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "In Rome."))
    judged, _ = judge(run, lambda a: FLAGGED if COST.question_text in a.user else rules(a), concurrency=1)
    assert (judged.verdicts, judged.failed, judged.handed_over) == (1, {"refused": 1}, 0)


@pytest.mark.parametrize("good", [0, 1])
def test_a_key_that_is_forbidden_everything_ends_the_judging(good: int, tmp_path: Path) -> None:
    """From the first call on or later: keys are also revoked during a run."""
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "Porto"))
    with pytest.raises(JudgeError, match="refuses the key"):
        judge(run, lambda a: rules(a) if a.number <= good else FLAGGED, concurrency=1)
    assert len(verdicts(run)) == good


# ------------------------------------------------------------------ quotes


def _paraphrases(call: Asked) -> Script:
    """Reply "wrong" without a quote if the answer names Rome, else "right" with a quote that is not verbatim."""
    wrong = "Rome" in call.answer
    return rules(call, correct=not wrong, quote="" if wrong else "the fact was stated", reason="by its sense")


def test_right_verdicts_with_a_paraphrased_quote_fail_and_are_not_handed_over(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "In Rome."), (WHY, "Because it rained."))
    judged, _ = judge(run, _paraphrases)
    assert (judged.failed, judged.handed_over) == ({"malformed": 2}, 0)
    assert set(verdicts(run)) == {"qa_where"}, "which needs no quote"


def test_an_answer_without_a_valid_quote_is_handed_over_if_the_judge_can_quote(tmp_path: Path) -> None:
    def script(call: Asked) -> Script:
        return _paraphrases(call) if "zalgo" in call.answer else rules(call)

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    judged, calls = judge(run, script)
    assert (judged.handed_over, judged.failed.total()) == (1, 0)
    assert calls[-2].answer == "50 euros", "the key, which takes a quote to be called right"


# ------------------------------------------------------------------ what servers take


def test_the_retry_states_the_fault_of_the_reply_in_its_only_user_message(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."))
    judged, calls = judge(run, lambda a: Script("Well, yes.") if a.number == 1 else rules(a))
    assert judged.verdicts == 1
    assert [a.roles for a in calls] == [("system", "user")] * 2
    assert "That could not be used" not in calls[0].user
    assert calls[1].user.endswith(
        "That could not be used: it holds no JSON object. Write the JSON object alone, with "
        f'"check" set to {calls[1].check}.\n'
    )
    assert calls[1].answer == "It was 50 euros."


def test_a_server_that_requires_max_completion_tokens_gets_it_from_then_on(tmp_path: Path) -> None:
    def newer(call: Asked) -> Script:
        message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return rules(call) if call.limit == "max_completion_tokens" else Script(message=message, status=400)

    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "Porto"))
    judged, calls = judge(run, newer, concurrency=1)
    assert judged.verdicts == 2
    assert [a.limit for a in calls] == ["max_tokens", "max_completion_tokens", "max_completion_tokens"]
    assert {a.response_format for a in calls} == {"json_schema"}


# ------------------------------------------------------------------ what may be billed

COSTLY: dict[str, tuple[JudgeScript, int]] = {
    "a reply that never came": (lambda a: Script("late", delay_s=1.0), 2),
    "a request that was refused": (lambda a: Script(message="filtered", status=400), 2),
    "an error told in a reply": (lambda a: Script(body={"error": {"code": 400, "message": "filtered"}}), 0),
    "a busy server": (lambda a: Script(message="busy", status=429, headers={"Retry-After": "0"}), 0),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_failed_call_that_may_be_billed_is_charged_its_worst_case(name: str, tmp_path: Path) -> None:
    script, charged = COSTLY[name]
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."))
    patience = Patience(tries=1, timeout_s=0.3, first_wait_s=0.001, longest_wait_s=0.01)
    judged, _ = judge(run, script, patience=patience, budget=Budget(max_usd=1.0, prices=Prices(1.0, 1.0)))
    assert judged.failed.total() == 1
    assert judged.completion_tokens == charged * 400, "the answer and the control"
    assert (judged.prompt_tokens > 0) == (charged > 0)
    [failure] = records(run, "judging_failed")
    assert failure.kind == "judging_failed"
    assert isinstance(failure.usage, JudgeUsage)
    assert (failure.usage.prompt_tokens, failure.usage.usd) == (None, None), "nobody told: no reading, no 0"
