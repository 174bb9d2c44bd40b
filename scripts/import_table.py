"""Writes the column *imports* of the table of rooms in docs/architecture.md, from the import rules of pyproject.toml.

``python -m scripts.import_table`` writes the column; with ``--check`` it prints each row that differs and each module
with a rule that has no row, and exits with 1.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/architecture.md")
HEAD = "| room | job | imports |"
BACKENDS = "backends/<name>/"
COMMANDS = "memarena.cli"


def rules(pyproject: str) -> dict[str, str]:
    """Return by module with a rule the packages that it may import, as the table writes them.

    For example ``{"memarena.log": "dataset"}``.
    """
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    allowed: dict[str, str] = {}
    for contract in contracts:
        if contract["type"] not in {"may_import_only", "backends_import_only"}:
            continue
        modules = (name.replace("memarena_backend", "kit") for name in contract.get("allowed_modules", []))
        names = [re.sub(r"^memarena[._]", "", name) for name in modules]
        for module in contract.get("source_modules", [BACKENDS]):
            allowed[module] = ", ".join(names) or "nothing"
    allowed[COMMANDS] = f"anything of the harness, {allowed.pop('memarena')}"
    return allowed


def written(page: str, allowed: dict[str, str]) -> tuple[str, list[str]]:
    """Return the page with the column by the rules, and one line for each row or module that cannot be written."""
    before, head, from_table = page.partition(HEAD)
    table, blank, after = from_table.partition("\n\n")
    faults, modules_with_row, lines = [], set[str](), []
    for line in table.split("\n"):
        cells = line.strip("|").split(" | ")
        if len(cells) != 3 or cells[0].strip() == "---":
            lines.append(line)
            continue
        room, job, _ = cells
        tokens = re.findall(r"`([^`]+)`", room)
        modules = [name for token in tokens for name in (token, f"memarena.{token}") if name in allowed]
        modules_with_row.update(modules)
        imports = {allowed[module] for module in modules}
        if len(imports) != 1:
            faults.append(f"{PAGE}: {room.strip()}: expected modules of one rule, not {len(imports)}")
            lines.append(line)
            continue
        lines.append(f"| {room.strip()} | {job} | {imports.pop()} |")
    faults += [
        f"{PAGE}: {module}: has a rule in pyproject.toml and no row"
        for module in allowed
        if module not in modules_with_row
    ]
    return before + head + "\n".join(lines) + blank + after, faults


def main(arguments: list[str]) -> int:
    """Write or compare the column and return the exit code."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    new, faults = written(page, rules((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    if arguments == ["--check"]:
        pairs = zip(page.splitlines(), new.splitlines(), strict=True)
        faults += [f"{PAGE}: expected {after}" for before, after in pairs if before != after]
    elif not faults:
        (ROOT / PAGE).write_text(new, encoding="utf-8")
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
