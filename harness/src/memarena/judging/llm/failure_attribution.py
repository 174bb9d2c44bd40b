"""Decides whether an answer causes a judge's failures, or whether the judge fails by itself, by asking in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from memarena.judging.llm.judge import PROVOCABLE, TalkFailedError
from memarena.judging.llm.replies import Reply

TURNS = 4
"""How often a control and the answer are asked about in turn, one call each, after the answer's tries have failed.

A judge that fails at random, in a share p of its calls and whatever it is asked, hands an answer over only if every
control succeeds and every call for the answer fails: p(1-p), at most 1/4, in each turn. After t tries that comes to
p^t (p(1-p))^4: with the usual five tries to 0.03% of the answers at p = 0.65, to 0.0005% at p = 0.3 and never to more
than 0.04%; with a single try never to more than 0.3%. An answer that always causes a failure passes all turns, for
eight calls.
"""


async def reply_after_all(
    failure: TalkFailedError,
    again: Callable[[], Awaitable[Reply]],
    control_works: Callable[[TalkFailedError], Awaitable[bool]],
) -> Reply | None:
    """Return a reply on the answer if the judge gives one after all; None if the answer causes its failures.

    Args:
        failure: how the tries with the answer ended.
        again: asks about the answer, in one call that counts.
        control_works: whether one call about a control, a right answer, gives the reply that this failure lacks.

    Raises:
        TalkFailedError: the judge fails at controls too, or at the answer in a way that no answer can cause.
        BudgetSpentError, JudgeError: as :meth:`Talk.ask` does.
    """
    if failure.cause not in PROVOCABLE:
        raise failure
    for _ in range(TURNS):
        if not await control_works(failure):
            raise failure
        try:
            return await again()
        except TalkFailedError as another:
            if another.cause not in PROVOCABLE:
                raise
            failure = another
    return None
