"""MemArena: the harness that measures memory backends of personal assistants."""
