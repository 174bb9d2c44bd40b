"""IDN: a namespace is one life, and ids are opaque bytes."""

from __future__ import annotations

import secrets
import string

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.checks.search import expect_unchanged, scored
from memarena.conformance.contract_limits import ID_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import mentions, quoted


@check("idn.read-names", "IDN-1", "IDN-2", "IDN-3")
def read_names(backend: BackendUnderTest) -> None:
    """A name is neither a number nor a path nor encoded, and no sign of it is replaced: it is its bytes."""
    number, stem = secrets.randbelow(10**9) + 10**9, backend.new_id()
    whole = f"{backend.new_id()}-".ljust(ID_BYTES, "x")
    signs = ("", *(string.punctuation if backend.keeps_words else "/_"))  # where facts are extracted a day takes long
    groups = {
        "although their names have little in common": (backend.new_id(), f"other-{backend.new_id()}"),
        "which are one where a name is read as a number": (f"{number}", f"00{number}"),
        "which are one where a name is read as a path": (f"{stem}/b", f"{stem}/./b", f"{stem}//b", f"{stem}/c/../b"),
        "which are one where letter case is folded": (f"{stem}e", f"{stem}E"),
        "which are one where a name is decoded like a URL": (f"{stem}A", f"{stem}%41"),
        "which are one where a name is cut": (whole, *(f"{whole[:at]}y{whole[at + 1 :]}" for at in (64, 100, 127))),
        "which are one where a sign is replaced or left out": [f"{stem}{sign}d" for sign in signs],
    }
    for how, names in groups.items():
        ingested = [(backend.namespace(name), backend.fact()) for name in names]
        # A later day each, so that where two are one the second is ingested and shows the first.
        for day, (ns, fact) in enumerate(ingested):
            ns.add(fact, day=day)
        every = " ".join(fact.question for _, fact in ingested) if backend.keeps_words else ""
        for ns, fact in reversed(ingested):
            ns.expect_visible(fact)
            items = ns.search(every or fact.question).items
            for other, foreign in ingested:
                if other is not ns and mentions(items, foreign):
                    what = f"{quoted(foreign)} was ingested in {other.namespace} and is returned in {ns.namespace}"
                    raise BrokenError(f"{what}, {how}")


@check("idn.scores", "IDN-1", "SRC-7", applies=requirements.stable_search)
def scores(backend: BackendUnderTest) -> None:
    """What other namespaces hold changes neither items nor scores."""
    ns, question, again = scored(backend)
    expect_unchanged(ns, question, backend.namespace(), again, "an Ingest into another namespace changes")
