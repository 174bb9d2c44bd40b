"""One extractor by rules for Mem0, MemOS, Graphiti and LangMem, so that one run can compare their time and space.

It recognises whose prompt it got, and answers any other with HTTP 422 and one line. It is a stand-in for measuring time
and space alone: what a memory keeps by these rules says nothing of its quality. Nothing is ever rewritten or removed by
LangMem; the conformance suite asks for the first of two values after the second was told.

python -m tests.backends.scripted_models [--keep named|sentences] [--host HOST] [--port PORT]

prints its base URL, then serves until it is killed. What each keeps: extraction_rules.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import get_args

from backends.graphiti.tests import scripted_extractor as graphiti
from backends.langmem.tests import scripted_extractor as langmem
from backends.mem0.tests import scripted_extractor as mem0
from backends.memos.tests import scripted_extractor as memos
from tests.backends.extraction_rules import Keep
from tests.support.model_script import Body, Message, UnknownPromptError
from tests.support.model_server import EXTRACTOR, ModelServer

_RULES = (mem0.reply_of, memos.reply_of, graphiti.reply_of, partial(langmem.reply_of, rewrites=False))


def reply_of(body: Body, keep: Keep = "named") -> str | Message:
    """What the extractor of whichever memory it is answers. Raises UnknownPromptError for a prompt of none of them."""
    for rule in _RULES:
        try:
            return rule(body, keep)
        except UnknownPromptError:
            continue
    raise UnknownPromptError("the prompt is none of Mem0, MemOS, Graphiti and LangMem")


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.backends.scripted_models", description=__doc__)
    parser.add_argument("--keep", choices=get_args(Keep), default="named")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=0, help="by default one that the system chooses")
    arguments = parser.parse_args(argv)
    try:
        server = ModelServer(partial(reply_of, keep=arguments.keep), arguments.host, arguments.port, model=EXTRACTOR)
    except (OSError, OverflowError) as error:
        parser.error(f"--host {arguments.host} --port {arguments.port}: {error}")
    sys.stdout.write(f"{server.base_url}\n")
    sys.stdout.flush()
    server.join()


if __name__ == "__main__":
    main()
