"""The paper's published tables as data."""
