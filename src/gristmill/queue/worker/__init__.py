"""The life of a worker: it claims tasks, runs their handlers, settles their answers, and keeps its leases alive."""
