"""Does an answer provoke a judge's failures, or does the judge fail by itself? Told apart by asking in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from memarena.judging.llm.judge import PROVOCABLE, TalkFailedError
from memarena.judging.llm.replies import Reply

TURNS = 4
"""How often a control and the answer are asked in turn, one call each, after the answer's own tries have failed.

A judge that fails at random, in a share p of its calls and whatever it is asked, hands an answer over only if every
control succeeds and every call for the answer fails: p(1-p), at most 1/4, in each turn. After t tries that comes to
p^t (p(1-p))^4: with the usual five tries to 0.03% of the answers at p = 0.65, to 0.0005% at p = 0.3 and never to more
than 0.04%; with a single try never to more than 0.3%. An answer that always provokes a failure passes all turns, for
eight calls.
"""


async def reply_after_all(
    failure: TalkFailedError,
    again: Callable[[], Awaitable[Reply]],
    control_works: Callable[[TalkFailedError], Awaitable[bool]],
) -> Reply | None:
    """What a judge says of an answer after all; None if the answer provokes its failures.

    Args:
        failure: what the answer's tries ended with.
        again: asks about the answer, in one call that counts.
        control_works: whether one call about a control brings what this failure shows to be missing.

    Raises:
        TalkFailedError: the judge fails at controls too, or at the answer in a way that no answer brings about.
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
