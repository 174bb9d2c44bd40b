"""Tests that every clause of SPEC.md has a check or is listed as untestable, and that cited clauses exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import memarena.conformance
from google.protobuf.descriptor import FieldDescriptor
from memarena.conformance import all_checks
from memarena.conformance.checks import CHAPTERS
from memarena.conformance.checks.ingest import REQUIRED as REQUIRED_OF_DAYS
from memarena.conformance.checks.search import REQUIRED as REQUIRED_OF_QUESTIONS
from memarena_proto import memory_backend_pb2 as pb

ROOT = Path(__file__).parents[2]
CLAUSES = set(re.findall(r"\*\*([A-Z]{3}-\d+)\*\*", (ROOT / "proto" / "SPEC.md").read_text(encoding="utf-8")))
CITED = {clause for check in all_checks() for clause in check.clauses}
UNTESTABLE: dict[str, str] = tomllib.loads(
    (Path(memarena.conformance.__file__).parent / "untestable.toml").read_text(encoding="utf-8")
)


def test_every_cited_clause_exists() -> None:
    assert set() == CITED - CLAUSES
    assert set(UNTESTABLE) - CLAUSES == set()


def test_every_clause_has_a_check_or_is_listed_as_untestable() -> None:
    assert CLAUSES - CITED - set(UNTESTABLE) == set()
    assert CITED & set(UNTESTABLE) == set()
    assert all(len(reason) > 10 for reason in UNTESTABLE.values())


def test_ids_of_checks_are_unique_and_begin_with_their_chapter() -> None:
    checks = all_checks()
    assert len({check.check_id for check in checks}) == len(checks) > 70
    for check in checks:
        assert check.clauses
        assert check.run.__module__ in {module.__name__ for module in CHAPTERS[check.chapter]}
        assert re.fullmatch(r"[a-z]{3,4}\.[a-z0-9-]+", check.check_id)


def test_every_required_field_of_the_contract_is_removed_by_a_check() -> None:
    """REQUIRED in the proto file, but for numbers, whose zero has a meaning, and for what is tested elsewhere."""
    paths = set(REQUIRED_OF_DAYS)
    assert required_below(pb.IngestRequest.DESCRIPTOR.fields_by_name) - paths == set()
    questions = required_below(pb.SearchRequest.DESCRIPTOR.fields_by_name)
    # Options, participants and evidence of a question have checks of their own.
    assert {path for path in questions if not path.startswith(("options.", "requester."))} - set(
        REQUIRED_OF_QUESTIONS
    ) == {"as_of_day"} - {"as_of_day"}


def required_below(fields: Mapping[str, FieldDescriptor], prefix: str = "", depth: int = 0) -> set[str]:
    """Return the paths of REQUIRED strings, enums and messages, by the comments of the proto file."""
    source = (ROOT / "proto" / "memarena" / "v1" / "memory_backend.proto").read_text(encoding="utf-8")
    returned: set[str] = set()
    for field in fields.values():
        assert field.containing_type is not None
        body = re.search(rf"\nmessage {field.containing_type.name} \{{(.*?)\n\}}", source, re.DOTALL)
        assert body is not None
        comment = re.search(rf"((?:  +//[^\n]*\n)+)  +[\w. ]*\b{field.name} = {field.number};", body[1])
        path = f"{prefix}{field.name}"
        numeric = field.cpp_type not in (field.CPPTYPE_STRING, field.CPPTYPE_ENUM, field.CPPTYPE_MESSAGE)
        if comment is not None and "REQUIRED" in comment[1] and not numeric:
            returned.add(path)
        if field.message_type is not None and depth < 4:
            returned |= required_below(field.message_type.fields_by_name, f"{path}.", depth + 1)
    return returned
