"""What a report says in sentences: what its intervals support, and what cannot be concluded from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from memarena.report.brief_rows import FEWEST_QUESTIONS, BriefRow, apart, ranked_groups
from memarena.report.figures import milliseconds
from memarena.report.layout import counted
from memarena.scoring.results import Permission
from memarena.scoring.uncertainty_records import Interval

_LOST = {
    "not_ingested": "lacked some that never arrived at the memory",
    "not_retrieved": "lacked some that Search did not return",
    "cut_from_prompt": "lacked some that was found and did not fit into the prompt",
    "misread": "had all of it in the prompt",
}


def findings(rows: Sequence[BriefRow]) -> list[str]:
    """One sentence for each finding, the verdict first; empty where nothing was asked."""
    found = [
        f"Right answers of {row.name} ({row.reader}): nothing was measured, since the backend failed every question "
        f"({row.scores.counts.backend_failed:,} of {row.scores.counts.asked:,})."
        for row in rows
        if row.nothing_measured
    ]
    found += [sentence for group in ranked_groups(rows) if (sentence := verdict(group))]
    return [*found, *_retrieval(rows), *_losses(rows), *_access(rows), *_times(rows)]


def verdict(group: Sequence[BriefRow]) -> str:
    """Who answers most, as far as the intervals support it; empty for a single memory."""
    if len(group) < 2:
        return ""
    listed = ", ".join(f"{row.name} {100 * (row.right.value or 0.0):.1f}%" for row in group)
    signs = [" > " if apart(one, other) else " ? " for one, other in itertools.pairwise(group)]
    order = group[0].name + "".join(sign + row.name for sign, row in zip(signs, group[1:], strict=True))
    if " ? " not in signs:
        return f"Right answers ({group[0].reader}): {listed}; no two intervals overlap, so the order holds: {order}."
    if " > " not in signs:
        return f"Right answers ({group[0].reader}): {listed}; the intervals do not carry an order."
    return f"Right answers ({group[0].reader}): {listed}; what the intervals carry: {order} (? = open)."


def unproven(rows: Sequence[BriefRow]) -> list[str]:
    """What must not be read from the figures, one line each."""
    found = []
    for group in ranked_groups(rows):
        alone = [row for row in group if row.interval is None]
        for row in alone:
            asked = counted(row.scores.counts.asked, "question")
            found.append(f"{row.name} ({row.reader}): {asked} of one person give no interval, so no place in an order")
        few = [row for row in group if row.interval is not None and row.interval.few_clusters]
        if few:
            egos_behind = max(row.interval.clusters for row in few if row.interval is not None)
            names = ", ".join(row.name for row in few)
            found.append(f"{names} ({few[0].reader}): {egos_behind} egos are too few for intervals to rely on (8)")
        known = [row for row in group if row not in alone and row not in few]
        found += [
            f"whether {one.name} answers more than {other.name} ({one.reader}): their intervals overlap "
            f"({_ends(one)}, {_ends(other)}); `memarena compare` pairs the questions and tells more"
            for one, other in itertools.pairwise(known)
            if not apart(one, other)
        ]
    open_access = [row.name for row in rows if (d6 := row.scores.permission) and gates(row) is None and d6.deny]
    if open_access:
        names = ", ".join(dict.fromkeys(open_access))
        found.append(f"whether these look at who asks: {names}; the interval of J = privacy + utility - 1 includes 0")
    return found


def gates(row: BriefRow) -> bool | None:
    """Whether it controls access, where both intervals of J support it; None: open."""
    return carried_gates(row.scores.permission, row.scores.intervals.get("J"))


def carried_gates(d6: Permission | None, interval: Interval | None) -> bool | None:
    """As :func:`gates`, from D6 and the interval of J over draws of egos.

    Newcombe's interval treats items as independent, and an ego's are not: so the draws of at least 8 egos must say the
    same.
    """
    if d6 is None or d6.j_low is None or d6.j_high is None:
        return None
    if interval is None or interval.few_clusters:
        return None
    if d6.j_low > 0 and interval.low > 0:
        return True
    return False if d6.j_high <= 0 and interval.high <= 0 else None


# ------------------------------------------------------------------ single findings


def _retrieval(rows: Sequence[BriefRow]) -> Iterator[str]:
    enough = [row for row in rows if row.recall is not None and row.evidence_questions >= FEWEST_QUESTIONS]
    known = {_label(row, enough): row.recall or 0.0 for row in enough}
    if known:
        listed = ", ".join(f"{name} {100 * share:.0f}%" for name, share in sorted(known.items(), key=lambda o: -o[1]))
        yield f"Evidence among the first 10 items of Search: {listed}."


def _losses(rows: Sequence[BriefRow]) -> Iterator[str]:
    for row in rows:
        split = row.scores.errors
        if split is None or row.scores.diagnostic:
            continue
        counts = {stage: getattr(split, stage) for stage in _LOST}
        total = sum(counts.values()) + split.unknown
        worst = max(counts, key=lambda stage: counts[stage])
        if total >= FEWEST_QUESTIONS and counts[worst]:
            name = _label(row, rows)
            yield f"Of {total} wrong answers of {name} to questions with evidence, {counts[worst]} {_LOST[worst]}."


def _label(row: BriefRow, rows: Sequence[BriefRow]) -> str:
    """The memory, with its reader and run as far as other rows need that to be told apart."""
    same = [other for other in rows if other.name == row.name]
    parts = [row.reader] if len({other.reader for other in same}) > 1 else []
    if len([other for other in same if other.reader == row.reader]) > 1:
        parts.append(f"run {row.run}")
    return f"{row.name} ({', '.join(parts)})" if parts else row.name


def _access(rows: Sequence[BriefRow]) -> Iterator[str]:
    for names, what in (
        ([row.name for row in rows if gates(row) is True], "withholds from those who may not know, beyond chance"),
        ([row.name for row in rows if gates(row) is False], "tells those who may not know more than those who may"),
    ):
        if names:
            yield f"Access: {', '.join(dict.fromkeys(names))} {what}."


def _times(rows: Sequence[BriefRow]) -> Iterator[str]:
    timed = [row for row in rows if row.search_ms is not None]
    if len(timed) > 1:
        quick, *_, slow = sorted(timed, key=lambda row: row.search_ms or 0.0)
        ends = [f"{_ms(row.search_ms)} ms ({_label(row, timed)})" for row in (quick, slow)]
        yield f"Search above the floor: from {ends[0]} to {ends[1]}."


def _ms(value: float | None) -> str:
    return milliseconds(value).text


def _ends(row: BriefRow) -> str:
    made = row.interval
    return "n/a" if made is None else f"{100 * made.low:.0f}–{100 * made.high:.0f}"
