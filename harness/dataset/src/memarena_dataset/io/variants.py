"""Brings the various forms in which released data sets write groups, places, neighbours and names to a single form.

The public files differ in small ways (a list of objects or an object keyed by id; ``name``, ``title`` or ``label``);
each function here takes any of them and returns the form of ``model.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memarena_dataset.errors import FieldError

_NAME_KEYS = ("name", "title", "display_name", "full_name", "label")
_ID_KEYS = ("agent_id", "id", "neighbor_id", "neighbour_id", "target", "member_id")
_RELATION_KEYS = ("relation", "relationship", "relation_type", "relationship_type", "role", "type", "label")
_MEMBER_KEYS = ("members", "member_ids", "agent_ids", "participants")


def keyed_objects(value: Any, id_key: str, wrapper: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a file that holds a list of objects, an object keyed by id, or either under ``wrapper``.

    Yields ``(position, object)``; each object has its id under ``id_key``. ``position`` is the index or key in the
    file.

    Raises:
        FieldError: the value has neither form.
    """
    if isinstance(value, Mapping) and isinstance(value.get(wrapper), list | Mapping) and id_key not in value:
        value = value[wrapper]
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield str(position), _with_id(item, id_key, str(position), None)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), _with_id({"name": item} if isinstance(item, str) else item, id_key, str(key), str(key))
    else:
        raise FieldError("", f"a list of objects or an object keyed by {id_key} is expected")


def _with_id(item: Any, id_key: str, position: str, key: str | None) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise FieldError(position, "an object is expected")
    if id_key in item:
        return item
    if isinstance(item.get("id"), str):
        return {**item, id_key: item["id"]}
    return item if key is None else {**item, id_key: key}


def with_name(item: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """Return the object with ``name`` set from the key that holds the name (``title``, ``group_name`` …)."""
    for key in (*_NAME_KEYS, f"{prefix}_name"):
        if isinstance(item.get(key), str) and item[key].strip():
            return {**item, "name": item[key]}
    return {key: value for key, value in item.items() if key != "name" or value is not None}


def with_members(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with ``members`` as agent ids."""
    for key in _MEMBER_KEYS:
        if item.get(key) is not None:
            return {**item, "members": tuple(relations_of(item[key], field=key))}
    return {key: value for key, value in item.items() if key != "members"}


def relations_of(value: Any, *, field: str = "social_neighbors") -> dict[str, str]:
    """Return the relation of each agent id ("" if none is stated), in the order of the file.

    Takes a list of ids, a list of objects, an object of id to relation (text, object or number), or an object of
    relation to list of ids.

    Raises:
        FieldError: the value has none of these forms.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {value: ""}
    relations: dict[str, str] = {}
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            agent_id = item if isinstance(item, str) else _first_text(item, _ID_KEYS)
            if not agent_id:
                raise FieldError(f"{field}.{position}", "an agent id or an object with agent_id is expected")
            relations[agent_id] = "" if isinstance(item, str) else _first_text(item, _RELATION_KEYS)
        return relations
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, list | tuple):
                for agent_id in relations_of(item, field=f"{field}.{key}"):
                    relations[agent_id] = str(key)
            elif isinstance(item, str):
                relations[str(key)] = item
            else:
                relations[str(key)] = _first_text(item, _RELATION_KEYS)
        return relations
    raise FieldError(field, "a list of agents or an object is expected")


def _first_text(item: Any, keys: tuple[str, ...]) -> str:
    if not isinstance(item, Mapping):
        return ""
    return next((item[key] for key in keys if isinstance(item.get(key), str)), "")
