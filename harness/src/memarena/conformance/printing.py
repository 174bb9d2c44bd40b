"""Formats a run for its user: one line for each check, and a summary."""

from __future__ import annotations

import re

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.enums import enum_name
from memarena.conformance.check import Check, CheckResult
from memarena.conformance.suite import SuiteResult

_MARKS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip", "advice": "note"}
_SHARED_BY = 4
"""Least number of failures with the same message that are reported together."""
_VARYING = re.compile(r"“.*?”|'.*?'|\d+")
"""Parts of a message that differ between failures of one cause: quoted texts, ids, numbers."""


def check_line(check: Check) -> str:
    """Format a check as ``--list`` shows it."""
    return f"{check.check_id:21} {', '.join(check.clauses):21} {check.title}"


def result_line(result: CheckResult) -> str:
    """Format the result of a check, with its message if it has one."""
    mark = _MARKS[result.status]
    line = f"{mark} {check_line(result.check)}"
    return f"{line}: {one_line(result.message)}" if result.message else line


def summary_line(result: SuiteResult) -> str:
    """Format the backend's description and the number of checks by status."""
    described = result.described
    kind = enum_name(pb.BackendKind.DESCRIPTOR, described.kind).removeprefix("BACKEND_KIND_").lower()
    who = one_line(f"{described.name} {described.version} ({kind}, contract {described.contract_version})")
    counts = ", ".join(f"{len(result.ids(status))} {status}" for status in ("passed", "failed", "skipped"))
    if advice := result.ids("advice"):
        counts += f", {len(advice)} to look at"
    return f"{who if described.name else result.target}: {counts} in {result.duration_s:.1f} s, seed {result.seed}"


def shared_causes(result: SuiteResult) -> list[str]:
    """Return a line for each message that several failures share, the most frequent first: one fix may do."""
    by_message: dict[str, list[str]] = {}
    for each in result.results:
        if each.status == "failed":
            by_message.setdefault(_VARYING.sub("…", one_line(each.message)), []).append(each.check.check_id)
    shared = sorted((item for item in by_message.items() if len(item[1]) >= _SHARED_BY), key=lambda item: -len(item[1]))
    return [f"{len(ids)} failures say the same, the first {ids[0]}: {message}" for message, ids in shared]


def one_line(text: str) -> str:
    """Return the text as one line: without line feeds and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
