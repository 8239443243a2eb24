"""What operators do with tasks and queues: look, ask why, cancel, retry, move, set, erase."""
