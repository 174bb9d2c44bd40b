"""Python stubs of the MemoryBackend contract (package memarena.v1), generated from proto/."""
