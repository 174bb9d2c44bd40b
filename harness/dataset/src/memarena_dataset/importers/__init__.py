"""Imports published data sets into our layout; everything that is skipped or changed is reported with the reason."""
