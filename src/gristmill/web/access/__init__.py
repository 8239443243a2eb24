"""Access: keys, sessions, one-time links and the audit log."""
