"""D1: which one option does an answer choose? Exact match on letter or option text, one choice only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memarena.dataset.gold import ClozeGold
from memarena.text.lexicon import phrases
from memarena.text.words import squad_tokens, tidy, words

_NOISE = re.compile(
    r"```(?:json)?|[*_`\"'{}]|\b(?:answer|option|choice)\s*[\"']?\s*:\s*(?=[\"'({\[]*\w)", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[;\n]")
_NEGATED = re.compile(
    r"(?:\b(?:not|rather than|instead of|neither|nor|except|rules? out|excludes?)|n't)"
    r"\W*(?:option\W+|the\W+|an?\W+|\()*$",
    re.IGNORECASE,
)
_MARKED = (
    re.compile(r"(?:^|(?<=[\s(\[,;:/-]))[(\[]\s*(?P<l>[A-Za-z])\s*[)\]]"),
    re.compile(r"^\W*(?P<l>[A-Za-z])\s*(?:[).:\]]|-\s|\s-|—|,)"),
    re.compile(r"(?:^|(?<=[\s,;:/]))(?P<l>[A-Z])\s*[)\]:](?=\s|\w|$)"),
    re.compile(r"^\W*(?P<l>[A-Za-z])\W*$"),
    re.compile(
        r"\b(?:option|choice|letter|answer|pick|choose|select)\s+(?:is\s+|would be\s+|must be\s+)?\(?(?P<l>[A-Z])\b"
    ),
    re.compile(r"\b(?:option|choice|letter|answer)\s+(?:is\s+)?(?P<l>[a-z])(?=\W*$|[).,;])", re.IGNORECASE),
    re.compile(
        r"\b(?:is|it's|be|think|say|guess|with)\s+\(?(?P<l>[A-Z])(?=\W*$|[).,;:]|\s+(?:because|since|as|for)\b)"
    ),
)
"""Forms in which a letter is a choice beyond doubt. Small letters need one of them; capitals may also stand alone."""
_ALONE = re.compile(r"(?<![\w'’.-])(?P<l>[B-HJ-Z])(?![\w'’-]|\.\w)")


@dataclass(frozen=True)
class Choice:
    """The option chosen as its letter, or None with the reason."""

    letter: str | None
    why: str


def chosen_option(answer: str, options: Sequence[str]) -> Choice:
    """Which option an answer chooses.

    A letter counts in the usual forms (``B``, ``b)``, ``(B)``, ``Option B``, ``the answer is B``), a text if an
    option's words stand in the answer. Choices that are denied (``not B``) do not count. A letter and a text that
    disagree, two letters, or two texts are no choice; a text beside the letter's own counts only in the same sentence
    or behind a hedge, so that an explanation may mention another option.
    """
    text = _NOISE.sub(" ", tidy(answer)).strip()
    if not text:
        return Choice(None, "empty")
    mentions = _option_texts(text, options)
    bare = _blanked(text, mentions)
    letters = _letters(bare, len(options))
    texts = [(letter, start) for letter, start, end in mentions if not _negated(text, start)]
    if len(set(letters)) > 1:
        return Choice(None, f"chooses {len(set(letters))} options")
    if letters:
        return _with_letter(letters[0], texts, text, bare, options)
    named = {letter for letter, _ in texts}
    if len(named) == 1:
        return Choice(named.pop(), "option text")
    return Choice(None, f"names {len(named)} options" if named else "names no option")


def score_choice(gold: ClozeGold, answer: str) -> tuple[bool, str]:
    """Whether the answer chooses the right option, and why."""
    choice = chosen_option(answer, gold.options)
    if choice.letter is None:
        return False, choice.why
    verdict = choice.letter == gold.answer_letter
    return verdict, f"chooses {choice.letter} ({choice.why})" + ("" if verdict else f", right is {gold.answer_letter}")


def _with_letter(letter: str, texts: Sequence[tuple[str, int]], text: str, bare: str, options: Sequence[str]) -> Choice:
    if ord(letter) - ord("A") >= len(options):
        return Choice(None, f"letter {letter} is no option")
    named = {name for name, _ in texts}
    if named and letter not in named:
        return Choice(None, f"letter {letter} and option text disagree")
    for name, start in texts:
        if name != letter and _counts(text, start, _letter_position(bare, letter), [s for _, s in texts]):
            return Choice(None, f"letter {letter} and another option's text")
    return Choice(letter, "letter and text" if named else "letter")


def _counts(text: str, start: int, letter_at: int, texts: Sequence[int]) -> bool:
    """Whether another option's text is a choice beside the letter: in its sentence, or behind a hedge."""
    low, high = _sentence_of(text, letter_at)
    if high - low <= 4 and (opening := next((s for s in texts if not text[high:s].strip()), None)) is not None:
        high = _sentence_of(text, opening)[1]
    sentence = _sentence_of(text, start)
    return low <= start < high or _hedges(text[sentence[0] : sentence[1]])


def _letters(text: str, count: int) -> list[str]:
    """Letters chosen in the text, denied ones left out."""
    found = [m.group("l").upper() for p in _MARKED for m in p.finditer(text) if not _negated(text, m.start())]
    last = chr(ord("A") + count - 1)
    found += [m.group("l") for m in _ALONE.finditer(text) if m.group("l") <= last and not _negated(text, m.start())]
    return found


def _letter_position(text: str, letter: str) -> int:
    match = re.search(rf"(?<!\w){letter}(?!\w)", text, re.IGNORECASE)
    return match.start() if match else 0


def _option_texts(text: str, options: Sequence[str]) -> list[tuple[str, int, int]]:
    """Options whose words stand in the text as ``(letter, start, end)``; a longer option hides one inside it."""
    tokens = [(m.start(), m.end(), squad_tokens(m.group())) for m in re.finditer(r"\S+", text)]
    flat = [(start, end, token) for start, end, parts in tokens for token in parts]
    found: list[tuple[str, int, int]] = []
    for place, option in enumerate(options):
        wanted = squad_tokens(option)
        for i in range(len(flat) - len(wanted) + 1 if wanted else 0):
            if [t[2] for t in flat[i : i + len(wanted)]] == wanted:
                found.append((chr(ord("A") + place), flat[i][0], flat[i + len(wanted) - 1][1]))
    return [f for f in found if not any(_hides(g, f) for g in found)]


def _hides(outer: tuple[str, int, int], inner: tuple[str, int, int]) -> bool:
    return outer[1] <= inner[1] and inner[2] <= outer[2] and outer[2] - outer[1] > inner[2] - inner[1]


def _blanked(text: str, mentions: Sequence[tuple[str, int, int]]) -> str:
    """The text without its option texts, so that ``Vitamin D`` is not the letter D."""
    characters = list(text)
    for _, start, end in mentions:
        if end - start > 1:
            article = re.search(r"\b(?:a|an|the)\s+$", text[:start], re.IGNORECASE)
            first = article.start() if article else start
            characters[first:end] = " " * (end - first)
    return "".join(characters)


def _negated(text: str, start: int) -> bool:
    return _NEGATED.search(text[:start]) is not None


def _sentence_of(text: str, position: int) -> tuple[int, int]:
    """Span of the sentence around a position."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if position < match.end():
            return start, match.end()
        start = match.end()
    return start, len(text)


def _hedges(sentence: str) -> bool:
    spoken = " ".join(words(sentence)) + " "
    strong = phrases("hedges.v1.txt", "strong")
    return " or " in f" {spoken}" or any(strong.match(spoken, m.start()) for m in re.finditer(r"(?<!\S)(?=\S)", spoken))
