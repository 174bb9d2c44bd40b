"""Our side of the contract: deadlines, retries where allowed, typed errors."""
