"""Mail as a source: folders of messages, Maildir, IMAP and POP3."""
