"""Generates the rows of each table from a scored run; reviews are read from their file only for their table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from memarena.log.records import Question, Verdict
from memarena.log.reviews import Review
from memarena.scoring.results import QuestionScore, RowScores
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.tables.columns import Row, columns_of


def rows_of(
    table: str,
    facts: RunFacts,
    scored: ScoredRun,
    verdicts: Iterable[Verdict],
    reviews: Callable[[], Iterable[Review]],
    *,
    gold: bool,
) -> Iterator[Row]:
    """Yield the rows of a table, with its columns in their order.

    Args:
        table: a name of :data:`memarena.tables.columns.TABLES`; KeyError for another one.
        facts: facts of the run.
        scored: scores of the run.
        verdicts: verdicts of the log, and missing ones computed from it.
        reviews: reads the reviews of answers.
        gold: whether to include columns that reveal right answers.
    """
    names = [column.name for column in columns_of(table, gold=gold)]
    generators: Mapping[str, Callable[[], Iterator[Row]]] = {
        "cells": lambda: _cells(scored.scores.rows),
        "scores": lambda: _scores(scored.scores.rows),
        "questions": lambda: _questions(facts),
        "answers": lambda: _answers(facts, scored),
        "timings": lambda: _timings(scored),
        "verdicts": lambda: _verdicts(verdicts),
        "reviews": lambda: (review.model_dump() for review in reviews()),
    }
    for row in generators[table]():
        yield {name: row[name] for name in names}


def _cells(rows: Iterable[RowScores]) -> Iterator[Row]:
    for row in rows:
        for cell in row.cells:
            counts = cell.counts
            yield {
                "cell_id": cell.cell_id,
                "backend": row.backend,
                "backend_version": row.backend_version,
                "reader": row.reader,
                "seed": cell.seed_label,
                "temperature": cell.temperature,
                "diagnostic": row.diagnostic,
                "planned": counts.planned,
                "correct": counts.correct,
                "wrong": counts.wrong,
                "backend_failed": counts.backend_failed,
                "infra_failed": counts.infra_failed,
                "reader_not_applicable": counts.reader_not_applicable,
            }


def _scores(rows: Iterable[RowScores]) -> Iterator[Row]:
    """Yield a row for each figure of each cell."""
    for row in rows:
        for cell in row.cells:
            for figure, score in cell.metrics.items():
                interval = cell.intervals.get(figure)
                yield {
                    "cell_id": cell.cell_id,
                    "figure": figure,
                    "value": score.value,
                    "low": score.low,
                    "high": score.high,
                    "interval_low": interval.low if interval else None,
                    "interval_high": interval.high if interval else None,
                }


def _questions(facts: RunFacts) -> Iterator[Row]:
    """Yield a row for each question."""
    for instance_id, question in facts.questions.items():
        yield {
            "instance_id": instance_id,
            "ego": question.instance.ego_agent_id,
            "family": question.instance.family.value,
            "dimension": question.instance.dimension.value,
            "day": question.day,
            "asked_at": question.asked_at,
            "asker": question.requester_kind,
            "relationship": question.relationship or None,
            "lag_days": question.lag_days,
            "question": question.question_text,
            "gold_json": json.dumps(question.instance.gold.model_dump(mode="json"), ensure_ascii=False),
            "evidence_session_ids": " ".join(_evidence_sessions(question)),
        }


def _evidence_sessions(question: Question) -> list[str]:
    return list(dict.fromkeys(question.instance.evidence_session_ids))


def _answers(facts: RunFacts, scored: ScoredRun) -> Iterator[Row]:
    """Yield a row for each question of each cell, from its last attempt."""
    for question in scored.questions:
        attempts = facts.attempts.get((question.cell_id, question.instance_id), ())
        last = attempts[-1].record if attempts else None
        answer = last.answer if last is not None and last.status == "answered" else None
        retrieval, disclosure = question.retrieved, question.disclosure
        yield {
            "cell_id": question.cell_id,
            "instance_id": question.instance_id,
            "outcome": question.outcome.value if question.outcome else None,
            "attempts": question.attempts,
            "answer": answer.answer if answer else None,
            "cause": (last.cause if last else "") or None,
            "token_f1": question.token_f1,
            "decided_by": question.route,
            "why": question.why or None,
            "stage": question.stage,
            "behaviour": disclosure.label if disclosure else None,
            "disclosed": disclosure.disclosed if disclosure else None,
            "allowed": question.allowed,
            "items": retrieval.items if retrieval else None,
            "evidence_sessions": retrieval.evidence_sessions if retrieval else None,
            "found_at_k": retrieval.found_at_k if retrieval else None,
            "found": retrieval.found if retrieval else None,
            "first_rank": retrieval.first_rank if retrieval else None,
            "context_tokens": retrieval.context_tokens if retrieval else None,
        }


def _timings(scored: ScoredRun) -> Iterator[Row]:
    """Yield a row for each question that was timed."""
    for question in scored.questions:
        if question.spans is not None:
            yield {
                "cell_id": question.cell_id,
                "instance_id": question.instance_id,
                **_spans(question),
                "reader_calls": question.reader_calls,
                "reader_tokens": question.reader_tokens,
            }


def _spans(question: QuestionScore) -> Row:
    assert question.spans is not None
    return {
        "segment": question.spans.segment,
        "search_ms": question.spans.search_ms,
        "ttft_ms": question.spans.ttft_ms,
        "rest_ms": question.spans.rest_ms,
        "first_delta_ms": question.spans.first_delta_ms,
        "server_prompt_ms": question.spans.server_prompt_ms,
        "gateway_ttft_ms": question.spans.gateway_ttft_ms,
    }


def _verdicts(verdicts: Iterable[Verdict]) -> Iterator[Row]:
    """Yield a row for each verdict."""
    for verdict in verdicts:
        yield {
            "cell_id": verdict.cell_id,
            "instance_id": verdict.instance_id,
            "attempt": verdict.attempt,
            "judge": verdict.judge,
            "judge_version": verdict.judge_version,
            "repeat": verdict.repeat,
            "decided_by": verdict.route,
            "correct": verdict.correct,
            "score": verdict.score,
            "label": verdict.label,
            "reason": verdict.reason or None,
        }
