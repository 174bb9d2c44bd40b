"""Drafts a pack from another one: keeps a random half, and lets a model, if there is one, propose the other half.

Checks accept or refuse each proposal; a person edits the draft further. ``WRITE.md`` lists what is still the source's,
``REFUSED.md`` what was refused and why.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from memarena_dataset.values.phrases import normal
from pydantic import BaseModel, ValidationError

from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.endpoint import Endpoint, NoReplyError
from memarena_masim.engines.replies import json_in
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import Attribute
from memarena_masim.pack import MANIFEST, NAMES_READ, Pack, open_pack
from memarena_masim.packs import proposals
from memarena_masim.packs.check import Words, words_of_pack
from memarena_masim.packs.editing import keep_rows, put_list, put_scenes, table
from memarena_masim.packs.overlap import frames, people, sentences_told, things
from memarena_masim.packs.proposals import Known, Lines, ProposedScene, Thing, Things
from memarena_masim.questions.question_bank import Called
from memarena_masim.rng import Stream

PARTS = ("things", "frames", "people", "scenes")
NAMES = {
    "first_names": "first names of people", "last_names": "last names of people",
    "other_men": "first names of men", "other_women": "first names of women",
}  # fmt: skip
_FEWEST = {"items": 2, "say": 2, "scenes": 1}
_FEWEST_PEOPLE = 10
_MOST_AT_ONCE = 8
_TOKENS = {"things": 600, "frames": 300, "people": 200, "scenes": 2500}
_PROMPTS = Path(__file__).resolve().parent / "prompts" / "propose.v1.toml"
_PEOPLE = "world/people.toml"
Shape = TypeVar("Shape", bound=BaseModel)


@dataclass
class Draft:
    """A pack that is being drafted, with notes of the parts still copied from the source and of refused proposals."""

    folder: Path
    words: Words
    known: Known
    stream: Stream
    endpoint: Endpoint | None
    parts: Sequence[str]
    left: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    proposed: int = 0
    accepted: int = 0

    def drawn(self, ones: Sequence[str], fewest: int) -> list[str]:
        """Return the random half of ``ones`` that is kept, in the original order."""
        chosen = set(self.stream.sample(range(len(ones)), max(fewest, len(ones) // 2)))
        return [one for index, one in enumerate(ones) if index in chosen]

    def decide(self, part: str, section: str, proposal: str, fault: str | None) -> bool:
        """Count a proposal, and note ``fault`` if it is refused; return whether it is accepted."""
        self.proposed += 1
        self.accepted += fault is None
        if fault is not None:
            self.refused.append(f"- {part}, {section}: `{proposal[:300]}`: {fault}")
        return fault is None

    def note(self, section: str, kept: int, new: int, before: int) -> None:
        """Note how many entries of a section are the source's, and how many are missing."""
        self.left.append(f"- `{section}`: {kept} of the source's to replace, {max(0, before - kept - new)} to add")

    async def ask(self, part: str, shape: type[Shape], section: str, **slots: object) -> Shape | None:
        """Return a reply of ``shape``; None if no model is asked or its reply has another shape."""
        if self.endpoint is None or part not in self.parts:
            return None
        prompts = tomllib.loads(_PROMPTS.read_text(encoding="utf-8"))
        text = Template(prompts[part]).safe_substitute({name: str(value) for name, value in slots.items()})
        messages = [{"role": "system", "content": prompts["system"]}, {"role": "user", "content": text}]
        try:
            reply = await self.endpoint.complete(messages, _TOKENS[part], shape.model_json_schema())
            return shape.model_validate(json_in(reply.text))
        except NoReplyError as error:
            self.decide(part, section, "no reply", str(error))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the reply"
            self.decide(part, section, reply.text, f"of another form: {where}: {first['msg']}")
        return None


def draft_pack(
    folder: Path, source: Pack, seed: int, connection: EndpointConfig | None, parts: Sequence[str] = PARTS
) -> Draft:
    """Write a draft to the new folder ``folder``. MasimError if it exists, or the endpoint is unusable."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", folder.name):
        raise MasimError(f"{folder}: small letters, digits and hyphens are expected: the folder names the pack")
    if folder.exists():
        raise MasimError(f"{folder}: is there already; a new folder is expected")
    words = words_of_pack(source)
    try:
        for name in source.hashes:
            if name == NAMES_READ:  # half of its names will be gone, and a person reads the draft anyway
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.folder / name, folder / name)
        draft = asyncio.run(_filled(folder, words, source, seed, connection, parts))
        _write_notes(draft, source, connection)
        words_of_pack(open_pack(folder))
    except BaseException as error:
        # A half-made draft would be in the way of the next try.
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise MasimError(f"{error.filename or folder}: {error.strerror or error}") from error
        raise
    return draft


async def _filled(
    folder: Path, words: Words, source: Pack, seed: int, connection: EndpointConfig | None, parts: Sequence[str]
) -> Draft:
    """Fill the folder of a draft: attributes, names, scenes and lists, with a model's proposals if there is one."""
    known = Known(
        words.facts, _plain(things(words)), _plain(frames(words)), _plain(people(words)), sentences_told(words)
    )
    endpoint = None if connection is None else Endpoint(connection)
    draft = Draft(folder, words, known, Stream("pack", seed, source.sha256), endpoint, parts)
    description = json.dumps(f"Draft from {source.manifest.name} {source.manifest.version}, seed {seed}.")
    lines = [f'name = "{folder.name}"', 'version = "0"', f"licence = {json.dumps(source.manifest.licence)}"]
    (folder / MANIFEST).write_text("\n".join([*lines, f"description = {description}\n"]), encoding="utf-8")
    try:
        for attribute in words.facts.attributes.values():
            await _things(draft, attribute)
            await _frames(draft, attribute)
        await _names(draft)
        for name in source.hashes:
            if name.startswith("scenes/") and name.endswith(".toml"):
                await _scenes(draft, name)
        _lists(draft)
    finally:
        if endpoint is not None:
            await endpoint.close()
    return draft


def _plain(texts: frozenset[str]) -> frozenset[str]:
    return frozenset(map(normal, texts))


def _file(attribute: Attribute) -> str:
    return f"facts/{'sensitive' if attribute.sensitive else 'details'}.toml"


async def _things(draft: Draft, attribute: Attribute) -> None:
    """Keep half of the things of an attribute, and add those that a model proposes for the other half."""
    source_items, key = draft.drawn(attribute.items, _FEWEST["items"]), attribute.key
    called: dict[str, Called] = {item: draft.words.questions.items[key, item] for item in source_items}
    new: list[Thing] = []
    for count in _batches(len(attribute.items) - len(source_items)):
        reply = await draft.ask(
            "things", Things, key, count=count, examples=proposals.listed(source_items[:3]),
            known=proposals.listed([*attribute.items, *(thing.name for thing in new)]), sentence=attribute.plain,
        )  # fmt: skip
        for thing in reply.things if reply else ():
            fault = proposals.thing_fault(thing, attribute, draft.known, called)
            if draft.decide("things", key, " | ".join((thing.name, thing.other_name, thing.description)), fault):
                called[thing.name] = Called((thing.other_name,), thing.description)
                new.append(thing)
    put_list(draft.folder, _file(attribute), (key, "items"), [*source_items, *(thing.name for thing in new)])
    source_rows = {tuple(part.strip() for part in (key, item)) for item in source_items}
    keep_rows(
        draft.folder,
        "questions/items.txt",
        lambda line: _cells(line)[0] != key or _cells(line) in source_rows,
        [proposals.row_of(key, thing) for thing in new],
    )
    draft.note(f"{_file(attribute)}: {key}.items", len(source_items), len(new), len(attribute.items))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split("|")[:2])


async def _frames(draft: Draft, attribute: Attribute) -> None:
    """Keep half of the sentences that state an attribute, and add a model's."""
    source_lines = table(draft.folder, _file(attribute))[attribute.key]["say"]
    source_frames, new = draft.drawn(source_lines, _FEWEST["say"]), list[str]()
    reply = await draft.ask(
        "frames", Lines, attribute.key, count=len(source_lines) - len(source_frames), examples="\n".join(source_frames)
    )  # fmt: skip
    for line in reply.lines if reply else ():
        text = line.rstrip(".")
        if draft.decide("frames", attribute.key, line, proposals.frame_fault(text, draft.known, new)):
            new.append(text)
    put_list(draft.folder, _file(attribute), (attribute.key, "say"), [*source_frames, *new])
    draft.note(f"{_file(attribute)}: {attribute.key}.say", len(source_frames), len(new), len(source_lines))


async def _names(draft: Draft) -> None:
    """Keep half of the names of people, and add a model's."""
    rows = table(draft.folder, _PEOPLE)
    for key, what in NAMES.items():
        source_names, new = draft.drawn(rows[key], _FEWEST_PEOPLE), list[str]()
        count = min(_MOST_AT_ONCE * 3, len(rows[key]) - len(source_names))
        reply = await draft.ask(
            "people", Lines, key, count=count, known=proposals.listed(source_names[:40]), sentence=what
        )
        for name in reply.lines if reply else ():
            if draft.decide("people", key, name, proposals.person_fault(name, draft.known, new)):
                new.append(name)
        put_list(draft.folder, _PEOPLE, (key,), [*source_names, *new])
        draft.note(f"{_PEOPLE}: {key}", len(source_names), len(new), len(rows[key]))


async def _scenes(draft: Draft, file: str) -> None:
    """Keep half of the scenes of a topic, and add a model's scene; none of episodes, which have another form."""
    rows: dict[str, Any] = table(draft.folder, file)
    about, topic = rows.pop("topic"), Path(file).stem
    source_scenes, new = draft.drawn(list(rows), _FEWEST["scenes"]), 0
    scenes = {key: rows[key] for key in source_scenes}
    example = json.dumps(rows[source_scenes[0]], ensure_ascii=False)
    put_scenes(draft.folder, file, scenes)
    reply = None
    if not about.get("episodes"):
        reply = await draft.ask("scenes", ProposedScene, topic, examples=example, sentence=topic)
    if reply is not None:
        key, scene, path = f"{topic}_new", reply.model_dump(), draft.folder / file
        put_scenes(draft.folder, file, {**scenes, key: scene})
        fault = proposals.scene_fault(path, key, scene, draft.known)
        new = draft.decide("scenes", topic, scene["thing"], fault)
        if not new:
            put_scenes(draft.folder, file, scenes)
    draft.note(file, len(source_scenes), new, len(rows))


def _lists(draft: Draft) -> None:
    """Keep half of the happenings and finds; others are left for a person to write, because of their verbs."""
    for mood, row in table(draft.folder, "facts/happenings.toml").items():
        if mood != "say":
            source_finds = draft.drawn(row["items"], _FEWEST["items"])
            put_list(draft.folder, "facts/happenings.toml", (mood, "items"), source_finds)
            draft.note(f"facts/happenings.toml: {mood}.items", len(source_finds), 0, len(row["items"]))
    finds = table(draft.folder, "facts/finds.toml")["things"]
    source_finds = draft.drawn(finds, _FEWEST_PEOPLE)
    put_list(draft.folder, "facts/finds.toml", ("things",), source_finds)
    draft.note("facts/finds.toml: things", len(source_finds), 0, len(finds))


def _batches(count: int) -> list[int]:
    return [min(_MOST_AT_ONCE, count - start) for start in range(0, count, _MOST_AT_ONCE)]


def _write_notes(draft: Draft, source: Pack, connection: EndpointConfig | None) -> None:
    model = "no model" if connection is None else f"{connection.model}, {_PROMPTS.name}"
    head = (
        f"Draft from {source.manifest.name} {source.manifest.version} ({source.sha256}), {model}. What is the source's "
        "is known to whoever knows the source: replace it, add what is missing, then `masim pack check`."
    )
    (draft.folder / "WRITE.md").write_text("\n".join(["# To write", "", head, "", *draft.left, ""]), encoding="utf-8")
    share = f"{draft.accepted} of {draft.proposed} proposals were accepted."
    refused = "\n".join(["# Refused", "", share, "", *draft.refused, ""])
    (draft.folder / "REFUSED.md").write_text(refused, encoding="utf-8")
