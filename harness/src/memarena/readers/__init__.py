"""Readers: starting, checking and scripting the model servers that answer over what a memory found."""

from memarena.readers.extractive import data_files
from memarena.readers.helpers import HELPER_ROLES, HelperRole, start_helper
from memarena.readers.scripted import NullReader, Script
from memarena.readers.starting import probe, start_reader
from memarena.readers.types import ReaderError, RunningReader
from memarena.readers.warming import warm_up

__all__ = [
    "HELPER_ROLES",
    "HelperRole",
    "NullReader",
    "ReaderError",
    "RunningReader",
    "Script",
    "data_files",
    "probe",
    "start_helper",
    "start_reader",
    "warm_up",
]
