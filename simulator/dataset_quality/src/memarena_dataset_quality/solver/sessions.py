"""Answers questions about a session itself: who spoke, who was there, when, where and by which medium."""

from __future__ import annotations

import re

from memarena_dataset.values.phrases import tokens_of

from memarena_dataset_quality.solver.evidence import Task, named


def answer(task: Task) -> str:
    """Return the answer to a question about a session or a community; "" if the question is about a stated detail."""
    first = task.turns[0]
    match task.attribute:
        case "session":
            return f"{first.day:%B} {first.day.day}, {first.day.year}"
        case "conversation_location" | "conversation location":
            return first.location or ""
        case "context":
            return first.means
        case "speaker" | "participants":
            return _people(task)
        case "group_members":
            return _members(task)
        case _:
            return ""


def _people(task: Task) -> str:
    """Return the others if the question names a speaker or is about the owner's own words, else the speakers."""
    first = task.turns[0]
    if first.ego or any(named(turn.speaker, task.query) for turn in task.turns):
        return "; ".join(dict.fromkeys(name for name in first.others if name != task.ego))
    return "; ".join(dict.fromkeys(turn.speaker for turn in task.turns))


def _members(task: Task) -> str:
    """Return all people in the sentence that names most; its speaker is one of them if it says "I"."""
    best: list[str] = []
    for turn in task.turns:
        for sentence in turn.sentences:
            words = set(tokens_of(sentence))
            names = [name for name in task.people if tokens_of(name)[0] in words]
            if re.search(r"\b(?:I|me|myself|my)\b", sentence) and turn.speaker not in names:
                names.append(turn.speaker)
            if len(names) > len(best):
                best = names
    return "; ".join(best)
