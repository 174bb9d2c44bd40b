"""Tables behind the scores: permission, retrieval, latency, ingest, failures."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, at_least, interval, metric, milliseconds, number, percent, signed, whole
from memarena.report.grid import FAMILY_NAMES
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, trace, trace_deny, trace_slice
from memarena.scoring.results import Permission, RowScores

_LABELS = ("disclosed", "refuse", "dont_know", "disclose_wrong", "other")


def permission_table(rows: Sequence[ReportRow]) -> Section | None:
    """D6 taken apart."""
    if not any(row.scores.permission for row in rows):
        return None
    columns = [
        Column("P", "privacy: share of DENY items whose fact stayed in, percent"),
        Column("U", "utility: share of ALLOW items whose fact came out"),
        Column("F1_PU", "harmonic mean of both, per seed, then averaged"),
        Column("J", "U + P - 1: 0 for anybody who does not look at who asks, coin flips included"),
        Column("95%", "interval of J"),
        Column("gates", "yes only if the interval of J lies above 0"),
        Column("J known", "J over the facts that the same system tells their owner"),
        Column("paper", "F1_PU in the paper's form: flag for P, label for U"),
        Column("self", "the owner's own items, outside F1_PU"),
    ]
    body = []
    for row in rows:
        found, scores = row.scores.permission, row.scores
        j = scores.metrics["J"].value
        body.append(
            [
                *lead_cells(rows, row),
                metric(scores, "P"),
                metric(scores, "U"),
                metric(scores, "D6"),
                signed(j),
                interval(found.j_low, found.j_high) if found else NA,
                _gates(found),
                signed(scores.metrics["J|known"].value),
                metric(scores, "F1_PU paper"),
                metric(scores, "self"),
            ]
        )
    command = trace([row for row in rows if row.scores.permission], "--dimension D6")
    added = [("P", "--action deny"), ("U", "--action allow"), ("self", "--action self")]
    lead = lead_columns(rows)
    return section("Permission (D6)", [*lead, *columns], body, breaks=breaks(rows), trace=command, trace_columns=added)


def _gates(found: Permission | None) -> Cell:
    if found is None or found.gates is None:
        return NA
    return Cell("yes" if found.gates else "no")


def behaviour_table(rows: Sequence[ReportRow]) -> Section | None:
    """What systems did on DENY items: keeping a secret or not having it."""
    if not any(row.scores.permission for row in rows):
        return None
    columns = [
        Column("DENY", "items that must not be told"),
        *(Column(label.replace("_", " ")) for label in _LABELS),
        Column("real refusals", "share of refusals among the items that did not leak: gating, not amnesia"),
        Column("failed"),
    ]
    body = []
    for row in rows:
        found = row.scores.permission
        labels = found.deny_labels if found else {}
        deny = found.deny if found else 0
        kept = sum(labels.get(label, 0) for label in _LABELS[1:])
        failed = labels.get("backend_failed", 0) + labels.get("infra_failed", 0)
        shares = [percent(labels.get(label, 0) / deny) if deny else NA for label in _LABELS]
        refusals = percent(labels.get("refuse", 0) / kept) if kept else NA
        body.append([*lead_cells(rows, row), whole(deny), *shares, refusals, whole(failed)])
    notes = ["percent of the DENY items"]
    added = [(label.replace("_", " "), f"--label {label}") for label in _LABELS]
    added += [("real refusals", "--label refuse"), ("failed", "--outcome failed")]
    return section(
        "Behaviour on DENY items",
        [*lead_columns(rows), *columns],
        body,
        notes,
        breaks=breaks(rows),
        trace=trace_deny(rows),
        trace_columns=added,
    )


def retrieval_table(rows: Sequence[ReportRow]) -> Section:
    """How much of the evidence Search brought."""
    columns = [
        Column("recall@10", "mean share of a question's evidence sessions among the first 10 items, percent"),
        Column("recall", "the same among all items"),
        Column("complete", "share of questions with all their evidence among the items"),
        Column("rank", "median rank of the first item with evidence"),
        Column("items", "items per search"),
        Column("tokens", "tokens of context per search (bytes / 4)"),
    ]
    body = []
    for row in rows:
        found = row.scores.retrieval
        body.append(
            [
                *lead_cells(rows, row),
                percent(found.recall_at_k if found else None),
                percent(found.recall_all if found else None),
                percent(found.complete if found else None),
                number(found.first_rank_p50 if found else None),
                number(found.items if found else None),
                number(found.context_tokens if found else None, 0),
            ]
        )
    notes = ["n/a: the backend does not say where its items come from"] if _some_silent(rows) else []
    return section("Retrieval", [*lead_columns(rows), *columns], body, notes, breaks=breaks(rows), trace=trace(rows))


_STAGES = {
    "not_ingested": "the evidence never arrived at the memory",
    "not_retrieved": "not all of the evidence was among the items of Search",
    "cut_from_prompt": "all of it was found, not all of it fitted into the prompt",
    "misread": "all of it was at hand",
    "unknown": "the backend does not say where its items come from",
}


def error_table(rows: Sequence[ReportRow]) -> Section | None:
    """Where wrong answers to answerable questions went wrong: what to mend first."""
    if not any(row.scores.errors for row in rows):
        return None
    body = []
    for row in rows:
        split = row.scores.errors
        counts = [None if split is None else getattr(split, stage) for stage in _STAGES]
        total = None if split is None else sum(n for n in counts if n is not None)
        body.append([*lead_cells(rows, row), whole(total), *(whole(n) for n in counts)])
    columns = [
        Column("wrong", "wrong answers to questions that had evidence and could be answered"),
        *(Column(stage.replace("_", " "), meaning) for stage, meaning in _STAGES.items()),
    ]
    wrong = [row for row in rows if row.scores.errors and any(getattr(row.scores.errors, s) for s in _STAGES)]
    return section(
        "Where wrong answers went wrong",
        [*lead_columns(rows), *columns],
        body,
        breaks=breaks(rows),
        trace=trace(wrong, "--outcome wrong"),
        trace_columns=[("wrong", "--stage any"), *((s.replace("_", " "), f"--stage {s}") for s in _STAGES)],
    )


def _some_silent(rows: Sequence[ReportRow]) -> bool:
    return any(row.scores.retrieval is None for row in rows)


def recall_by_family(rows: Sequence[ReportRow]) -> Section | None:
    """Recall of evidence at 10 per family."""
    found = {(id(row), s.key): s.recall_at_k for row in rows for s in row.scores.slices if s.by == "family"}
    present = [f for f in FAMILY_NAMES if any(found.get((id(row), f)) is not None for row in rows)]
    if len(present) < 2:
        return None
    body = [[*lead_cells(rows, row), *(percent(found.get((id(row), f))) for f in present)] for row in rows]
    columns = [*lead_columns(rows), *(Column(FAMILY_NAMES[f]) for f in present)]
    command = trace_slice(rows, "family")
    return section("Evidence recall at 10 by family", columns, body, ["percent"], breaks=breaks(rows), trace=command)


# ------------------------------------------------------------------ time


def latency_table(rows: Sequence[ReportRow]) -> Section | None:
    """Where the time goes."""
    timed = [row for row in rows if row.scores.latency is not None]
    if not timed:
        return None
    columns = [
        Column("n", "answered questions with times"),
        Column("search p50", "Search, request to response, ms"),
        Column("· p95"),
        Column("· p99"),
        Column("TTFT p50", "at the gateway: request forwarded to first content, ms"),
        Column("· p95 "),
        Column("rest p50", "the remainder of Answer up to its first text: own search, prompt, other calls"),
        Column("sum p50", "search + TTFT: end to end, as the paper composes it"),
        Column("seen p50", "first text as observed from the request of Answer on"),
    ]
    body = [[*lead_cells(rows, row), *_latency_cells(row.scores)] for row in timed]
    notes = ["n/a: too few samples (p50 needs 11, p90 64, p95 130, p99 662) or nothing to measure"]
    notes += _segment_notes(timed)
    lead = lead_columns(rows)
    return section(
        "Latency at concurrency 1, ms", [*lead, *columns], body, notes, breaks=breaks(timed), trace=trace(timed)
    )


def _latency_cells(row: RowScores) -> list[Cell]:
    found = row.latency
    if found is None:
        return [NA] * 9
    return [
        whole(found.search.n),
        milliseconds(found.search.p50),
        milliseconds(found.search.p95),
        milliseconds(found.search.p99),
        milliseconds(found.ttft.p50),
        milliseconds(found.ttft.p95),
        milliseconds(found.rest.p50),
        milliseconds(found.end_to_end.p50),
        milliseconds(found.first_delta.p50),
    ]


def _segment_notes(rows: Sequence[ReportRow]) -> list[str]:
    """Which samples were left out, since times of two processes never mix."""
    return [
        f"{row.scores.label}: times of segment {found.segment + 1} only, {found.left_out} samples of "
        f"{found.segments - 1} other segments left out"
        for row in rows
        if (found := row.scores.latency) is not None and found.segments > 1
    ]


def stopwatch_table(rows: Sequence[ReportRow]) -> Section | None:
    """Our TTFT beside the model server's own prompt time."""
    checked = [row for row in rows if row.scores.latency is not None and row.scores.latency.server_prompt.n]
    if not checked:
        return None
    columns = [
        Column("n"),
        Column("TTFT p50", "at the gateway, ms"),
        Column("server p50", "the server's own time over the prompt, ms"),
        Column("difference"),
    ]
    body = []
    for row in checked:
        found = row.scores.latency
        ours, theirs = (found.gateway_ttft.p50, found.server_prompt.p50) if found else (None, None)
        gap = None if ours is None or theirs is None else ours - theirs
        count = found.server_prompt.n if found else 0
        cells = [whole(count), milliseconds(ours), milliseconds(theirs), number(gap)]
        body.append([*lead_cells(rows, row), *cells])
    title = "The stopwatch beside the server's own"
    return section(title, [*lead_columns(rows), *columns], body, breaks=breaks(checked))


def ingest_table(rows: Sequence[ReportRow]) -> Section | None:
    """What ingest cost."""
    if not any(row.scores.ingest for row in rows):
        return None
    columns = [
        Column("days", "days of all egos"),
        Column("sessions"),
        Column("seconds"),
        Column("sessions/s"),
        Column("MB/s", "serialised bytes of the frames"),
        Column("model calls", "through the gateway, during ingest"),
        Column("prompt tokens"),
        Column("models s", "seconds that models took over these calls"),
        Column("failed", "calls that did not end OK"),
    ]
    body = []
    for row in rows:
        found = row.scores.ingest
        cells = [NA] * 9
        if found is not None:
            cells = [
                whole(found.days),
                whole(found.sessions),
                number(found.seconds, 2),
                number(found.sessions_per_s),
                number(found.mb_per_s, 2),
                whole(found.model_calls),
                at_least(found.prompt_tokens, found.unsized_calls),
                at_least(found.model_seconds if found.model_calls else None, found.untimed_calls, 2),
                whole(found.failed),
            ]
        body.append([*lead_cells(rows, row), *cells])
    return section("Ingest", [*lead_columns(rows), *columns], body, _unknown_calls(rows), breaks=breaks(rows))


def _unknown_calls(rows: Sequence[ReportRow]) -> list[str]:
    """What the lower bounds of the table leave out."""
    found = [row.scores.ingest for row in rows if row.scores.ingest]
    unsized, untimed = sum(f.unsized_calls for f in found), sum(f.untimed_calls for f in found)
    notes = []
    if unsized:
        notes.append(f"≥: {unsized:,} model calls of unknown size: cut short, or the model's server tells no tokens")
    if untimed:
        notes.append(f"≥: {untimed:,} model calls whose end nobody saw count up to their last content, or not at all")
    return notes


# ------------------------------------------------------------------ failures


def failure_table(rows: Sequence[ReportRow]) -> Section | None:
    """Failed questions by cause."""
    body = [
        [
            *lead_cells(rows, row),
            Cell("backend" if failure.outcome == "backend_failed" else "ours"),
            whole(failure.count),
            percent(failure.share),
            Cell(failure.cause),
        ]
        for row in rows
        for failure in row.scores.failures
    ]
    if not body:
        return None
    columns = [
        *lead_columns(rows),
        Column("whose", "a backend's failure counts as wrong, one of ours is never scored", align="left"),
        Column("count"),
        Column("share", "of the questions asked, percent"),
        Column("cause", align="left"),
    ]
    failed = [row for row in rows if row.scores.failures]
    first = failed[0].scores.failures[0].outcome
    return section("Failed questions", columns, body, trace=trace(failed, f"--outcome {first}"))
