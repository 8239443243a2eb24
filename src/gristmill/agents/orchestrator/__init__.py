"""The standard graph: a request is understood, planned, done step by step, judged and reported."""
