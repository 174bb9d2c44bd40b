"""Collects the checks of the suite, which are in one file for each chapter of SPEC.md."""

from __future__ import annotations

from memarena.conformance.check import Check
from memarena.conformance.checks import (
    answer,
    describe,
    digest,
    errors,
    evidence,
    forget,
    general,
    health,
    identity,
    ingest,
    life,
    limits,
    models,
    reset,
    search,
    security,
    text,
    versions,
)

CHAPTERS = {
    "idn": (identity,),
    "txt": (text,),
    "dsc": (describe,),
    "ing": (ingest,),
    "dig": (digest,),
    "src": (search,),
    "ans": (answer,),
    "rst": (reset,),
    "fgt": (forget,),
    "evd": (evidence,),
    "lim": (limits,),
    "err": (errors,),
    "gen": (general,),
    "hlt": (health,),
    "sec": (security,),
    "ver": (versions,),
    "mod": (models,),
    "life": (life,),
}
"""Chapters of SPEC.md by the short name that begins the ids of their checks, in the order of a run."""


def all_checks() -> tuple[Check, ...]:
    """Return every check in the order of a run: first Ingest and digest first, checks of the whole run last."""
    modules = (module for chapter in CHAPTERS.values() for module in chapter)
    checks = [each for module in modules for each in vars(module).values() if isinstance(each, Check)]
    first, last = (health.first_ingest, digest.gate), (models.after_return, security.log, health.after_errors)
    return (*first, *(each for each in checks if each not in (*first, *last)), *last)
