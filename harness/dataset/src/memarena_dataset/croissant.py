"""Describes a data set folder as Croissant metadata: its files with their hashes, and the columns of each.

Format: Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html), JSON-LD.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.io.files import Folder
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.io.rows import load_object

FILE_NAME: Final = "croissant.json"
_READ_BYTES = 1 << 20
_TEXT, _TEXTS, _NUMBER = "sc:Text", "sc:Text, repeated", "sc:Float"
_COLUMNS: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "corpus_sessions.jsonl": (
        ("session_id", _TEXT, "id of the conversation"),
        ("start_time", _NUMBER, "simulated days since the first day"),
        ("end_time", _NUMBER, "simulated days since the first day"),
        ("modality", _TEXT, "face_to_face, voice_message or text_message"),
        ("participants", _TEXTS, "ids of those who talk, assistants included"),
    ),
    "agents_personas.jsonl": (("agent_id", _TEXT, "id of the person or of their assistant"),),
    "events.jsonl": (
        ("event_id", _TEXT, "id of the event"),
        ("timestamp", _NUMBER, "simulated days since the first day"),
        ("content", _TEXT, "what happened"),
        ("visibility_mask", _TEXTS, "ids of those who could see it"),
    ),
}
"""Columns by file: name, type, meaning. A column is described only if the file has it."""
_QUESTIONS: Final = (
    ("instance_id", _TEXT, "id of the question"),
    ("query", _TEXT, "the question"),
    ("ego_agent_id", _TEXT, "whose memory is asked"),
    ("asker_agent_id", _TEXT, "who asks; null: a stranger"),
    ("evidence_session_ids", _TEXTS, "sessions that state the answer"),
)
_CONTEXT: Final[Mapping[str, object]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


@dataclass(frozen=True, slots=True)
class About:
    """Metadata that a folder does not hold itself; a field that is None is left out."""

    name: str | None = None
    description: str | None = None
    license: str | None = None
    """URL, or SPDX id."""
    url: str | None = None
    creator: str | None = None
    published: str | None = None
    """ISO 8601 date."""
    version: str | None = None
    cite_as: str | None = None


def croissant(folder: Path, about: About | None = None) -> dict[str, Any]:
    """Return the metadata as a JSON-LD object. Files are named relative to the folder.

    Raises:
        DatasetError: the folder is not a data set, or a file cannot be read.
    """
    metadata = about or About()
    with open_dataset(folder, strict=False) as dataset:
        if not len(dataset.corpus):
            raise DatasetError(f"{folder}: {dataset.problems[0]}")
    name = metadata.name or folder.resolve().name
    files = [path for path in _files(folder) if path.name != FILE_NAME]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": metadata.description
        or "Conversations of a group of people over some days, and questions on them with their right answers.",
        **_about_fields(metadata),
        "distribution": [_file(folder, path) for path in files],
        "recordSet": [record for path in files for record in _records(folder, path)],
    }


def _about_fields(about: About) -> dict[str, Any]:
    creator = {"@type": "sc:Organization", "name": about.creator} if about.creator else None
    fields = {
        "license": about.license,
        "url": about.url,
        "creator": creator,
        "datePublished": about.published,
        "version": about.version,
        "citeAs": about.cite_as,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _files(folder: Path) -> list[Path]:
    patterns = ("*.jsonl", "*.json", "*.jsonl.gz", "*.json.gz")
    return sorted(
        path for parent in (folder, folder / "eval_instances") for pattern in patterns for path in parent.glob(pattern)
    )


def _file(folder: Path, path: Path) -> dict[str, Any]:
    """Return the description of a file with its size and SHA-256. Raises DatasetError if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_READ_BYTES):
                digest.update(block)
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    return {
        "@type": "cr:FileObject",
        "@id": _id(folder, path),
        "name": _id(folder, path),
        "contentUrl": _id(folder, path),
        "contentSize": f"{size} B",
        "encodingFormat": _encoding(path),
        "sha256": digest.hexdigest(),
    }


def _encoding(path: Path) -> str:
    if path.suffix == ".gz":
        return "application/gzip"
    return "application/jsonlines" if path.suffix == ".jsonl" else "application/json"


def _records(folder: Path, path: Path) -> list[dict[str, Any]]:
    """Return the record set of a ``.jsonl`` file as a list of at most one; empty if the file is compressed or unknown.

    Objects within a line (turns, persona, ground truth) have no fields: readers take a column's value as text.
    """
    columns = _QUESTIONS if path.parent.name == "eval_instances" else _COLUMNS.get(path.name, ())
    if path.suffix != ".jsonl":
        return []
    present = _keys(folder, path) if columns else set()
    columns = tuple(column for column in columns if column[0] in present)
    if not columns:
        return []
    name = path.name.removesuffix(".jsonl")
    return [
        {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "key": {"@id": f"{name}/{columns[0][0]}"},
            "field": [_field(name, _id(folder, path), column) for column in columns],
        }
    ]


def _keys(folder: Path, path: Path) -> set[str]:
    """Return the keys of the first row: readers of Croissant fail on a column that a file does not have."""
    for first in Folder(folder).lines(_id(folder, path)):
        try:
            return set(load_object(first.data))
        except FieldError as error:
            raise DatasetError(f"{path}:{first.number}: {error.reason}") from error
    return set()


def _field(record_set: str, file_id: str, column: Sequence[str]) -> dict[str, Any]:
    name, data_type, meaning = column
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{name}",
        "name": name,
        "description": meaning,
        "dataType": data_type.removesuffix(", repeated"),
        **({"repeated": True} if data_type == _TEXTS else {}),
        "source": {"fileObject": {"@id": file_id}, "extract": {"column": name}},
    }


def _id(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
