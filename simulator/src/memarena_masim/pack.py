"""Opens and checks a pack: the folder of data files from which a world's texts are drawn.

``docs/packs.md`` explains the format. All files of a pack are checked here before any is used.
"""

from __future__ import annotations

import hashlib
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from memarena_dataset.safe_files import pack_hash
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memarena_masim.errors import MasimError
from memarena_masim.pack_schema import check_tables

MANIFEST = "pack.toml"
PUBLIC = Path(__file__).resolve().parent / "banks"
"""Folder of the public pack, which comes with MaSim."""
MAX_FILE_BYTES = 4 << 20
MAX_FILES = 2000
SCENE_FILE = re.compile(r"scenes/[a-z0-9_]+\.toml")
FILES = (
    "facts/changes.toml",
    "facts/community.toml",
    "facts/details.toml",
    "facts/events.toml",
    "facts/finds.toml",
    "facts/happenings.toml",
    "facts/invites.bank",
    "facts/invites.toml",
    "facts/levels.bank",
    "facts/more.bank",
    "facts/probes.bank",
    "facts/prompts.bank",
    "facts/reactions.toml",
    "facts/sensitive.toml",
    "facts/themes.toml",
    "facts/ties.toml",
    "questions/details.toml",
    "questions/finds.toml",
    "questions/happenings.txt",
    "questions/items.txt",
    "questions/kinds.bank",
    "scenes/frame.bank",
    "world/people.toml",
)
"""Files that every pack must have, besides its scenes."""
NAMES_READ = "questions/names-read.txt"
"""A file that a pack may have."""

Half = Literal["all", "tuning", "held-out"]
"""The half of a pack's lines to use: a system tuned on one half can be evaluated on the other."""


class PackHalf(NamedTuple):
    """Cache key of a pack's data: its folder and hash (both empty for the public pack), and the half."""

    folder: str = ""
    sha256: str = ""
    half: Half = "all"


PUBLIC_PACK = PackHalf()
"""Key of the public pack with both halves."""


class Manifest(BaseModel):
    """``pack.toml``. ``sha256`` is there from the day on that the pack is announced; a draft has none."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    version: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+-]{0,31}$")
    licence: str = Field(min_length=1, max_length=200)
    description: str = Field(min_length=1, max_length=2000)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


# Each completes the error "FIELD: … is expected" of _manifest; hence the commas at the end of two.
_EXPECTED = {
    "name": "small letters, digits and hyphens, at most 64,",
    "version": "a version such as 1.0",
    "licence": "the licence, at most 200 characters,",
    "description": "a description, at most 2,000 characters,",
    "sha256": "64 hexadecimal digits",
}


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack whose files were checked by ``open_pack``: plain UTF-8 files, no links, no other files in the folder."""

    folder: Path
    manifest: Manifest
    hashes: Mapping[str, str]
    """SHA-256 of each file except the manifest, by path relative to the folder."""

    @property
    def sha256(self) -> str:
        """Return the hash of the pack: ``pack_hash`` of the hashes of its files."""
        return pack_hash(self.hashes)


def open_pack(folder: Path) -> Pack:
    """Check and return the pack in ``folder``. MasimError names the first file that is missing or not allowed."""
    if not folder.is_dir():
        raise MasimError(f"--pack {folder}: no such folder; a pack with a {MANIFEST} is expected")
    try:
        names = _names(folder)
        for name in (MANIFEST, *FILES):
            if name not in names:
                raise MasimError(f"{folder / name}: missing; every pack holds it")
        if not any(map(SCENE_FILE.fullmatch, names)):
            raise MasimError(f"{folder / 'scenes'}: at least one scenes/<topic>.toml is expected")
        manifest = _manifest(folder / MANIFEST)
        hashes = {name: hashlib.sha256(_bytes(folder / name)).hexdigest() for name in names if name != MANIFEST}
        check_tables(folder, list(hashes))
    except OSError as error:
        raise MasimError(f"{error.filename or folder}: cannot be read: {error.strerror or error}") from error
    return Pack(folder, manifest, hashes)


def announced(pack: Pack) -> Pack:
    """Return ``pack`` if its files match the hash of its manifest, or if that has none (a draft); else MasimError."""
    if pack.manifest.sha256 not in (None, pack.sha256):
        raise MasimError(
            f"{pack.folder / MANIFEST}: sha256: {pack.manifest.sha256}, but the files have {pack.sha256}; the files "
            "that were announced are expected, or a manifest without sha256 for a draft"
        )
    return pack


def unchanged(folder: Path, sha256: str) -> Pack:
    """Open the pack in ``folder``. MasimError if its hash is no longer ``sha256``."""
    pack = open_pack(folder)
    if pack.sha256 != sha256:
        raise MasimError(f"--pack {folder}: its files have changed meanwhile; {sha256} is expected")
    return pack


@cache
def public_pack() -> Pack:
    """Return the public pack, which is read once per process."""
    return open_pack(PUBLIC)


@cache
def root(folder: str, sha256: str) -> Path:
    """Return the folder for ``folder`` and ``sha256`` of a PackHalf, checked once per process.

    MasimError if the pack's hash is no longer ``sha256``.
    """
    if not folder:
        return PUBLIC
    return unchanged(Path(folder), sha256).folder


def _names(folder: Path) -> list[str]:
    """Return the pack's files as sorted relative paths, without ``*.md``, ``LICENSE`` and hidden entries at the top.

    MasimError for a link, a file that is not plain, not a pack's, or too large.
    """
    names = []
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise MasimError(f"{path}: is a link; a plain file is expected")
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise MasimError(f"{path}: is no plain file")
        if path.suffix == ".md" or name == "LICENSE":
            continue
        if name != MANIFEST and name not in (*FILES, NAMES_READ) and not SCENE_FILE.fullmatch(name):
            raise MasimError(f"{path}: no file of a pack; docs/packs.md lists them")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MasimError(f"{path}: {path.stat().st_size:,} bytes; at most {MAX_FILE_BYTES:,} are expected")
        names.append(name)
    return sorted(names)


def _walk(folder: Path) -> list[Path]:
    """Return all paths below ``folder``, except for hidden ones at its top; links are not followed."""
    paths: list[Path] = []
    pending = [path for path in folder.iterdir() if not path.name.startswith(".")]
    while pending:
        path = pending.pop()
        paths.append(path)
        if len(paths) > MAX_FILES:
            raise MasimError(f"{folder}: more than {MAX_FILES:,} files; a pack is expected")
        if path.is_dir() and not path.is_symlink():
            pending.extend(path.iterdir())
    return sorted(paths)


def _bytes(path: Path) -> bytes:
    """Read a text file. MasimError unless it is UTF-8 without a byte order mark, a NUL byte or a carriage return."""
    data = path.read_bytes()
    if data.startswith(b"\xef\xbb\xbf"):
        raise MasimError(f"{path}:1: begins with a byte order mark; UTF-8 without one is expected")
    for mark, what in ((b"\r", "a carriage return; lines that end with LF are"), (b"\0", "a NUL byte; text is")):
        if mark in data:
            raise MasimError(f"{path}:{_line(data, data.index(mark))}: {what} expected")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MasimError(f"{path}:{_line(data, error.start)}: no UTF-8; text is expected") from error
    return data


def _line(data: bytes, at: int) -> int:
    """Return the number of the line, from 1, at offset ``at``."""
    return data.count(b"\n", 0, at) + 1


def _manifest(path: Path) -> Manifest:
    """Read ``pack.toml``. MasimError names the first field that is missing, unknown or not valid."""
    try:
        return Manifest.model_validate(tomllib.loads(_bytes(path).decode("utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        problem = {"missing": "missing; ", "extra_forbidden": "unknown key; "}.get(first["type"], "")
        expected = _EXPECTED.get(field, f"one of {', '.join(_EXPECTED)}")
        raise MasimError(f"{path}: {field}: {problem}{expected} is expected") from error
