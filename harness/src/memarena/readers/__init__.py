"""Readers: starting, checking and scripting the model servers that answer over what a memory found."""

from typing import TYPE_CHECKING

from memarena.lazy_imports import imported_later

if TYPE_CHECKING:
    from memarena.readers.checking import check_reader
    from memarena.readers.extractive_words import data_files
    from memarena.readers.golden import count_template, golden_counts, template_fault
    from memarena.readers.helpers import HELPER_ROLES, HelperRole, start_helper
    from memarena.readers.probing import probe
    from memarena.readers.request_settings import RequestSettings
    from memarena.readers.scripted import NullReader, Script
    from memarena.readers.sglang_settings import SglangSettings
    from memarena.readers.starting import start_reader
    from memarena.readers.types import ReaderError, RunningReader
    from memarena.readers.warming import warm_up

__all__ = [
    "HELPER_ROLES",
    "HelperRole",
    "NullReader",
    "ReaderError",
    "RequestSettings",
    "RunningReader",
    "Script",
    "SglangSettings",
    "check_reader",
    "count_template",
    "data_files",
    "golden_counts",
    "probe",
    "start_helper",
    "start_reader",
    "template_fault",
    "warm_up",
]

_PLACES = {
    "HELPER_ROLES": "memarena.readers.helpers",
    "HelperRole": "memarena.readers.helpers",
    "NullReader": "memarena.readers.scripted",
    "ReaderError": "memarena.readers.types",
    "RequestSettings": "memarena.readers.request_settings",
    "RunningReader": "memarena.readers.types",
    "Script": "memarena.readers.scripted",
    "SglangSettings": "memarena.readers.sglang_settings",
    "check_reader": "memarena.readers.checking",
    "count_template": "memarena.readers.golden",
    "data_files": "memarena.readers.extractive_words",
    "golden_counts": "memarena.readers.golden",
    "probe": "memarena.readers.probing",
    "start_helper": "memarena.readers.helpers",
    "start_reader": "memarena.readers.starting",
    "template_fault": "memarena.readers.golden",
    "warm_up": "memarena.readers.warming",
}
"""Modules that are imported when a name is asked for: a server of this package loads nothing of the others."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
