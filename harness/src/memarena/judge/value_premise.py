"""Does an answer affirm what a question only supposes? Right answers to counterfactuals put the premise right."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena.judge.value_stands import WEEKDAY_AHEAD, affirms_question, refused_place
from memarena.text.reading import ReadText
from memarena.text.stating import Place, ScalarValue, places
from memarena.text.words import words

_CORRECTS = re.compile(
    r"n't\b|\b(?:not|cannot|no|never|nobody|nowhere|none|stop you|off|yet|impression|misunderstanding|but|"
    r"actually|rather|instead|incorrect|wrong|wrongly|mistake[ns]?|false(?:ly)?|contrary|however|though|"
    r"although|whereas|while|really|correct(?:ed|ing|ion|ions)?|replac(?:e[sd]?|ing)|chang(?:e|ed|ing)|fix(?:ed|ing)?|"
    r"strike|drop|erase|cross|remove|delete|discard|scrap|forget|ignore|disregard|amend(?:ed|ing|s)?|edit(?:ed)?|"
    r"revise[sd]?|update[sd]?|adjust(?:ed)?|rectif\w+|disagree\w*|disput\w+|reject\w*|deny|denie[sd]|"
    r"refut\w+|turns? out|swap(?:ped)?|confus(?:e|ed|ing|ion)|mix(?:ed|ing)?|for granted|ought to|should be|"
    r"premise|misremember\w*|misread\w*|"
    r"assum(?:e[sd]?|ing|ptions?)|contradict(?:s|ed|ion)?|errors?|untrue|inaccurate|in (?:fact|truth|reality)|"
    r"in place of|place of|believes?|rests on|takes?|treats?|supposes?|supposed|as a fact|astray|rejected|oops|whoops|"
    r"(?:you|question|it|user) (?:say|says|said|ask|asks|asked|put|puts|wrote|write|writes|mention|mentions|mentioned|"
    r"have|has|had|refer|refers|entered|typed|claim|claims|think|thinks|speak|spoke)|you(?:'ve| have) got|asked about|"
    r"(?:your|the) question|where you|user)\b|[\u2192\u274c\u2705\u2717\u2713\u2718\u2714]|~~|->|=>"
)
_GIVEN = re.compile(
    r"\b(?:confirm|confirms|confirmed|confirming|supports?|since it was|because it was|it (?:is|was) indeed|"
    r"right about|correct about)\W+(?:that |it was |it is |the |a |an |with |on )*[\"'*_]*$"
)
_CALLED_RIGHT = re.compile(
    r"^[\"'*_]*\W{0,3}(?:is|was|are|were|seems|looks|remains)\s+(?:indeed |quite |exactly |in fact |actually |"
    r"still |also )*"
    r"(?:the )?(?:right|correct|accurate|true|exactly|fine|valid|real|it\b|what (?:the|your|was|i|they|he|she))"
)


_LABELLED_A_CLAIM = re.compile(
    r"(?:^|[\n;.,|*_-]\s*)[\"'*_]*(?:the |your )?"
    r"(?:claim(?:ed)?|premise|was|old|before|from|wrong|incorrect|false|original(?:ly)?|"
    r"assum(?:ed|ption)|suppos(?:ed|ition)|question(?: says)?|(?:as )?asked|"
    r"you (?:said|wrote|noted|claimed|assumed))[\"'*_]*\s?[:=][\"'*_\s]*$",
    re.IGNORECASE,
)
"""``Claimed: X``: what a field of this name holds is the question's word, not the answer's."""


def affirmed(answer: ReadText, value: ScalarValue, required: Sequence[ScalarValue]) -> bool:
    """Whether the barred value is said without being put right, or is called right."""
    longer = [(m.start, m.end) for m in answer.of_kind("date")]
    open_places = [
        p
        for p in places(value, answer)
        # `January` is not said by `January 2`, the day of a conversation.
        if not any(start <= p.start and p.end < end for start, end in longer)
        and not refused_place(answer, p)
        and not _LABELLED_A_CLAIM.search(WEEKDAY_AHEAD.sub("", answer.text[: p.start]))
    ]
    if not open_places:
        return False
    if any(_called_right(answer, place) for place in open_places) or affirms_question(answer):
        return True
    gold = [p for v in required for p in places(v, answer)]
    return any(not _put_right(answer, place, gold) for place in open_places)


def _called_right(answer: ReadText, place: Place) -> bool:
    ahead = answer.text[max(0, place.start - 60) : place.start].lower()
    behind = answer.text[place.end : place.end + 60].lower()
    given = _GIVEN.search(ahead)
    negated = given is not None and {"not", "never", "no", "nor", "nothing"} & set(words(ahead[: given.start()])[-3:])
    return (given is not None and not negated) or _CALLED_RIGHT.match(behind) is not None


def _put_right(answer: ReadText, place: Place, gold: Sequence[Place]) -> bool:
    """Whether a word of correction stands in its own clause or those around it, or between it and the gold."""
    clause = answer.clause_at(place.start)
    position = answer.clauses.index(clause) if clause in answer.clauses else 0
    around = answer.clauses[max(0, position - 2) : position + 3]
    low = min([around[0].start, *(p.start for p in gold)]) if around else 0
    high = max([around[-1].end, *(p.end for p in gold)]) if around else len(answer.text)
    return _CORRECTS.search(answer.text[low : high + 3].lower()) is not None
