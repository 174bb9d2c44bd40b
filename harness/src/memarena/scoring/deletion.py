"""Sums the deletion probes of a row: how many deleted turns Search or Answer still returned.

A probe asks the backend to forget a target after the last question of an ego, and searches for its turns before and
after. *Controls* are turns of other sessions, which must still be returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memarena.log.records import DeletionProbed
from memarena.scoring.figures import Deletion

_KINDS: tuple[Literal["session", "subject", "fact"], ...] = ("session", "subject", "fact")


def deletion(probes: Sequence[DeletionProbed]) -> tuple[Deletion, ...]:
    """Return one record of sums per kind of target, without kinds that were not probed."""
    sums = []
    for kind in _KINDS:
        of_kind = [probe for probe in probes if probe.target == kind]
        deleted = [probe for probe in of_kind if probe.code == "OK"]
        answers = [probe.answered_again for probe in deleted if probe.answered_again is not None]
        if of_kind:
            sums.append(
                Deletion(
                    target=kind,
                    forgotten=len(deleted),
                    failed=len(of_kind) - len(deleted),
                    found_before=sum(probe.found_before for probe in deleted),
                    found_again=sum(probe.found_again for probe in deleted),
                    answered_again=sum(answers) if answers else None,
                    controls=sum(probe.controls for probe in deleted),
                    controls_lost=sum(probe.controls_lost for probe in deleted),
                )
            )
    return tuple(sums)
