"""Checks the options of a cloze: one right, all of one type, all in the projection, none conspicuous.

An option that a reader can exclude without the history makes the question easier for every memory, even an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World
from memarena_dataset.gold import ClozeGold
from memarena_dataset.io.gold_reading import lettered_options
from memarena_dataset.model import Family, Instance
from memarena_dataset.values.phrases import normal, phrase_occurs

LENGTH_RATIO = 2.0
"""Ratio of an option's length to the median of the others from which it is conspicuous."""


def _clozes(world: World) -> Iterator[tuple[Instance, ClozeGold]]:
    for instance in world.of(Family.CLOZE):
        if isinstance(instance.gold, ClozeGold):
            yield instance, instance.gold


def not_one_right(world: World) -> Iterator[Finding]:
    """Yield clozes with no or several right options, equal ones, or others in the question than in the gold."""
    for instance, gold in _clozes(world):
        answers = {normal(gold.answer_text)}
        for value in gold.values:
            shown = getattr(value, "text", None) or getattr(value, "name", None)
            answers |= {normal(text) for text in (shown, *getattr(value, "aliases", ())) if text}
        right = [option for option in gold.options if normal(option) in answers]
        if len(right) != 1:
            reason = f"{len(right)} options are right ({', '.join(right)}); exactly one is expected"
            yield world.at(instance, "options-not-one-right", "ground_truth.options", reason)
        if len({normal(option) for option in gold.options}) != len(gold.options):
            yield world.at(instance, "options-not-one-right", "ground_truth.options", "two options are the same")
        listed = lettered_options(instance.query)
        if listed and [normal(option) for option in listed] != [normal(option) for option in gold.options]:
            reason = "shows other options, or in another order, than ground_truth.options"
            yield world.at(instance, "options-not-one-right", "query", reason)


def different_types(world: World) -> Iterator[Finding]:
    """Yield clozes with options of different types."""
    for instance, gold in _clozes(world):
        types = sorted({value.type for value in gold.option_values})
        if len(types) > 1:
            reason = f"types differ ({', '.join(types)}); one type is expected"
            yield world.at(instance, "options-of-different-types", "ground_truth.option_values", reason)


def never_heard(world: World) -> Iterator[Finding]:
    """Yield options that never occur in the ego's projection before the question."""
    for instance, gold in _clozes(world):
        until = world.asked_until(instance)
        for index, option in enumerate(gold.options):
            forms = (option, *getattr(gold.option_values[index], "aliases", ())) if gold.option_values else (option,)
            windows = world.windows(instance.ego_agent_id)
            if not any(
                window.time < until and any(phrase_occurs(form, window.words) for form in forms) for window in windows
            ):
                reason = f"{option!r} never occurs in the projection of {instance.ego_agent_id!r} before the question"
                yield world.at(instance, "option-never-heard", f"ground_truth.options.{index}", reason)


def gives_itself_away(world: World) -> Iterator[Finding]:
    """Yield a warning if the right option differs from all others in length or form."""
    for instance, gold in _clozes(world):
        others = [option for option in gold.options if normal(option) != normal(gold.answer_text)]
        if not others:
            continue
        usual = median(len(option) for option in others)
        ratio = max(len(gold.answer_text), usual) / max(min(len(gold.answer_text), usual), 1)
        reason = ""
        if ratio > LENGTH_RATIO:
            reason = f"the right option has {len(gold.answer_text)} letters, the others about {usual:g}"
        elif {_form(gold.answer_text)}.isdisjoint(_form(option) for option in others):
            reason = "the right option alone is written like that (digits, capitals)"
        if reason:
            yield world.at(instance, "option-gives-itself-away", "ground_truth.options", reason, "warning")


def _form(option: str) -> tuple[bool, bool]:
    return any(char.isdigit() for char in option), option[:1].isupper()
