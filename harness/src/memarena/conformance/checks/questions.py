"""SRC: a question is text for people, whatever a query language beneath makes of its characters."""

from __future__ import annotations

from functools import partial

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import mentions, seen

ODD = (
    '"',
    'What did she call "the boat',
    "'; DROP TABLE turns; --",
    "NOT this OR that AND (more",
    "NEAR(one two, 3)",
    "name:canoe^2~ +a -b *",
    "100% of a_b?",
    "a/b\\c [d] {e} <f> & $g @h #i | `j` !",
    "???",
    "…",
    "🙂",
    "\t\n ",
    "the",
    "?" * 500,
)
"""Questions that are operators, quotes, wild cards or nothing to look for in one query language or another."""


@check("src.any-question", "SRC-1", "TXT-2")
def any_question(backend: BackendUnderTest) -> None:
    """Quotes, operators and bare signs in a question are text like any other."""
    ns, fact = backend.namespace(), backend.fact()
    ns.add(fact)
    ns.expect_visible(fact)
    for text in ODD:
        ns.expect_ok(partial(backend.search, ns.question(text)), f"the question {text[:40]!r}")
    for mark in ('"', "'", "*", "(", ":", "-", "%"):
        question = f"{fact.question} {mark}"
        returned = ns.expect_ok(partial(backend.search, ns.question(question)), f"the question {question!r}").items
        if not mentions(returned, fact):
            raise BrokenError(f"the question {question!r} lacks what {fact.question!r} returns ({seen(returned)})")
