"""MemOS memory backend: memories that a language model extracts from sessions, in an embedded vector store."""
