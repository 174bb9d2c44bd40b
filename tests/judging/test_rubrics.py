"""Tests questions with a rubric: a model judges each of its sentences; without a model they have no verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memarena.evaluation import evaluate
from memarena.evaluation_of_answers import read_answers
from memarena.judging import data_files
from memarena.judging.llm.prompts import decoy
from memarena.log.records import Outcome, Question
from memarena.report.summary import summary_section
from memarena_dataset.gold import RubricGold
from memarena_dataset.model import Family

from ..support.judges import Asked, rules
from ..support.logs import make_question
from ..support.model_judging import COST, WHERE, judge, log_of, records, verdicts
from ..support.model_script import Script

SENTENCES = ("It names the coat.", "It names the rain.", "It does not speak of money.")
SUM = make_question("qa_sum", Family.QA, RubricGold(rubric=SENTENCES), "Sum up the day in Porto.", evidence=["s1"])
ANSWER = "A wet day on which a coat was bought."


def saying(**replies: str) -> Callable[[Asked], Script]:
    """Return a judge of rubrics that replies "yes" to every sentence but those in ``replies``.

    Keys of ``replies`` are parts of sentences, values the replies; ``decoy`` is the reply on the decoy sentence ("no").
    """

    def script(call: Asked) -> Script:
        if call.task != "rubric":
            return rules(call)
        sentences = {n: next((w for s, w in replies.items() if s in text), "yes") for n, text in call.sentences.items()}
        sentences |= {n: replies.get("decoy", "no") for n, text in call.sentences.items() if decoy().told in text}
        return Script(json.dumps({"check": call.check, "sentences": sentences, "reason": "it never\nrains"}))

    return script


def test_a_model_judges_all_sentences_in_one_call_and_right_means_all_fulfilled(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    judged, calls = judge(run, saying())
    assert (judged.verdicts, judged.open_jobs, len(calls)) == (1, 0, 1)
    verdict = verdicts(run)["qa_sum"]
    assert (verdict.correct, verdict.score, verdict.route, verdict.task) == (True, 1.0, "llm", "rubric")
    assert verdict.prompt_sha256 == data_files()["judging/prompts/rubric.v3.toml"]
    assert sorted(calls[0].sentences.values()) == sorted([*SENTENCES, f"The answer says: {decoy().told}"])
    assert calls[0].answer == ANSWER


def test_the_score_is_the_share_of_sentences_and_the_reason_names_the_others(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    judge(run, saying(rain="no"))
    verdict = verdicts(run)["qa_sum"]
    assert (verdict.correct, verdict.score) == (False, 2 / 3)
    assert verdict.reason == "2 of 3 sentences fulfilled; not: 'It names the rain.' (it never rains)"


def test_a_sentence_that_is_partly_fulfilled_gives_half_a_point_and_is_not_right(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    judge(run, saying(**{"the rain": "partly"}))
    verdict = verdicts(run)["qa_sum"]
    assert (verdict.correct, verdict.score) == (False, 2.5 / 3)
    assert verdict.reason == "2 of 3 sentences fulfilled; partly: 'It names the rain.' (it never rains)"


def test_scores_by_ability_have_the_mean_by_rubric(tmp_path: Path) -> None:
    def of(question: Question, ability: str) -> Question:
        return question.model_copy(
            update={"instance": question.instance.model_copy(update={"metadata": {"ability": ability}})}
        )

    run = log_of(tmp_path / "run", (of(SUM, "summarization"), ANSWER), (of(COST, "recall"), "It was 50 euros."))
    judge(run, saying(**{"the rain": "partly"}))
    source = evaluate(run, "scripted", resamples=0).scores.rows[0].source
    assert source is not None
    assert {part.key: part.rubric for part in source.parts} == {
        "recall": None,
        "summarization": 2.5 / 3,
        "all": 2.5 / 3,
        "mean of categories": None,
    }


def test_an_empty_answer_fulfils_no_sentence_and_needs_no_call(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, " "))
    _, calls = judge(run, saying())
    verdict = verdicts(run)["qa_sum"]
    assert (verdict.correct, verdict.score, verdict.handed_over != "", calls) == (False, 0.0, True, [])


def _without(call: Asked, **change: Any) -> Script:
    fields = json.loads(saying()(call).text)
    return Script(json.dumps({**fields, **change}))


BAD: dict[str, Callable[[Asked], Script]] = {
    "prose": lambda a: Script("The answer is fine."),
    "a sentence without its word": lambda a: _without(a, sentences={"1": "yes"}),
    "a sentence too many": lambda a: _without(a, sentences={**dict.fromkeys(a.sentences, "no"), "9": "yes"}),
    "perhaps": lambda a: _without(a, sentences=dict.fromkeys(a.sentences, "perhaps")),
    "a list": lambda a: _without(a, sentences=["no"] * 4),
    "another mark": lambda a: _without(a, check="0000"),
    "yes to what no answer fulfils": saying(decoy="yes"),
    "partly to what no answer fulfils": saying(decoy="partly"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_unusable_reply_is_a_failure_of_the_judge_and_no_verdict(name: str, tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    judged, _ = judge(run, BAD[name])
    assert (verdicts(run), judged.open_jobs, judged.failed) == ({}, 1, {"malformed": 1})
    [failure] = records(run, "judging_failed")
    assert failure.kind == "judging_failed"
    assert failure.reply
    judged, _ = judge(run, saying())
    assert (judged.verdicts, judged.open_jobs) == (1, 0), "a later judging asks again"


def test_an_unusable_reply_is_retried(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    _, calls = judge(run, lambda a: Script("Well, yes.") if a.number == 1 else rules(a))
    assert len(calls) == 2
    assert verdicts(run)["qa_sum"].correct


# ------------------------------------------------------------------ without a model


def test_rubrics_are_excluded_by_the_rules_and_included_with_a_model(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER), (COST, "It was 50 euros."), (WHERE, "In Rome."))
    by_rules = evaluate(run, resamples=20)
    outcomes = {q.instance_id: q.outcome for q in by_rules.questions}
    assert outcomes == {"qa_sum": None, "qa_cost": Outcome.CORRECT, "qa_where": Outcome.WRONG}
    [row] = by_rules.scores.rows
    assert (row.counts.planned, row.counts.missing, row.counts.infra_failed) == (2, 0, 0)
    assert row.metrics["D3"].value == 0.5
    assert _summary(run, "value")[0] == ["apart     not judged: 1, they need a judge with a model"]

    judge(run, saying(rain="no"))
    by_model = evaluate(run, "scripted", resamples=20)
    assert {q.outcome for q in by_model.questions if q.instance_id == "qa_sum"} == {Outcome.WRONG}
    assert by_model.scores.rows[0].counts.planned == 3
    assert set(by_model.scores.judging.models[0].prompts_sha256) == {"answer", "rubric"}
    assert _summary(run, "scripted") == ([], [])


def test_a_failed_model_judge_leaves_the_question_without_a_verdict(tmp_path: Path) -> None:
    run = log_of(tmp_path / "run", (SUM, ANSWER))
    judge(run, BAD["prose"])
    scored = evaluate(run, "scripted", resamples=0)
    assert [q.outcome for q in scored.questions] == [Outcome.INFRA_FAILED]
    assert scored.scores.not_judged == 0


def _summary(run: Path, judge_name: str) -> tuple[list[str], list[str]]:
    """Return the summary's lines on excluded questions, and its warnings."""
    section = summary_section(1, evaluate(run, judge_name, resamples=0).scores, several=False)
    return [str(line) for line in section.lines if "not judged" in str(line)], list(map(str, section.notes))


def test_an_answer_that_only_a_model_can_judge_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"instance_id": "qa_sum", "answer": "x"}\n{"instance_id": "qa_cost", "answer": "50"}\n')
    rows, bad = read_answers(path, [SUM.instance, COST.instance])
    assert [row.instance_id for row in rows] == ["qa_cost"]
    assert [(row.line, row.fault) for row in bad] == [
        (1, "instance_id: 'qa_sum': not judged: a rubric needs a judge with a model")
    ]
