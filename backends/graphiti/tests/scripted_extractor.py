"""Replies to Graphiti's prompts by rules instead of a model, at each step of Graphiti 0.31.

A step is recognised by the name of the reply's form; its input is read from the tags in the prompt, as a real model
would. Each speaker becomes an entity, and so does the name in a memory, which becomes a fact between the two. With
``keep="named"`` a fact replaces an earlier one of its kind.
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
    """Return the name of the reply's form, from the schema in the request, else from the schema in the prompt."""
    schema = (body.get("response_format") or {}).get("json_schema")
    if schema:
        return str(schema["name"])
    title = _FORM_IN_PROMPT.search(text_of(body))
    return title[1] if title else ""


def reply_of(body: Body, keep: Keep = "named") -> str:
    """Return the reply of the rule for the request's step. Raises UnknownPromptError for an unknown form."""
    step = _STEPS.get(form_of(body))
    if step is None:
        raise UnknownPromptError("the form of the reply is none of Graphiti 0.31")
    return json.dumps(step(text_of(body), keep))


def _within(prompt: str, tag: str) -> str:
    content = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return content[1] if content else ""


def _facts(message: str, keep: Keep) -> list[Memory]:
    return [
        memory for opening, text in statements(message, _OPENING) for memory in memories_of(opening["name"], text, keep)
    ]


def _entities(prompt: str, keep: Keep) -> object:
    """Return as entities the speakers, and the names in memories."""
    message = _within(prompt, "CURRENT MESSAGE")
    names = [opening["name"] for opening in _OPENING.finditer(message)]
    names += [fact.name for fact in _facts(message, keep)]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in dict.fromkeys(names)]}


def _edges(prompt: str, keep: Keep) -> object:
    """Return a fact for each name, which holds from the time of the message."""
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
    """Return the indices of earlier facts: equal ones are duplicates, others of the same kind are contradicted."""
    new = _within(prompt, "NEW FACT")
    kind = _KIND.match(new) if keep == "named" else None
    existing = ast.literal_eval(_within(prompt, "EXISTING FACTS") or "[]")
    others = ast.literal_eval(_within(prompt, "FACT INVALIDATION CANDIDATES") or "[]")

    def same_kind(fact: str) -> bool:
        match = _KIND.match(fact)
        return bool(kind and match and kind["kind"] == match["kind"])

    return {
        "duplicate_facts": [row["idx"] for row in existing if row["fact"] == new],
        "contradicted_facts": [
            row["idx"] for row in [*existing, *others] if row["fact"] != new and same_kind(row["fact"])
        ],
    }


def _resolutions(prompt: str, _: Keep) -> object:
    """Resolve entities to existing ones of the same name; -1 for a new entity."""
    ids_by_name = {
        entity["name"]: entity["candidate_id"] for entity in json.loads(_within(prompt, "EXISTING ENTITIES"))
    }
    entities = json.loads(_within(prompt, "ENTITIES"))
    return {
        "entity_resolutions": [
            {"id": entity["id"], "name": entity["name"], "duplicate_candidate_id": ids_by_name.get(entity["name"], -1)}
            for entity in entities
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
