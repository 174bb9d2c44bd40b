"""Calls backends over the gRPC contract: timeouts, timed calls, typed errors; callers decide about retries."""
