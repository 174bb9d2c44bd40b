# mypy: allow-subclassing-any
# The library's classes are of unknown type where types are checked, since it is not installed there.
"""Opens Kuzu databases for Graphiti: a file per namespace, with limits, and with the indexes that Graphiti omits."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memarena_backend_graphiti.library import get_fulltext_indices, kuzu, kuzu_driver

FILE_NAME = "graph.kuzu"
_MAPPED_BYTES = 1 << 34
"""Address space of one database. By default Kuzu maps 8 TiB, and a process can map about fifteen of those."""
_THREADS = 1
"""With more threads the order of rows with equal scores varies; a namespace is small enough for one."""
_INDEXED = ("'Entity'", "'RelatesToNode_'")
"""Tables that keyword search reads; an index on the others would only cost time and space."""

_NO_WORD = re.compile(r"[\s0-9!-/:-@\[-`{-~]+")
"""Characters that Kuzu's index ignores: digits, and all ASCII characters that are not letters."""

# Graphiti's driver opens a path without any options. This one gets an open database instead of a path.
kuzu_driver.kuzu = SimpleNamespace(
    Database=lambda database: database, Connection=kuzu.Connection, AsyncConnection=kuzu.AsyncConnection
)


class Driver(kuzu_driver.KuzuDriver):
    """Graphiti's driver for the file in a folder. Keeps the first error of the database, which Graphiti may swallow.

    ``read_only``: nothing in the folder is changed, not even by closing the database.
    """

    GROUP = "memory"
    """The single group of every database. Without a name Graphiti would not look for known entities."""
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
        """Create the schema, unless the database is read-only. The library's constructor calls this."""
        if not self._read_only:
            super().setup_schema()

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """Run a query as the library does, with cleaned keywords, and keep the first error."""
        if "QUERY_FTS_INDEX" in cypher_query_:
            kwargs["query"] = keywords_of(kwargs["query"])
        try:
            return await super().execute_query(cypher_query_, **kwargs)
        except Exception as error:
            self.fault = self.fault or error
            raise

    def rows(self, query: str) -> list[list[Any]]:
        """Return the rows of a query without parameters, outside of any event loop."""
        connection = kuzu.Connection(self.db)
        try:
            return [list(row) for row in connection.execute(query).get_all()]
        finally:
            connection.close()

    def shut(self) -> None:
        """Write everything to the file and close it."""
        # An abandoned query may still run, and its connection must outlive it.
        self.client.executor.shutdown(wait=True)
        self.client.close()
        self.db.close()
        # Kuzu allocates 60 MB when it opens a file, and the allocator does not return them to the system by itself.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)


def keywords_of(text: str) -> str:
    """Return the words of a text for keyword search.

    Once a row of its table has changed, Kuzu 0.11 finds nothing for a text that ends in punctuation, as questions do,
    and it reads words separated by a line break or a tab as one word.
    """
    return _NO_WORD.sub(" ", text).strip()


def make_empty(folder: Path, buffer_pool_mb: int) -> None:
    """Create an empty database in the folder. Takes a second, nearly all of it for the indexes."""
    driver = Driver(folder, buffer_pool_mb, read_only=False)
    try:
        connection = kuzu.Connection(driver.db)
        for statement in get_fulltext_indices(driver.provider):
            if any(table in statement for table in _INDEXED):
                connection.execute(statement)
        connection.close()
    finally:
        driver.shut()
