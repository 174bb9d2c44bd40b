"""Makes the seals of a bundle: SHA256SUMS for sha256sum(1), and an in-toto statement (Statement v1) on all files.

Both are derived from the bundle's other files, so they can be made again and compared byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memarena.scoring.figures import Score
from memarena.scoring.results import RowScores
from pydantic import JsonValue

from memarena_spark.bundle.derived import Facts
from memarena_spark.files import canonical_json
from memarena_spark.profiles import NodeProfile

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:x-memarena:certification:v1"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def sums(hashes: Mapping[str, str]) -> bytes:
    """Return the content of SHA256SUMS for hashes by file name."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()


def read_sums(content: bytes) -> dict[str, str] | None:
    """Parse SHA256SUMS into hashes by name; None if the content is invalid."""
    try:
        *lines, remainder = content.decode("ascii").split("\n")
    except UnicodeDecodeError:
        return None
    matches = [_LINE.fullmatch(line) for line in lines]
    if remainder or not all(matches):
        return None
    return {match[2]: match[1] for match in matches if match}


def statement(facts: Facts, hashes: Mapping[str, str]) -> bytes:
    """Return the statement: all files with their hashes, and the predicate about them."""
    subjects: list[JsonValue] = [{"name": name, "digest": {"sha256": hashes[name]}} for name in sorted(hashes)]
    return canonical_json(
        {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": _predicate(facts)}
    )


def certifies(profile: NodeProfile) -> dict[str, bool]:
    """Return which of scores, times and energy a bundle made with a profile certifies."""
    certified = profile.purpose == "certification"
    return {"scores": profile.purpose != "test", "times": certified, "energy": certified}


def _predicate(facts: Facts) -> JsonValue:
    """Return the statement's predicate: what is certified, node, run, data set, readers and rows."""
    manifest, state = facts.run.manifest, facts.record.preflight.state
    return {
        "certifies": {**certifies(facts.profile)},
        "profile": f"{facts.profile.name} v{facts.profile.version}",
        "purpose": facts.profile.purpose,
        "result_class": facts.plan.result_class,
        "node": state.identity.name,
        "gpu": state.gpu.model_dump(mode="json").get("name"),
        "run_id": facts.run.started.run_id,
        "started_at": facts.record.started_at,
        "ended_at": facts.record.ended_at,
        "dataset": {"name": manifest.dataset.name, "sha256": manifest.dataset.sha256},
        "readers": {reader.name: reader.model for reader in manifest.readers},
        "memarena": manifest.versions.memarena,
        "questions": len(facts.run.questions),
        "rows": {row.label: _row(row) for row in facts.scored.scores.rows},
    }


def _row(row: RowScores) -> JsonValue:
    latency = row.latency
    return {
        "asked": row.counts.asked,
        "correct": row.counts.correct,
        "metrics": {name: _score(score) for name, score in row.metrics.items()},
        "search_ms_p50": None if latency is None else _rounded(latency.search.p50),
        "ttft_ms_p50": None if latency is None else _rounded(latency.ttft.p50),
        "end_to_end_ms_p50": None if latency is None else _rounded(latency.end_to_end.p50),
    }


def _score(score: Score) -> JsonValue:
    return _rounded(score.value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
