"""Judges D1: which single option does an answer choose, by its letter or by its text?

An answer is read as open answers are: text before a final answer or a correction is void, and a denied option is not
chosen. A letter decides over texts, so that an explanation may say what the other options are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset.gold import ClozeGold
from memarena_dataset.values import OrderValue, SetValue, Value
from memarena_dataset.values.match import occurrences
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.terms import Span, is_everyday, merged, term_spans
from memarena_dataset.values.words import content_words, stem, tidy, words

from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.kinds.cloze_conclusion import Mention, concluded, remaining
from memarena.judging.kinds.kind import Kind
from memarena.judging.too_much import beginning_and_end
from memarena.judging.typed_value.segments import phrases
from memarena.log.records import EvidenceSession, Question

_NOISE = re.compile(r"```(?:json)?|[*_`\"{}]|(?<!\w)'|'(?!\w)")
"""Marks that are removed from an answer: fences, emphasis, quotation marks, braces."""
_FIRST_FIELD = re.compile(r"^\s*(?:the )?(?:answer|option|choice|letter)\s*:\s*", re.IGNORECASE)
"""A label before the answer: ``Answer:``."""
_PIECE = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|\n")
_LETTER = r"(?<![\w'’.-])(?P<l>{})(?![\w'’]|-\w|\.\w)"
"""A letter by itself, not that of a word, an abbreviation or ``A-4``; ``{}`` is the class of letters."""
_BEFORE_CHOICE = re.compile(
    r"(?:\b(?:option|choice|letter|answer|pick|choose|select|is|it's|that's|isn't|wasn't|not|be|say|guess|"
    r"with|for|by|or|and|nor|"
    r"either|neither|both|than|of|hence|so|therefore|thus|matches|means|to|as|was|although|but|though|exclude|"
    r"excludes)\s*:?"
    r"|[/,;:(\[]|=>|->|→)\s*[(\[]?$",
    re.IGNORECASE,
)
"""Words and signs before a capital that is meant as an option's letter: ``option``, ``it's``, ``(``."""
_AFTER_CHOICE = re.compile(
    r"\s*(?:$|[).,:;\]/!?\n]|[-–—]\s|—|=|(?:is|was|would|should|could|can|must|isn't|seems|fits|looks|it is|"
    r"because|since|or|and|"
    r"matches|completes|has to|here|again)\b)"
)
"""Signs and words after a capital ``A`` or ``I`` that is an option's letter and no word: ``)``, ``is``, ``because``."""
_SMALL_LETTER = re.compile(
    r"^\W*(?P<l>[a-z])\W*$|^\W*\(?(?P<m>[a-z])\s*[).:]\s|[(\[](?P<n>[a-z])[)\]]"
    r"|\b(?:option|letter|choice|answer is|choose|pick)\s+\(?(?P<o>[a-z])(?=\W*$|[).,;])",
    re.IGNORECASE,
)
"""Small letters that are an option's letter: alone, at the beginning of a line, in brackets, after ``option``."""
_STOPS = re.compile(
    r"[.!?;\n]|\b(?:but|it's|it is|that's|so|yours is|the right|the correct|the answer)\b", re.IGNORECASE
)
"""The end of the stretch in which a negation still denies an option."""
_NOT_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|except|without|excluding|rather than|instead of|unlike|"
    r"rul(?:es?|ed|ing) out|exclud(?:es?|ed|ing)|consider(?:ed|ing)|tempted by|hesitated over)|n't)"
    r"(?:\W+(?:option|options|letter|the|a|an|be|either|even|on|in|at|for|fit|possible|answer|right|just))*\W*$",
    re.IGNORECASE,
)
"""A negation right before an option: ``not the``, ``rather than option``."""
_BEFORE_LIST = re.compile(
    r"(?:\b(?:not|neither|except|nor|rul(?:es?|ed|ing) out|exclud(?:es?|ed|ing))|n't)\b", re.IGNORECASE
)
"""A negation before a list of options: ``not A, B or C``."""
_NOT_AFTER = re.compile(
    r"^\W*(?:\([^)]*\)\W*)?(?:\w+ \w+,? (?:but|yet) )?(?:is|are|was|were|looks|seems|"
    r"would be|ca|can|could|does|did)"
    r"(?:n't| not| never| wrong| incorrect| out\b| too | far too | somebody| someone| ruled out| excluded| false)",
    re.IGNORECASE,
)
"""Words right after an option that deny it: ``isn't``, ``was ruled out``."""
_OFFERED = re.compile(
    r"\b(?:or|(?:could|might|may)(?: just)?(?: as well| also)? be)\s*(?:the |a |an )?$", re.IGNORECASE
)
"""Words that offer the next option too: ``or``, ``could be``."""
_ALSO = re.compile(r"\b(?:both|either|also|equally|as well|so (?:could|would|might)|just as)\b", re.IGNORECASE)
"""Words that say that several options hold: ``both``, ``as well``."""
_EXPLAINED = re.compile(
    r"^[^.;,\n]{0,24}?\b(?:is|was|are|were|belongs?|applies|goes|refers|would be)\b[^.;\n]*?"
    r"(?:\b[A-Z]\w+'s\b|\bother|\bsome(?:one|body) else|\b(?:for|of|to|what|where|when|how much) [A-Z]\w+)"
)
"""Words after an option that is stated as another person's."""
_WENT_TO = re.compile(
    r"\W*(?:[A-E]\W+)?(?:(?:went|goes|belongs|fell) to|(?:was |is )?(?:for|by)) (?P<who>[A-Z][a-z]+)(?!\w)(?!'s)"
)
"""An option that a named person has: ``A went to Ada``."""
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_CLAUSE_ENDS = re.compile(r"[.;,!?\n(]|\b(?:and|but|while|whereas|so|therefore|because|since)\b")
_FOLLOWS = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|consequently|leaves|leaving)|→|=>)\W*(?:[A-Za-z']+[^\w,.;]+){0,9}$"
)
"""Words that make the next option the outcome of the text before it: ``so``, ``→``."""
_PERSON_BEFORE = re.compile(
    r"\b[A-Z][a-z]+(?:'s)?(?: (?:own|one|is|was|paid|has|had|goes|went|pays|chose|picked|uses|keeps|plays|at|on"
    r"|for)){1,3}\s*(?:the |to )?[(]?$"
)
"""A person's name with a few words right before an option: ``Ada paid (``."""
_PERSON = re.compile(r"\b(?:[Yy]ou|[Yy]ours?|[A-Z][a-z]+(?:'s)?)\b")
"""A word that may be a person: ``you``, or a capitalised word."""
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine)\b")
_CLAUSE_STARTS = re.compile(r"[.;,!?\n]|\b(?:and|but|while|whereas)\b")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[;\n]")
_SAME_LIST = re.compile(r"^(?:\W|[A-Za-z](?!\w)|\b(?:be|or|and|nor|option|options)\b)*$")
"""Only letters of options and list words between two options."""
_CLAUSE_END_AFTER = re.compile(r"\s*(?:$|[.,;!?)\]\n])")
_REACH = 400
"""Characters before an option that may deny or mark it."""
_MOST_MENTIONS = 60
"""Mentions of options above which an answer does not explain a choice."""
_GAP = re.compile(r"^[\s).:\]\-–—,=(]*(?:(?:the|a|an|is|i\.e|that is|namely|on|at|in)\b\s*)*$", re.IGNORECASE)
"""Only signs and small words between an option's letter and a text that belongs to it."""


@dataclass(frozen=True)
class Choice:
    """The option chosen as its letter, or None with the reason."""

    letter: str | None
    why: str


def chosen_option(answer: str, options: Sequence[str], values: Sequence[Value] = (), question: str = "") -> Choice:
    """Return the option that an answer chooses: by a letter that it does not deny, else by the text of one option.

    Two letters are not a choice, and neither is a letter directly followed by the text of another option.

    Args:
        answer: as parsed.
        options: their texts, in order.
        values: the options as typed values, in the same order; empty if the data set has none.
        question: says who is asked about.
    """
    text = _final_text(_NOISE.sub(" ", tidy(beginning_and_end(answer))).strip())
    if not text:
        return Choice(None, "empty")
    last = chr(ord("A") + len(options) - 1)
    # Texts before letters: "Vitamin D" is an option's text and not the letter D.
    texts = _text_mentions(text, options, values)
    letters = _letter_mentions(_blank_mentions(text, texts), len(options))
    texts = texts if texts or letters else _mentions_by_rare_word(text, options, question)
    texts = _drop_explained(text, texts, question)
    letters = _drop_explained(text, letters, question)
    # In this order: an option that remains, a letter, the conclusion of the text, the text of a single option.
    if (last_letter := remaining(text, (*letters, *texts), len(options))) is not None:
        return Choice(last_letter, "all others ruled out")
    chosen = {m.letter for m in letters if not m.denied}
    by_text = {m.letter for m in texts if not m.denied}
    if not chosen:
        if (letter := concluded(text, texts) or _option_near_question_words(text, texts, question)) is not None:
            return Choice(letter, "option text, in the end")
        count = f"names {len(by_text)} options" if by_text else "names no option"
        return Choice(by_text.pop(), "option text") if len(by_text) == 1 else Choice(None, count)
    if len(chosen) > 1 and (letter := concluded(text, [m for m in (*letters, *texts) if m.letter <= last])) is not None:
        return Choice(letter, "letter, in the end")
    letter = min(chosen)
    fault = ""
    if len(chosen) > 1:
        fault = f"chooses {len(chosen)} options"
    elif ord(letter) - ord("A") >= len(options):
        fault = f"letter {letter} is no option"
    elif _disagrees(text, letter, letters, texts):
        fault = f"letter {letter} and another option's text"
    return Choice(None, fault) if fault else Choice(letter, "letter and text" if letter in by_text else "letter")


class Cloze(Kind[ClozeGold]):
    """A question with options, of which one is right."""

    def judge(
        self, question: Question, gold: ClozeGold, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Judge an answer right if the one option that it chooses is the gold's."""
        choice = chosen_option(answer, gold.options, gold.option_values, question.question_text)
        choice_words = f"chooses {choice.letter} ({choice.why})" if choice.letter else choice.why
        if choice.letter == gold.answer_letter:
            return right("exact_match", Code.RIGHT_OPTION, words=choice_words)
        return wrong("exact_match", Code.NOT_THE_RIGHT_OPTION, words=choice_words, value=gold.answer_letter)

    def key(self, gold: ClozeGold) -> str:
        """Return letter and text of the right option."""
        return gold.described

    def control(self, gold: ClozeGold) -> str:
        """Return letter and text of the right option."""
        return gold.described

    def constant(self, gold: ClozeGold) -> str:
        """Return the right letter."""
        return gold.answer_letter


def _final_text(text: str) -> str:
    """Return the text after the last final answer or correction; all of it if there is neither."""
    pieces = list(_PIECE.finditer(text))
    joined, starts = "", []
    for piece in pieces:
        starts.append(len(joined))
        joined += piece.group().lower() + " "
    for section in ("final", "correction"):
        for match in phrases(section).finditer(joined):
            pieces_after = [p for p, start in zip(pieces, starts, strict=True) if start >= match.end()]
            if pieces_after and any(p.group().isalnum() for p in pieces_after):
                text = text[pieces_after[0].start() :] if match.start() or section == "final" else text
    return _FIRST_FIELD.sub("", text)


def _text_mentions(text: str, options: Sequence[str], values: Sequence[Value]) -> list[Mention]:
    """Return mentions of options by their value or words; a mention inside another option's longer one is left out."""
    read = read_text(text)
    spans_of: list[tuple[str, Span]] = []
    for index, option in enumerate(options):
        letter = chr(ord("A") + index)
        value = values[index] if len(values) == len(options) else None
        spans = term_spans((option,), read.text)
        if value is not None and not isinstance(value, SetValue | OrderValue):
            spans += occurrences(value, read)
        spans_of += [(letter, span) for span in merged(spans)]
    apart = [(n, s) for n, s in spans_of if not any(_hides(other, s) for _, other in spans_of)]
    if read.text != text:
        # Numbers in words have become digits, so that these are offsets in another text.
        apart = [(n, s) for n, s in ((n, _span_in_original(read.text, text, s)) for n, s in apart)]
    return [Mention(n, s, _is_denied(text, s)) for n, s in apart]


def _mentions_by_rare_word(text: str, options: Sequence[str], question: str) -> list[Mention]:
    """Return mentions of options by a rare word that neither another option nor the question has."""
    stems = [{stem(w) for w in words(option) if w.isalpha()} for option in options]
    mentions = []
    for match in re.finditer(r"[^\W\d_]{4,}", text):
        base = stem(match.group().lower())
        holders = [n for n, option_stems in enumerate(stems) if base in option_stems]
        if len(holders) == 1 and not is_everyday(match.group()) and base not in map(stem, words(question)):
            span = Span(*match.span())
            mentions.append(Mention(chr(ord("A") + holders[0]), span, _is_denied(text, span)))
    return mentions


def _span_in_original(read: str, text: str, span: Span) -> Span:
    shift = len(text) - len(read)
    start = span.start if text[: span.start] == read[: span.start] else span.start + shift
    return Span(max(0, start), min(len(text), span.end + shift))


def _hides(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end and outer.end - outer.start > inner.end - inner.start


def _blank_mentions(text: str, texts: Sequence[Mention]) -> str:
    """Return the text with option texts blanked out, so that ``Vitamin D`` is not the letter D."""
    characters = list(text)
    for mention in texts:
        span = mention.span
        article = re.search(r"\b(?:a|an|the)\s+$", text[: span.start], re.IGNORECASE)
        first = article.start() if article else span.start
        if span.end - span.start > 1:
            characters[first : span.end] = "~" * (span.end - first)
    return "".join(characters)


def _letter_mentions(text: str, count: int) -> list[Mention]:
    """Return letters that mean options. ``A`` and ``I`` are words unless their context shows otherwise."""
    letters: dict[int, str] = {}
    for match in re.finditer(_LETTER.format("[A-Z]"), text):
        letter, position = match["l"], match.start("l")
        before = text[max(0, position - _REACH) : position]
        marked = _BEFORE_CHOICE.search(before) or not before.strip(" ([\n") or before.rstrip()[-1:] in ".!?;:"
        if letter == "A" and before.strip(" ([\n") and before.rstrip()[-1:] not in '.!?:"':
            # A capital A in the middle of a sentence is not an article.
            letters[position] = letter
        elif letter in "AI":
            if marked and _AFTER_CHOICE.match(text, position + 1):
                letters[position] = letter
        elif ord(letter) - ord("A") < count or marked:
            letters[position] = letter
    for match in _SMALL_LETTER.finditer(text):
        name = match.lastgroup or "l"
        letters.setdefault(match.start(name), match[name].upper())
    return [
        Mention(letter, Span(position, position + 1), _is_denied(text, Span(position, position + 1)))
        for position, letter in sorted(letters.items())
    ]


def _is_denied(text: str, span: Span) -> bool:
    """Whether an option is denied, alone or in a list (``not A, B or C``)."""
    before = text[max(0, span.start - _REACH) : span.start]
    stops = [m.end() for m in _STOPS.finditer(before)]
    clause = before[stops[-1] :] if stops else before
    if re.search(r"\bn(?:ot|either)\b|n't\b", before[-12:]) and not stops:
        clause = before
    if _NOT_BEFORE.search(before):
        return True
    for negation in _BEFORE_LIST.finditer(clause):
        if _SAME_LIST.match(clause[negation.end() :].replace("~", "")):
            return True
    return bool(_NOT_AFTER.match(text[span.end :]))


def _drop_explained(text: str, mentions: Sequence[Mention], question: str) -> list[Mention]:
    """Return the mentions without those of another person's option, if that leaves a single option."""
    affirmed = [m for m in mentions if not m.denied]
    if len({m.letter for m in affirmed}) < 2 or len(affirmed) > _MOST_MENTIONS:
        return list(mentions)
    of_asked_person = [m for m in affirmed if _is_of_asked_person(text, m.span.start, question) is True]
    if len({m.letter for m in of_asked_person}) == 1:
        return of_asked_person
    unexplained = [
        m
        for m in affirmed
        if not _is_explained(text, m, affirmed, question)
        and _is_of_asked_person(text, m.span.start, question) is not False
    ]
    return unexplained if len({m.letter for m in unexplained}) == 1 else list(mentions)


def _option_near_question_words(text: str, mentions: Sequence[Mention], question: str) -> str | None:
    """Return the only option whose clause has a word of the question: ``for the diary I use A``; else None."""
    question_words = set(content_words(question.partition("\n")[0]))
    affirmed = [m for m in mentions if not m.denied]
    if len({m.letter for m in affirmed}) < 2:
        return None
    letters = set()
    for mention in affirmed:
        start = max((m.end() for m in _CLAUSE_STARTS.finditer(text, 0, mention.span.start)), default=0)
        end = next((m.start() for m in _CLAUSE_STARTS.finditer(text, mention.span.end)), len(text))
        clause = text[start : mention.span.start] + " " + text[mention.span.end : end]
        if question_words & set(content_words(clause)):
            letters.add(mention.letter)
    return letters.pop() if len(letters) == 1 else None


def _is_explained(text: str, mention: Mention, affirmed: Sequence[Mention], question: str) -> bool:
    """Whether an option is stated as another person's, alone or in a list (``A, B and D belong to other people``)."""
    whose = _WENT_TO.match(text, mention.span.end)
    if (
        (whose is not None and bool(question) and whose["who"] not in question)
        or text[mention.span.end :].lstrip(").~ ").startswith("?")
        or _EXPLAINED.match(text[mention.span.end :])
        or _goes_with_another(text, mention, affirmed, question)
        or _PERSON_BEFORE.search(text[: mention.span.start])
    ):
        return True
    later = [m for m in affirmed if m.span.start > mention.span.end]
    return any(
        _SAME_LIST.match(between := text[mention.span.end : m.span.start])
        and not _SENTENCE_END.search(between)
        and _EXPLAINED.match(text[m.span.end :])
        for m in later
    )


def _goes_with_another(text: str, mention: Mention, affirmed: Sequence[Mention], question: str) -> bool:
    """Whether the rest of an option's clause names a person who is not asked about: ``A teaches Sven``."""
    following = text[mention.span.end :]
    stop = _CLAUSE_ENDS.search(following)
    end = mention.span.end + (stop.start() if stop else len(following))
    return bool(question) and any(
        match.group() not in question
        and not is_everyday(match.group())
        and not any(m.span.start <= match.start() < m.span.end for m in affirmed)
        for match in _NAME.finditer(text, mention.span.end, end)
    )


def _is_of_asked_person(text: str, at: int, question: str) -> bool | None:
    """Whether the last person named before an option is asked about; None if no person is named or known."""
    clause = re.split(r"[.;!?\n]|, (?:while|whereas|but|and)\b", text[:at])[-1]
    people = [w for w in _PERSON.findall(clause) if not is_everyday(w.removesuffix("'s").lower())]
    if not people or not question:
        return None
    last = people[-1].removesuffix("'s")
    if last.lower() in ("you", "your", "yours"):
        return _FIRST_PERSON.search(question) is not None or None
    return last in question


def _sentence_start(text: str, at: int) -> int:
    """Return the index at which the sentence around a position begins."""
    return max((m.end() for m in _SENTENCE_END.finditer(text, 0, at)), default=0)


def _disagrees(text: str, letter: str, letters: Sequence[Mention], texts: Sequence[Mention]) -> bool:
    """Whether another option's text follows the letter directly, or is offered with it."""
    others = [m for m in texts if m.letter != letter and not m.denied]
    if any(_OFFERED.search(text[: m.span.start]) for m in others):
        return True
    if any(m.letter == letter for m in texts if not m.denied):
        sentences = {_sentence_start(text, m.span.start) for m in letters if m.letter == letter and not m.denied}
        neighbours = (m for m in others if _sentence_start(text, m.span.start) in sentences)
        return any(_ALSO.search(text[_sentence_start(text, m.span.start) :]) for m in neighbours)
    letter_mentions = [m for m in letters if m.letter == letter and not m.denied]
    sentences = {_sentence_start(text, m.span.start) for m in letter_mentions}
    several = len({m.letter for m in others}) > 1 and all(m.span < letter_mentions[-1].span for m in others)
    follows = several and _FOLLOWS.search(text[: letter_mentions[-1].span.start]) is not None
    if not follows and any(_sentence_start(text, m.span.start) in sentences for m in others):
        return True
    ends = [m.span.end for m in letters if m.letter == letter and not m.denied]
    return any(
        end <= m.span.start and _GAP.match(text[end : m.span.start]) and _CLAUSE_END_AFTER.match(text, m.span.end)
        for end in ends
        for m in others
    )
