"""Tests the life audit: which sessions an item's text quotes, and whether it holds text that was never ingested.

Scores count what an item's text really holds, not the sources that a backend claims; text from elsewhere would be an
answer that the memory never heard.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from memarena.execution.audit.corpus_index import CorpusIndex
from memarena.execution.audit.life_audit import NEVER_INGESTED, LifeAudit
from memarena.execution.audit.life_index import LifeIndex, LifeText
from memarena.log.records import RetrievedItem

KETTLE = "The copper kettle from Aunt Brigid leaks at the spout, so I took it to the tinsmith on Harbour Street."
FERRY = "We crossed by the late ferry and the engineer let my nephew blow the horn twice before we docked."
LATER = "The tinsmith rang: the spout is soldered, and he wants eleven pounds before the market closes on Saturday."
THANKS = "Thank you so much, dear."
MEETING = "The parish meeting about the bridge is on Monday at the Old Mill, bring your own chair and a torch."
MOVED = "The parish meeting about the bridge is on Thursday at the Corn Hall, bring your own chair and a torch."
FOREIGN = "My cardiologist moved the stress test to the ninth and told me to leave the beta blocker out that morning."
LONG = " ".join(f"Chapter {n} tells how the {n}th keeper painted his boat number {n * 7}." for n in range(40))
BREAD = "I bake the rye bread every other Friday now, and the neighbours take two"
OTHERS = [
    f"{BREAD} loaves of that size keep for a month in the cellar under the chapel.",
    f"{BREAD} Nora Lund has moved to the lighthouse with her three geese.",
]
"""Turns of other histories that begin like a turn of this history; the rest occurs elsewhere in it, or not at all."""
LIFE = [
    LifeText("t1", "a", 0, KETTLE),
    LifeText("t2", "a", 0, THANKS),
    LifeText("t3", "b", 0, FERRY),
    LifeText("t4", "b", 0, THANKS),
    LifeText("t5", "c", 1, MEETING),
    LifeText("t6", "d", 1, MOVED),
    LifeText("t7", "e", 1, LONG),
    LifeText("t8", "f", 3, LATER),
    LifeText("t9", "g", 0, f"{BREAD}."),
    LifeText("t10", "g", 0, "Loaves of that size keep for a week when they are wrapped in linen."),
    LifeText("v1", "", 0, "Brigid's birthday lunch takes up the whole of the second Sunday."),
]
OF_OTHERS = [LifeText(f"x{n}", "x", 0, text) for n, text in enumerate([FOREIGN, *OTHERS], 1)]
AUDIT = LifeAudit(LifeIndex(LIFE), CorpusIndex([*LIFE, *OF_OTHERS]))


@pytest.mark.parametrize(
    ("text", "source_ids", "sessions", "share"),
    [
        (KETTLE, [], {"a"}, 1.0),
        (KETTLE.upper().replace(",", " --"), [], {"a"}, 1.0),
        ("2025-03-01 Ada: " + KETTLE.replace("leaks", "drips"), [], {"a"}, None),
        (MEETING, [], {"c"}, None),
        (MEETING, ["c", "d"], {"c"}, None),
        (f"{KETTLE}\n{FERRY}", ["a", "b", "e"], {"a", "b"}, 1.0),
        (LONG[400:700], [], {"e"}, None),
        (THANKS, [], set(), 1.0),
        (THANKS, ["b"], {"b"}, 1.0),
        (THANKS, ["b", "a"], {"b"}, 1.0),
        ("Ada's kettle drips and is being mended.", ["a"], set(), 0.0),
        (LATER, ["f"], set(), None),
        ("", ["a"], set(), 0.0),
    ],
    ids=[
        "as said", "in capitals", "nearly", "its twin has another value", "a twin that is named",
        "of two sessions", "a passage", "words of several sessions, none named", "one of them named",
        "both named, once said", "rewritten", "not ingested yet", "empty",
    ],
)  # fmt: skip
def test_an_item_holds_the_sessions_that_its_text_supports(
    text: str, source_ids: Sequence[str], sessions: set[str], share: float | None
) -> None:
    (item,) = AUDIT.items([RetrievedItem(text=text, score=1.0, session_ids=tuple(source_ids))], day=2)
    assert item.held is not None
    assert set(item.held.session_ids) == sessions
    assert share is None or item.held.verbatim_share == share


@pytest.mark.parametrize(
    ("text", "question", "day", "what"),
    [
        (FOREIGN, "", 5, "turn x1 of session x"),
        (f"note: {FOREIGN.lower()[3:]}", "", 5, "turn x1 of session x"),
        (LATER, "", 3, None),
        (LATER, "", 2, "turn t8 of session f"),
        (FOREIGN, f"Did anybody say this: {FOREIGN}", 5, None),
        (" ".join(FOREIGN.split()[:9]), "", 5, None),
        (f"{KETTLE} {LONG}", "", 1, None),
        (f"Ada: {BREAD}.\nLoaves of that size keep for a week", "", 1, None),
        (f"Ada: {BREAD}.\nNora Lund: Really?", "", 1, None),
        (OTHERS[0], "", 5, "turn x2 of session x"),
        (OTHERS[1], "", 5, "turn x3 of session x"),
    ],
    ids=[
        "another life", "without its beginning", "that day", "a later day", "the question", "too short", "its own",
        "two of its own", "its own before a name", "begins as two of its own", "begins as its own",
    ],
)  # fmt: skip
def test_text_that_was_never_ingested_is_reported_with_its_turn(
    text: str, question: str, day: int, what: str | None
) -> None:
    message = AUDIT.never_ingested([KETTLE, text], question, day)
    assert message.startswith(f"{NEVER_INGESTED}: {what}: “") if what else message == ""
