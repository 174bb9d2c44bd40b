"""Implements ``masim pack``: checks, overlap, hash, drafts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from memarena_masim.engines.options import EngineFlags
from memarena_masim.errors import MasimError
from memarena_masim.pack import MANIFEST, PUBLIC, Pack, announced, open_pack, public_pack
from memarena_masim.packs.check import findings, words_of_pack
from memarena_masim.packs.drafting import PARTS, draft_pack
from memarena_masim.packs.overlap import overlap


def resolved(folder: Path | None) -> Pack:
    """Return the pack in a folder; the public pack if the folder is None. MasimError if it cannot be read."""
    return public_pack() if folder is None or folder.absolute() == PUBLIC else open_pack(folder.absolute())


def check(folder: Path | None, against: Sequence[Path]) -> tuple[list[str], bool]:
    """Return the lines of a check of a pack, and whether it has no fault. MasimError if it cannot be read."""
    pack = announced(resolved(folder))
    words = words_of_pack(pack)
    all_findings = findings(words)
    lines = [finding.line(pack.folder) for finding in all_findings if not finding.doubtful]
    doubtful = [f"to read: {finding.line(pack.folder)}" for finding in all_findings if finding.doubtful]
    summary = f"{pack.manifest.name} {pack.manifest.version}: {len(lines)} faults, {len(doubtful)} to read"
    summary += f", {len(words.questions.names_read)} read"
    shares = []
    for other_folder in against:
        other = resolved(other_folder)
        for part, (count, shared) in overlap(words, words_of_pack(other)).items():
            shares.append(f"{part}: {shared:,} of {count:,} ({shared / count:.1%}) are in {other.manifest.name}")
    return [*lines, *doubtful, *shares, summary], not lines


def hash_of(folder: Path | None, *, write: bool) -> str:
    """Return the hash of a pack; with ``write``, put it into the manifest too."""
    pack = resolved(folder)
    if write and pack.folder == PUBLIC:
        raise MasimError("--write: the public pack changes with the code; a pack of your own is expected")
    if write:
        path = pack.folder / MANIFEST
        text = re.sub(r"(?m)^sha256\s*=.*\n?", "", path.read_text(encoding="utf-8"))
        try:
            path.write_text(f'{text.rstrip()}\nsha256 = "{pack.sha256}"\n', encoding="utf-8")
        except OSError as error:
            raise MasimError(f"{path}: cannot be written: {error.strerror}") from error
    return pack.sha256


def new(
    folder: Path,
    source: Path | None,
    seed: int,
    server: tuple[str | None, str | None, str | None, float | None],
    parts: Sequence[str] | None,
) -> str:
    """Draft a pack and state how many proposals were accepted. MasimError for a fault that the user can correct."""
    url, model, key_variable, timeout_s = server
    wrong = next((part for part in parts or () if part not in PARTS), None)
    if wrong is not None:
        raise MasimError(f"--part {wrong}: one of {', '.join(PARTS)} is expected")
    if url is None and (model or key_variable or timeout_s or parts):
        raise MasimError("--llm: missing; --model, --api-key-env, --timeout-s and --part go with it")
    flags = EngineFlags("llm", url, model, key_variable, 1, timeout_s=timeout_s) if url else EngineFlags()
    draft = draft_pack(folder, resolved(source), seed, flags.connection(), parts or PARTS)
    share = f", {draft.accepted} of {draft.proposed} proposals accepted" if url else ""
    return f"{folder}: {len(draft.left)} sections to write, listed in WRITE.md{share}"
