"""Locates manifests of installed backends that distributions declare in the entry point group ``memarena.backends``.

The value of an entry point names a package that carries ``backend.toml`` as package data. The package is looked up and
not imported: no code of a backend runs within the harness. An editable installation of ``PROJECT/src/PACKAGE`` has its
manifest in the project's folder, from where a wheel takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from memarena.execution.errors import RunError

GROUP = "memarena.backends"
MANIFEST = "backend.toml"


def installed_manifests() -> Iterator[Path]:
    """Yield the manifest's path of each entry point, in the order of the entry points' names.

    Raises :class:`RunError` naming distribution and entry point if one leads to no manifest.
    """
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        yield _manifest_of(entry)


def _manifest_of(entry: EntryPoint) -> Path:
    """Return the manifest of an entry point, found without importing the package."""
    package, *below = entry.value.split(".")
    # By folders below the package, since find_spec("a.b") would import `a`.
    for folder in _folders_of(package):
        path = Path(folder, *below, MANIFEST)
        if path.is_file():
            return path
        source = Path(folder).parent
        if not below and source.name == "src" and (path := source.parent / MANIFEST).is_file():
            return path
    distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a distribution without a name"
    raise RunError(
        f"{distribution}: entry point {entry.name} = {entry.value!r} of {GROUP}: expected the name of a package that "
        f"holds {MANIFEST}"
    )


def _folders_of(package: str) -> list[str]:
    """Return the folders of a top-level package; none if there is no such package."""
    try:
        spec = find_spec(package)
    except ValueError:  # an empty name, or a module that was not imported but run
        return []
    return list(spec.submodule_search_locations or ()) if spec else []
