"""A contract type for import-linter: a package may import only the packages of ours that are listed.

The built-in types list what is forbidden, so that a package which is added later is allowed by default. Here it is not.
What is not ours (the standard library, dependencies) is left to other contracts.
"""

from __future__ import annotations

from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class MayImportOnly(Contract):
    """Options: ``source_modules``, packages that the rule is about; ``allowed_modules``, what else they may import.

    A source may always import itself, but not another source. Every direct import counts, also one in a function or
    for type checking only.
    """

    type_name = "may_import_only"

    source_modules = fields.ListField(subfield=fields.ModuleField())
    allowed_modules = fields.ListField(subfield=fields.ModuleField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that no rule allows, as ``importer -> imported (line n)``."""
        ours = tuple(cast(list[str], self.session_options["root_packages"]))
        allowed = tuple(str(module) for module in cast(list[object] | None, self.allowed_modules) or ())
        illegal = []
        for source in (str(module) for module in cast(list[object], self.source_modules)):
            for importer in sorted({source, *graph.find_descendants(source)}):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if _within(imported, ours) and not _within(imported, (source, *allowed)):
                        line = graph.get_import_details(importer=importer, imported=imported)[0]["line_number"]
                        illegal.append(f"{importer} -> {imported} (line {line})")
        return ContractCheck(kept=not illegal, metadata={"illegal": illegal})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per import that is not allowed."""
        for line in cast(list[str], check.metadata["illegal"]):
            output.print_error(line, bold=False)
        output.new_line()


def _within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
