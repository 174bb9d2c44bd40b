"""Does an answer end by denying its value (``X is definitely not the answer``)?

Denial near a value mostly concerns another one, which is why a wording may outweigh it. Not so where the last mention
of the value is itself what is denied: whatever is said before that is taken back by it. Read off an answer's words
with signs for values (:mod:`memarena.judge.value_wording`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena.judge.value_wording import VALUE, sentences_of

_FIRMLY = (
    r"(?: (?:\w+ly|in fact|of course|for sure|in any way|by any means|just|simply|still|also|most|quite|even|at all|"
    r"indeed|always|ever|,))*"
)
_REALLY = r"(?: (?!only\b|merely\b|simply\b)(?:\w+ly|at all|even|in fact))*"
_END = r"(?= (?:[.,;:!?)\u2014-]|and|so|but|here|there|at all|anywhere|in|by|to|as|for|either|though)|$)"
_ENDS = re.compile(_END)
_THING = (
    r"(?:answers?|case|value|1|one|name|date|day|time|place|person|thing|amount|number|figure|fact|truth|reply|option|"
    r"solution|match|entry|result|response|word)"
)
_DENIAL = re.compile(
    rf"(?:the|an?|my|your|our|his|her|their)(?: (?!first|only|whole|last|latest|next)\w+)? {_THING}\b|"
    rf"(?:it|so|true|right|correct|accurate|valid|involved|meant)\b{_END}|"
    r"what (?!(?:you|your|the question|is in doubt)\b)|(?:who|where|when|how|among|part of|anything|something)\b|"
    rf"(?:said|say|mentioned|named|given|stated|told|supported|recorded|noted|written|discussed|confirmed|brought up|"
    rf"come up|came up|appear|occur|fit|hold|apply|match|happen)\b{_END}"
)
_DENIED_BEHIND = re.compile(
    rf"(?: [\")])?{_FIRMLY} (?:is|was|are|were|has|had|can|could|does|did|would|will|should|must){_FIRMLY}"
    rf"(?: (?:not|never){_REALLY}(?: (?:have|been|be))* (?:{_DENIAL.pattern})|"
    rf" (?:wrong|incorrect|false|untrue|mistaken|ruled out|out of the question)\b{_END})"
)
_SAYS = (
    r"(?:said|say|says|saying|mentioned|mentions?|named|names?|told|tells?|gave|gives?|claimed|claims?|stated|states?|"
    r"meant|chose|suggested|suggests?|supported|supports?|points?|pointed|spoke|talked|confirms?|confirmed|wrote|"
    r"recorded|brought|had|has|have|used)"
)
_LEADS = (
    r"(?: (?:you|me|us|to|about|of|up|that|it|is|was|anything|a|an|the|word|like|for|on|in|at|such|as|answer|name|and|"
    r"any|1|one|who|anybody|anyone|people)){0,6}"
)
_DENIED_AHEAD = re.compile(
    r"\b(?:(?:nobody|no (?:1|one)|none of \w+(?: \w+)?|nothing|"
    r"no (?!other|second|further|later|doubt|question|1\b|one\b)\w+)(?: (?:of|in|from|by|on)(?: \w+){1,3}?)?"
    rf"(?: (?!(?:other|else|but|except)\b)\w+)?{_FIRMLY} {_SAYS}|"
    r"(?:do|does|did|should|must|can|could|would|will|cannot) ?not(?: \w+)? (?:believe|trust|rely on|accept|repeat|"
    r"take|use|listen to|go with|answer with|put down)(?: (?:any|who|those|people)\w*(?: \w+){0,2} "
    rf"{_SAYS})?){_LEADS}\s*$|"
    rf"\b(?:is|was|are|were){_REALLY} not{_REALLY}\s*$"
)
_TURNED = re.compile(
    r"\b(?:not|no|never|nothing|nobody|nor|neither|none|without|if|unless|whether|doubts?|wrong to|claims?|"
    r"contradicts?)\b"
)
_ASKER = re.compile(r"\b(?:you|your|question)\b")


def denies_in_the_end(raw: Sequence[str]) -> bool:
    """Whether the last mention of a value is one that the answer denies.

    Args:
        raw: the answer's words with signs for values (:func:`memarena.judge.value_wording.raw_words`).
    """
    said = [sentence for sentence in sentences_of(raw) if VALUE in sentence]
    if not said:
        return False
    ahead, _, behind = " ".join(said[-1]).rpartition(VALUE)
    if _DENIED_BEHIND.match(behind) and not _TURNED.search(ahead):
        return not _ASKER.search(ahead)
    return _DENIED_AHEAD.search(ahead) is not None and _ENDS.match(behind) is not None
