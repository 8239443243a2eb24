"""The statements about links, for the files of this folder that run them."""

from gristmill.db import queries

SQL = queries("gristmill.sources.link", "links.sql")
