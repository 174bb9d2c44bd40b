"""Why an answer is right or wrong: a code with its fields. The line that people read is made from them at the end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """What decided. The value is the code that files and reports carry."""

    STATES_VALUE = "states_value"
    NO_ANSWER = "no_answer"
    MISSING_VALUE = "missing_value"
    OTHER_PERSON = "other_person"
    OTHER_VERSION = "other_version"
    OTHER_MATTER = "other_matter"
    SWAPPED_SOURCES = "swapped_sources"
    DENIED = "denied"
    NOT_COMMITTED = "not_committed"
    OTHER_VALUE = "other_value"
    MISSING_MEMBER = "missing_member"
    EXTRA_MEMBER = "extra_member"
    MISSING_ITEM = "missing_item"
    OTHER_ORDER = "other_order"
    TOO_MUCH = "too_much"
    DECLINES = "declines"
    TOKEN_F1 = "token_f1"  # noqa: S105 (a measure, no secret)
    KEY_DATE = "key_date"
    MISSING_VERSION = "missing_version"
    AFFIRMS_PREMISE = "affirms_premise"


_TEXT = {
    ReasonCode.STATES_VALUE: "states {value}",
    ReasonCode.NO_ANSWER: "no answer",
    ReasonCode.MISSING_VALUE: "does not state {value}",
    ReasonCode.OTHER_PERSON: "gives {value} as another person's",
    ReasonCode.OTHER_VERSION: "gives {value} as the version that is not asked for",
    ReasonCode.OTHER_MATTER: "gives {value} in another matter",
    ReasonCode.SWAPPED_SOURCES: "gives {value} as the other source's version",
    ReasonCode.DENIED: "denies {value}",
    ReasonCode.NOT_COMMITTED: "names {value} without committing to it",
    ReasonCode.OTHER_VALUE: "gives {said!r} beside {value}",
    ReasonCode.MISSING_MEMBER: "set-F1 {score:.2f}: misses {value}",
    ReasonCode.EXTRA_MEMBER: "set-F1 {score:.2f}: adds {said}",
    ReasonCode.MISSING_ITEM: "leaves out {value}",
    ReasonCode.OTHER_ORDER: "tells another order than {value}",
    ReasonCode.TOO_MUCH: "says too much to be an answer: {said}",
    ReasonCode.DECLINES: "declines: {said!r}",
    ReasonCode.TOKEN_F1: "token-F1 {score:.2f}, {threshold:.2f} is enough",
    ReasonCode.KEY_DATE: "decided by the key date",
    ReasonCode.MISSING_VERSION: "says nothing of the {said} version",
    ReasonCode.AFFIRMS_PREMISE: "affirms the premise",
}


@dataclass(frozen=True)
class Reason:
    """A code with the fields that its text needs; the others are empty."""

    code: ReasonCode
    value: str = ""
    """The gold's value that it is about, in a few words."""
    said: str = ""
    """Words of the answer."""
    threshold: float = 0.0

    def text(self, score: float) -> str:
        """One line for people; ``score`` is the judgment's."""
        return _TEXT[self.code].format(value=self.value, said=self.said, score=score, threshold=self.threshold)
