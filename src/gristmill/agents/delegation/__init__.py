"""The delegation graph: a request becomes a plan of delegations, agents do them, their results become one answer."""
