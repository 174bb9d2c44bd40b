"""Implements ``memarena gated explain DATA_DIR``: prints the records of a backend in words, even while it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memarena_backend import date_in_words, moment_in_words

from memarena_backend_gated.records import SURE, Audience, Effect, Group, Record, Whose
from memarena_backend_gated.store import STORE_NAME, StoredDay, read_store

EXIT_BAD_INPUT = 2
_VERBS = {
    Effect.SHARE: "may be known by",
    Effect.WITHHOLD: "is to be withheld from",
    Effect.DELETE: "is to be forgotten, for",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the records; one line on standard error and exit code 2 if they cannot be read."""
    parser = argparse.ArgumentParser(prog="memarena-gated", description="Reads what the backend gated keeps.")
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="print who may know what, by whose wish, with its source turns")
    explain.add_argument("data_dir", type=Path, help="the --data-dir of the backend")
    explain.add_argument("--namespace", help="only this namespace")
    arguments = parser.parse_args(argv)
    sys.exit(_explain(arguments.data_dir, arguments.namespace))


def _explain(data_dir: Path, namespace: str | None) -> int:
    """Print the records of one or all namespaces; return the exit code."""
    path = data_dir / STORE_NAME
    try:
        days = read_store(path)
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_BAD_INPUT
    except ValueError as error:
        sys.stderr.write(f"error: {path}: no records of this version: {str(error).splitlines()[0]}\n")
        return EXIT_BAD_INPUT
    namespaces = sorted({day.namespace for day in days})
    if namespace is not None and namespace not in namespaces:
        sys.stderr.write(f"error: --namespace {namespace}: expected one of {', '.join(namespaces) or 'none'}\n")
        return EXIT_BAD_INPUT
    for name in namespaces if namespace is None else [namespace]:
        sys.stdout.write("\n".join(lines_of(name, [day for day in days if day.namespace == name])) + "\n")
    return 0


def lines_of(namespace: str, days: Sequence[StoredDay]) -> list[str]:
    """Return a heading, then two lines for each record of a namespace, oldest first."""
    people = days[-1].people
    records = [record for day in days for record in day.records]
    lines = [f"namespace {namespace}: {len(records)} records"]
    for record in records:
        lines += [_what(record, people), f"      {_where(record, people)}"]
    return lines


def _what(record: Record, people: Mapping[str, str]) -> str:
    """Return a line on a record: whose fact, the wish, its days and conditions."""
    wish = record.wish
    about = ", ".join(wish.topic[:8]) or ", ".join(wish.values) or "what was said"
    only = " and no one else" if wish.others_excluded else ""
    parts = [f"{record.record_id:>5} {record.subject} ({about}) {_VERBS[wish.effect]} {_people(wish.audience)}{only}"]
    if wish.valid_from is not None:
        parts.append(f"from {date_in_words(wish.valid_from)}")
    if wish.valid_until is not None:
        parts.append(f"until {date_in_words(wish.valid_until)}")
    if wish.condition:
        parts.append(f"if: {wish.condition}")
    if wish.confidence < SURE:
        parts.append("not sure")
    return ", ".join(parts)


def _where(record: Record, people: Mapping[str, str]) -> str:
    whose = "" if record.own else ", not the person's own wish"
    read_by = "" if record.origin == "rules" else f"; read by a {record.origin}"
    return (
        f"stated by {people.get(record.stated_by, record.stated_by)}{whose}, {moment_in_words(record.said_at)}, turn "
        f"{record.source_turn_id}; covers {len(record.turn_ids)} turns; confidence {record.wish.confidence:g}{read_by}"
    )


def _people(audience: Audience) -> str:
    people = ["everyone"] if audience.everyone else [*audience.names, *map(_group, audience.groups)]
    left_out = [*audience.except_names, *map(_group, audience.except_groups)]
    return " and ".join(people) + (f" except {' and '.join(left_out)}" if left_out else "")


def _group(group: Group) -> str:
    whose = {Whose.SPEAKER: "the speaker's ", Whose.OWNER: "the owner's ", Whose.OPEN: ""}[group.whose]
    return f"{whose}{group.kind}"


if __name__ == "__main__":
    main()
