"""Reads, writes, checks and imports data sets: records, typed values, the projection of an ego."""
