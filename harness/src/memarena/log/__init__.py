"""The run log: record types, the one writer, readers."""
