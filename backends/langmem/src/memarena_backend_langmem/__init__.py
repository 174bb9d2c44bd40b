"""LangMem memory backend: memories that an LLM writes, in a LangGraph store per namespace."""
