"""What Graphiti's model answers by rules, at each of its steps.

The steps of Graphiti 0.31 are known by the name of the reply's form; what is asked about is read from the same tags of
the prompt as a real model would. Whoever speaks becomes an entity, and so does the name in what is kept, which is a
fact between the two. ``named``: a fact stands in the place of an earlier one of its kind.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

from tests.backends.extraction_rules import Keep, Memory, memories_of, statements
from tests.support.model_script import Body, UnknownPromptError, text_of

_OPENING = re.compile(r"^(?P<name>[^:\n]{1,60}): ", re.MULTILINE)
_KIND = re.compile(r"^The (?P<kind>.+) is called ")
_FORM_IN_PROMPT = re.compile(r'"title": "(\w+)", "type": "object"}\s*$')


def form_of(body: Body) -> str:
    """The name of the form that is asked for; without a schema in the request, by the schema in the prompt."""
    schema = (body.get("response_format") or {}).get("json_schema")
    if schema:
        return str(schema["name"])
    title = _FORM_IN_PROMPT.search(text_of(body))
    return title[1] if title else ""


def reply_of(body: Body, keep: Keep = "named") -> str:
    """The rule for whichever step it is. Raises UnknownPromptError for a form that is none of Graphiti's."""
    step = _STEPS.get(form_of(body))
    if step is None:
        raise UnknownPromptError("the form of the reply is none of Graphiti 0.31")
    return json.dumps(step(text_of(body), keep))


def _within(prompt: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return found[1] if found else ""


def _facts(message: str, keep: Keep) -> list[Memory]:
    return [
        memory for opening, said in statements(message, _OPENING) for memory in memories_of(opening["name"], said, keep)
    ]


def _entities(prompt: str, keep: Keep) -> object:
    """Speakers, and what has a name."""
    message = _within(prompt, "CURRENT MESSAGE")
    names = [opening["name"] for opening in _OPENING.finditer(message)]
    names += [fact.name for fact in _facts(message, keep)]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in dict.fromkeys(names)]}


def _edges(prompt: str, keep: Keep) -> object:
    """A fact for each name, which holds from the time of the message."""
    since = _within(prompt, "REFERENCE_TIME").partition("#")[0].strip().replace(" ", "T")
    return {
        "edges": [
            {
                "source_entity_name": fact.speaker,
                "target_entity_name": fact.name,
                "relation_type": "HAS",
                "fact": fact.text,
                "valid_at": since,
                "invalid_at": None,
            }
            for fact in _facts(_within(prompt, "CURRENT_MESSAGE"), keep)
        ]
    }


def _duplicates(prompt: str, keep: Keep) -> object:
    """Of earlier facts of the same kind, the same one is a duplicate, and any other is no longer true."""
    new = _within(prompt, "NEW FACT")
    kind = _KIND.match(new) if keep == "named" else None
    existing = ast.literal_eval(_within(prompt, "EXISTING FACTS") or "[]")
    others = ast.literal_eval(_within(prompt, "FACT INVALIDATION CANDIDATES") or "[]")

    def same_kind(fact: str) -> bool:
        found = _KIND.match(fact)
        return bool(kind and found and kind["kind"] == found["kind"])

    return {
        "duplicate_facts": [each["idx"] for each in existing if each["fact"] == new],
        "contradicted_facts": [
            each["idx"] for each in [*existing, *others] if each["fact"] != new and same_kind(each["fact"])
        ],
    }


def _resolutions(prompt: str, _: Keep) -> object:
    """An entity is another one if they have the same name."""
    known = {each["name"]: each["candidate_id"] for each in json.loads(_within(prompt, "EXISTING ENTITIES"))}
    asked = json.loads(_within(prompt, "ENTITIES"))
    return {
        "entity_resolutions": [
            {"id": each["id"], "name": each["name"], "duplicate_candidate_id": known.get(each["name"], -1)}
            for each in asked
        ]
    }


_STEPS: dict[str, Callable[[str, Keep], object]] = {
    "ExtractedEntities": _entities,
    "ExtractedEdges": _edges,
    "EdgeDuplicate": _duplicates,
    "NodeResolutions": _resolutions,
    "SummarizedEntities": lambda *_: {"summaries": []},
    "EdgeTimestamps": lambda *_: {"valid_at": None, "invalid_at": None},
}
