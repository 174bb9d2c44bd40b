"""Compares the digest test vectors with what memarena_proto.digest computes, or fills in a new vector's results.

    python scripts/digest_vectors.py            compare; exit 1 and one line per vector that differs
    python scripts/digest_vectors.py --fill     add results to vectors that have none yet

Vectors of a released table never change: a vector that has results is only ever compared, never rewritten. The file is
ASCII (everything else is escaped), so that no editor can normalise its text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import cast

from google.protobuf import json_format
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_VERSION, DayDigest

VECTORS = Path(__file__).parent.parent / "proto" / "vectors" / "digest.v1.json"
RESULTS = ("session_count", "turn_count", "event_count", "encoded_hex", "digest_hex")

Json = dict[str, object]


def computed(vector: Json) -> Json:
    """Return the results that this implementation gives for the frames of a vector."""
    day = DayDigest()
    for frame in cast(list[Json], vector["frames"]):
        day.add(json_format.ParseDict(frame, pb.IngestRequest()))
    return {
        "session_count": day.session_count,
        "turn_count": day.turn_count,
        "event_count": day.event_count,
        "encoded_hex": day.encoded().hex(),
        "digest_hex": day.digest().hex(),
    }


def faults(document: Json) -> list[str]:
    """Return one line per result that differs; an empty list means that all agree."""
    lines = []
    if document["digest_version"] != DIGEST_VERSION:
        lines.append(f"digest_version: expected {DIGEST_VERSION}, found {document['digest_version']}")
    vectors = cast(list[Json], document["vectors"])
    digests = {vector["name"]: vector.get("digest_hex") for vector in vectors}
    for vector in vectors:
        for key, value in computed(vector).items():
            recorded = vector.get(key)
            if recorded != value:
                lines.append(f"{vector['name']}.{key}: {_difference(recorded, value)}")
        twin = vector.get("same_digest_as")
        if twin is not None and digests[twin] != vector.get("digest_hex"):
            lines.append(f"{vector['name']}: its digest is not that of {twin}")
    return lines


def _difference(recorded: object, value: object) -> str:
    if isinstance(recorded, str) and isinstance(value, str):
        first_difference = next(
            (n for n, pair in enumerate(zip(recorded, value, strict=False)) if pair[0] != pair[1]), None
        )
        pos = min(len(recorded), len(value)) if first_difference is None else first_difference
        return f"differs from character {pos}: computed …{value[pos : pos + 16]}, found …{recorded[pos : pos + 16]}"
    return f"computed {value}, found {recorded}"


def fill(document: Json) -> list[str]:
    """Add results to the vectors that have none and return their names."""
    filled = []
    for vector in cast(list[Json], document["vectors"]):
        if not any(key in vector for key in RESULTS):
            vector.update(computed(vector))
            filled.append(str(vector["name"]))
    return filled


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description="Compare or fill the digest test vectors.")
    parser.add_argument("--fill", action="store_true", help="add results to vectors that have none")
    parser.add_argument("--file", type=Path, default=VECTORS)
    options = parser.parse_args(arguments)
    document = cast(Json, json.loads(options.file.read_text(encoding="utf-8")))
    if options.fill:
        names = fill(document)
        options.file.write_text(json.dumps(document, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")
        sys.stdout.write(f"filled: {', '.join(names) or 'none'}\n")
    lines = faults(document)
    for line in lines:
        sys.stderr.write(f"error: {options.file.name}: {line}\n")
    if not lines:
        sys.stdout.write(f"{len(cast(list[Json], document['vectors']))} digest vectors agree\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
