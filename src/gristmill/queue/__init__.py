"""The durable task queue: send letters, let workers answer them, ask why."""
