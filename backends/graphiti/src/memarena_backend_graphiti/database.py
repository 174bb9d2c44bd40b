# mypy: allow-subclassing-any
# The library's classes are of unknown type where types are checked, since it is not installed there.
"""Kuzu under Graphiti: one file per namespace, with bounds, and with the indexes that Graphiti leaves out."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memarena_backend_graphiti.library import get_fulltext_indices, kuzu, kuzu_driver

FILE_NAME = "graph.kuzu"
_MAPPED_BYTES = 1 << 34
"""Address space of one database. By itself Kuzu maps 8 TiB, and a process can map about fifteen of those."""
_THREADS = 1
"""With more, rows of equal score come in another order each time; what a namespace holds is small."""
_INDEXED = ("'Entity'", "'RelatesToNode_'")
"""Tables that a search reads by keywords; an index on the others would only cost time and space."""

_NO_WORD = re.compile(r"[\s0-9!-/:-@\[-`{-~]+")
"""What Kuzu's index holds nothing of: digits, and all signs of ASCII that are no letters."""

# Graphiti's driver opens a path without any options. This one is handed an open database in its place.
kuzu_driver.kuzu = SimpleNamespace(
    Database=lambda database: database, Connection=kuzu.Connection, AsyncConnection=kuzu.AsyncConnection
)


class Driver(kuzu_driver.KuzuDriver):
    """Graphiti's driver over the file in a folder. Keeps the first fault of the database, which Graphiti may swallow.

    ``read_only``: nothing of the folder is changed, not even by closing it.
    """

    GROUP = "memory"
    """The one group of every database. Graphiti skips a look at known names where a group has no name."""
    _database = GROUP  # the library reads it and, over Kuzu, does not set it (its issue 1258)

    def __init__(self, folder: Path, buffer_pool_mb: int, *, read_only: bool) -> None:
        self._read_only = read_only
        self.fault: Exception | None = None
        database = kuzu.Database(
            folder / FILE_NAME,
            buffer_pool_size=buffer_pool_mb << 20,
            max_num_threads=_THREADS,
            max_db_size=_MAPPED_BYTES,
            read_only=read_only,
        )
        super().__init__(database)

    def setup_schema(self) -> None:
        """Called by the library's constructor."""
        if not self._read_only:
            super().setup_schema()

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """As the library's, and a fault is kept."""
        if "QUERY_FTS_INDEX" in cypher_query_:
            kwargs["query"] = keywords_of(kwargs["query"])
        try:
            return await super().execute_query(cypher_query_, **kwargs)
        except Exception as error:
            self.fault = self.fault or error
            raise

    def rows(self, query: str) -> list[list[Any]]:
        """The rows of a query without parameters, outside of any event loop."""
        connection = kuzu.Connection(self.db)
        try:
            return [list(row) for row in connection.execute(query).get_all()]
        finally:
            connection.close()

    def shut(self) -> None:
        """Write everything to the file and let go of it."""
        # A query that was given up may still run, and its connection must outlive it.
        self.client.executor.shutdown(wait=True)
        self.client.close()
        self.db.close()
        # Kuzu allocates 60 MB when it opens a file, and the allocator keeps them for a next time that may not come.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)


def keywords_of(text: str) -> str:
    """The words of a text for a search by keywords.

    Once a row of its table was changed, Kuzu 0.11 finds nothing for a text that ends in a sign, as a question does, and
    it takes words that a line break or a tabulator parts for one.
    """
    return _NO_WORD.sub(" ", text).strip()


def make_empty(folder: Path, buffer_pool_mb: int) -> None:
    """A database without content in the folder. Takes a second, nearly all of it the indexes."""
    driver = Driver(folder, buffer_pool_mb, read_only=False)
    try:
        connection = kuzu.Connection(driver.db)
        for statement in get_fulltext_indices(driver.provider):
            if any(table in statement for table in _INDEXED):
                connection.execute(statement)
        connection.close()
    finally:
        driver.shut()
