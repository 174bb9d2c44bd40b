"""Builds tables on the reliability of a study: errors by prompt length, TTFT compared with the server's time.

A fit's predictions for other cells are no better than those for held-out questions (left out of the fit, then
predicted); a stopwatch that disagrees with the server makes all times doubtful.
"""

from __future__ import annotations

from memarena.latency.report.cells import share_cell
from memarena.latency.results import Study
from memarena.report.figures import milliseconds, whole
from memarena.report.layout import Cell, Column, Section, section

HELD_OUT_BAR = 0.10
"""A fit holds if its median error for held-out questions is below this."""


def held_out_section(study: Study) -> Section | None:
    """Return the table of held-out errors by range of prompt lengths, and where the used fit does not hold."""
    if not study.fits:
        return None
    columns = [
        Column("reader", align="left"),
        Column("of", align="left"),
        Column("model", "the one that predicts held-out questions best", align="left"),
        Column("prompts", "tokens, in thirds of the range behind the fit"),
        Column("n", "held-out questions"),
        Column("p50", "relative error; n/a below 11 questions"),
        Column("p95", "n/a below 130"),
        Column(f"below {100 * HELD_OUT_BAR:.0f}%", "at p50", align="left"),
    ]
    body = []
    for fit in study.fits:
        for quantity, words in (("ttft", "first token"), ("llm", "whole call")):
            model = fit.best("ttft" if quantity == "ttft" else "llm")
            name = "linear" if model.coefficients.delta_ms is None else "quadratic"
            for part in model.held_out_by_length:
                error = part.error_p50
                body.append(
                    [
                        Cell(fit.reader),
                        Cell(words),
                        Cell(name),
                        Cell(f"{part.low:,} to {part.high:,}"),
                        whole(part.n),
                        share_cell(part.error_p50),
                        share_cell(part.error_p95),
                        Cell("not known" if error is None else "yes" if error < HELD_OUT_BAR else "NO"),
                    ]
                )
    return section("Held-out error by length of prompt", columns, body)


def server_check_section(study: Study) -> Section | None:
    """Return the table of TTFT at the gateway against the server's own prompt time; None without any reader."""
    if not study.server_checks:
        return None
    columns = [
        Column("reader", align="left"),
        Column("n", "questions whose prompt time the server reports"),
        Column("within 5% + 3 ms"),
        Column("share"),
        Column("apart ms", "TTFT less the server's time, p50"),
        Column("apart", "the same as a share of the server's time, p50"),
    ]
    checks = [check for check in study.server_checks if check.told]
    body = [
        [
            Cell(check.reader),
            whole(check.told),
            whole(check.within),
            share_cell(check.within / check.told),
            milliseconds(check.difference_p50_ms),
            share_cell(check.difference_p50, 2),
        ]
        for check in checks
    ]
    notes = [f"{c.reader}: its server reports no prompt time" for c in study.server_checks if not c.told]
    notes += [f"{c.reader}: {c.n - c.told} questions without it" for c in checks if c.told < c.n]
    title = "First token and the server's own prompt time"
    return section(title, columns, body, notes) if body else Section(title, notes=tuple(notes))
