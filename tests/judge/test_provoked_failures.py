"""Which failures of a judge are the answer's doing, and go to the rules, and which are its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.judge.model import Budget, Patience, Prices
from memarena.log.records import JudgeUsage

from ..support.judges import Asked, Says, Script, rules
from ..support.model_judging import COST, SECRET, WHERE, WHY, judge, log_of, records, verdicts

PROVOKES: dict[str, Says] = {
    "a content filter": Says("the response was filtered due to the content policy", status=400),
    "a context that is too long": Says("maximum context length is 4096 tokens", status=400),
    "a server that never comes to an end": Says("late", delay_s=1.0),
    "prose": Says("Looks fine."),
}


@pytest.mark.parametrize("name", PROVOKES)
def test_an_answer_that_always_fails_is_handed_over_once_another_answer_shows_that_the_judge_works(
    name: str, tmp_path: Path
) -> None:
    def stumbles(asked: Asked) -> Says:
        return PROVOKES[name] if "zalgo" in asked.answer else rules(asked)

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"), (WHERE, "zalgo Rome"), (SECRET, "zalgo I don't know."))
    patience = Patience(tries=2, timeout_s=0.3, first_wait_s=0.001, longest_wait_s=0.01)
    judged, _ = judge(run, stumbles, patience=patience)
    assert (judged.left, judged.failed.total(), judged.handed_over) == (0, 0, 4)
    found = verdicts(run)
    assert [(found[i].route, found[i].correct) for i in ("qa_cost", "qa_where")] == [("value", True), ("value", False)]
    assert found["perm_deny"].label == "dont_know"
    assert all("gives no usable reply to this answer" in v.handed_over for v in found.values())


def test_a_server_that_is_down_is_no_provocation(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."))
    judged, _ = judge(run, lambda a: Says("overloaded", status=503) if "It was" in a.answer else rules(a))
    assert (judged.failed, judged.handed_over) == ({"server_error": 1}, 0)


# ------------------------------------------------------------------ quotes


def _paraphrases(asked: Asked) -> Says:
    """Wrong where the answer names Rome, else right; never quotes a word that was said."""
    wrong = "Rome" in asked.answer
    return rules(asked, correct=not wrong, quote="" if wrong else "the fact was stated", reason="by its sense")


def test_a_judge_that_words_its_quotes_anew_does_not_keep_its_wrong_and_hand_over_its_right(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "In Rome."), (WHY, "Because it rained."))
    judged, _ = judge(run, _paraphrases)
    assert (judged.failed, judged.handed_over) == ({"malformed": 2}, 0)
    assert set(verdicts(run)) == {"qa_where"}, "which needs no quote"


def test_an_answer_that_cannot_be_quoted_is_handed_over_by_a_judge_that_can_quote(tmp_path: Path) -> None:
    def script(asked: Asked) -> Says:
        return _paraphrases(asked) if "zalgo" in asked.answer else rules(asked)

    run = log_of(tmp_path / "run", (COST, "zalgo 50 euros"))
    judged, asked = judge(run, script)
    assert (judged.handed_over, judged.failed.total()) == (1, 0)
    assert asked[-1].answer == "50 euros", "the key, which takes a quote to be called right"


# ------------------------------------------------------------------ what servers take


def test_what_was_wrong_with_a_reply_stands_in_the_one_message_of_the_user(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (COST, "It was 50 euros."))
    judged, asked = judge(run, lambda a: Says("Well, yes.") if a.number == 1 else rules(a))
    assert judged.verdicts == 1
    assert [a.roles for a in asked] == [("system", "user")] * 2
    assert "That could not be used" not in asked[0].user
    assert asked[1].user.endswith(
        "That could not be used: it holds no JSON object. Write the JSON object alone, with "
        f'"check" set to {asked[1].check}.\n'
    )
    assert asked[1].answer == "It was 50 euros."


def test_a_server_that_wants_the_other_name_for_the_limit_gets_it_from_then_on(tmp_path: Path) -> None:
    def newer(asked: Asked) -> Says:
        told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return rules(asked) if asked.limit == "max_completion_tokens" else Says(told, status=400)

    run = log_of(tmp_path / "run", (COST, "It was 50 euros."), (WHERE, "Porto"))
    judged, asked = judge(run, newer, concurrency=1)
    assert judged.verdicts == 2
    assert [a.limit for a in asked] == ["max_tokens", "max_completion_tokens", "max_completion_tokens"]
    assert {a.response_format for a in asked} == {"json_schema"}


# ------------------------------------------------------------------ what may be billed

COSTLY: dict[str, tuple[Script, int]] = {
    "a reply that never came": (lambda a: Says("late", delay_s=1.0), 2),
    "a request that was refused": (lambda a: Says("filtered", status=400), 2),
    "an error told in a reply": (lambda a: Says("", body={"error": {"code": 400, "message": "filtered"}}), 0),
    "a busy server": (lambda a: Says("busy", status=429, headers={"Retry-After": "0"}), 0),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_call_that_brought_nothing_and_may_be_billed_is_charged_its_worst_case(name: str, tmp_path: Path) -> None:
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
