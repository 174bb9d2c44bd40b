"""Defines contract types for import-linter: a package may import only the listed packages of this repository.

The built-in types list forbidden packages, so that a package added later is allowed by default; here it is not. Imports
from outside the repository (the standard library, dependencies) are left to other contracts. Backends are found by
their manifests (scripts/backend_folders.py): no list names them.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import cast

import grimp
from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

from scripts import backend_folders


class MayImportOnly(Contract):
    """Options: ``source_modules``, the packages that the rule is about; ``allowed_modules``, packages they may import.

    A source may always import itself, but not another source. Every direct import counts, including imports within
    functions or only for type checking.
    """

    type_name = "may_import_only"

    source_modules = fields.ListField(subfield=fields.ModuleField())
    allowed_modules = fields.ListField(subfield=fields.ModuleField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that no rule allows, as ``importer -> imported (line n)``."""
        sources = [str(module) for module in cast(list[object], self.source_modules)]
        illegal = _illegal(graph, sources, _names(self.allowed_modules), _ours(self))
        return _verdict(illegal)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per import that is not allowed."""
        _print(check)


class BackendsImportOnly(Contract):
    """Option: ``allowed_modules``, packages that those of every backend may import in addition to themselves.

    Within a backend, imports between files or folders must not form a cycle.
    """

    type_name = "backends_import_only"

    allowed_modules = fields.ListField(subfield=fields.ModuleField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that are not allowed; ``graph`` lacks the backends, so a graph of them is built here."""
        sources = sorted(backend_folders.packages())
        if not sources:
            return _verdict(())
        # Packages of backends with their own environment are not installed; they are read, never run.
        places = (str(package.parent) for package in backend_folders.packages().values())
        sys.path.extend(folder for folder in places if folder not in sys.path)
        backends = grimp.build_graph(*sources, include_external_packages=True, cache_dir=None)
        illegal = _illegal(backends, sources, _names(self.allowed_modules), _ours(self))
        circles = [f"{source}: a circle, {step}" for source in sources for step in _circles(backends, source)]
        return _verdict([*illegal, *circles])

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per import that is not allowed."""
        _print(check)


def _ours(contract: Contract) -> tuple[str, ...]:
    """Return the names of all packages of this repository."""
    return (*cast(list[str], contract.session_options["root_packages"]), *backend_folders.packages())


def _names(modules: object) -> tuple[str, ...]:
    return tuple(str(module) for module in cast(list[object] | None, modules) or ())


def _illegal(
    graph: ImportGraph, sources: Sequence[str], allowed: Sequence[str], ours: Collection[str]
) -> Iterator[str]:
    for source in sources:
        for importer in sorted({source, *graph.find_descendants(source)}):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                if _within(imported, ours) and not _within(imported, (source, *allowed)):
                    line = graph.get_import_details(importer=importer, imported=imported)[0]["line_number"]
                    yield f"{importer} -> {imported} (line {line})"


def _circles(graph: ImportGraph, package: str) -> list[str]:
    """Return the imports whose removal would leave no cycle below a package."""
    parents = {package, *(module for module in graph.find_descendants(package) if graph.find_children(module))}
    steps = {step for parent in parents for step in graph.nominate_cycle_breakers(parent)}
    return [f"{importer} -> {imported}" for importer, imported in sorted(steps)]


def _verdict(illegal: Iterable[str]) -> ContractCheck:
    imports = list(illegal)
    return ContractCheck(kept=not imports, metadata={"illegal": imports})


def _print(check: ContractCheck) -> None:
    for line in cast(list[str], check.metadata["illegal"]):
        output.print_error(line, bold=False)
    output.new_line()


def _within(module: str, packages: Collection[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
