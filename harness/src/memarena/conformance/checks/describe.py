"""DSC: what a backend says of itself is complete, sound, and the same every time."""

from __future__ import annotations

import re
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.contract_limits import QUERY_TEXT_BYTES, TURN_TEXT_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.wire import MINOR_VERSION, RefusedError

_KEY = re.compile(r"[a-z0-9_]+")
_LATER_MINOR = 9


def _describe(backend: BackendUnderTest, caller_minor_version: int = MINOR_VERSION) -> pb.DescribeResponse:
    try:
        return backend.retried(partial(backend.wire.describe, caller_minor_version))
    except RefusedError as error:
        raise BrokenError(f"Describe was refused: {error}") from error


@check("dsc.complete", "DSC-2", "DSC-3", "DSC-4", "DSC-5")
def complete(backend: BackendUnderTest) -> None:
    """Describe fills every REQUIRED field with something sound, with limits and options in form."""
    described = _describe(backend)
    for name in ("name", "version", "contract_version", "kind"):
        if not getattr(described, name):
            raise BrokenError(f"{name} is missing")
    if not re.fullmatch(r"1\.\d+", described.contract_version):
        raise BrokenError(f"contract_version is {described.contract_version!r}, expected 1.2, 1.1 or 1.0")
    if described.kind not in (pb.BACKEND_KIND_COMPETITOR, pb.BACKEND_KIND_DIAGNOSTIC):
        raise BrokenError(f"kind is {described.kind}, expected COMPETITOR or DIAGNOSTIC")
    if 1 not in described.digest_versions:
        raise BrokenError(f"digest_versions is {list(described.digest_versions)}, expected 1 among them")
    if pb.CAPABILITY_UNSPECIFIED in described.capabilities:
        raise BrokenError("capabilities contains CAPABILITY_UNSPECIFIED")
    for name, limit in (("max_turn_text_bytes", TURN_TEXT_BYTES), ("max_query_text_bytes", QUERY_TEXT_BYTES)):
        if (declared := getattr(described.limits, name)) > limit:
            raise BrokenError(f"limits.{name} is {declared}, above the contract's {limit}")
    keys = [option.key for option in described.options]
    for option in described.options:
        if not _KEY.fullmatch(option.key):
            raise BrokenError(f"option key {option.key!r}: expected lower case letters, digits and underscores")
        if not option.description or keys.count(option.key) > 1:
            raise BrokenError(f"option {option.key} has no description, or is declared twice")


@check("dsc.stable", "DSC-1", "DSC-7")
def stable(backend: BackendUnderTest) -> None:
    """Describe needs no Ingest and answers the same every time, to every caller."""
    before = _describe(backend)
    backend.namespace().add(backend.fact())
    after = _describe(backend)
    if changed := _changed(backend.described, before, after):
        raise BrokenError(f"Describe changed: {changed}")
    for minor in (0, _LATER_MINOR):  # a caller of 1.0 sends none
        if changed := _changed(before, _describe(backend, minor)):
            raise BrokenError(f"Describe differs by caller_minor_version ({minor}, {MINOR_VERSION}): {changed}")


def _changed(*described: pb.DescribeResponse) -> str:
    """Return the fields in which descriptions differ."""
    fields = pb.DescribeResponse.DESCRIPTOR.fields
    return ", ".join(field.name for field in fields if len({str(getattr(each, field.name)) for each in described}) > 1)


@check("dsc.kept-facts", "DSC-6", applies=requirements.extraction)
def kept_facts(backend: BackendUnderTest) -> None:
    """A backend that extracts says which facts it keeps."""
    described = _describe(backend)
    if not described.kept_facts:
        raise BrokenError("RETENTION_EXTRACTED is declared, but kept_facts is empty")
    for fact in described.kept_facts:
        if fact.statement.count("{value}") != 1 or "{value}" in fact.question or not fact.question:
            raise BrokenError(f"kept fact {fact.statement!r}: expected {{value}} once, and none in the question")
    backend.namespace().add(kept := backend.fact())
    ns = backend.namespaces[-1]
    ns.expect_visible(kept)
