"""A client next door: something of its own in every table, and a value of its own for every parameter."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from gristmill.db import Tx

NUMBER = 7_700_007  # the id of everything that is the neighbour's, its scope included
SECRET = "neighbour's secret"
HASH = bytes(range(32))
KEY = "person::neighbour"

ROWS = """
INSERT INTO scope (id, client, project) OVERRIDING SYSTEM VALUE VALUES (%(n)s, 'beta', '');
INSERT INTO queue (name) VALUES ('beta');
INSERT INTO worker (id, name, process, queues, concurrency, lease_for) OVERRIDING SYSTEM VALUE
VALUES (7, 'machine', 'process', '{beta}', 1, '2 min');
INSERT INTO task (id, created_at, scope, lane, queue, kind, owner, serial_key, unique_key, unique_held, payload, error)
VALUES (%(n)s, clock(), %(n)s, 1203, 'beta', 'beta.work', 'document:7700007', 'serial', 'unique', true,
        '{"page": 1, "ordinal": 0, "text": "neighbour''s secret"}', 'neighbour''s secret');
INSERT INTO task (id, created_at, scope, lane, kind, wait, payload)
VALUES (%(n)s + 1, clock(), %(n)s, 0, 'group', 'children', '{"label": "neighbour''s secret"}');
INSERT INTO task_group (id, scope, pending) VALUES (%(n)s + 1, %(n)s, 1);
INSERT INTO queue_tally (queue, scope, worker, completed) VALUES ('beta', %(n)s, 7, 7);
INSERT INTO ticket (id, seq, lane, queue) VALUES (%(n)s, %(n)s, 1203, 'beta');
INSERT INTO serial_head (key, scope, task) VALUES ('serial', %(n)s, %(n)s);
INSERT INTO task_progress (task, scope, at, current, message) VALUES (%(n)s, %(n)s, clock(), 1, 'neighbour''s secret');
INSERT INTO task_failure (task, scope, attempt, at, error, fingerprint)
VALUES (%(n)s, %(n)s, 1, clock(), 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO schedule (name, kind, queue, scope, payload, cron)
VALUES ('beta', 'beta.work', 'beta', %(n)s, '{}', '* * * * *');
INSERT INTO blob (hash, size) VALUES (%(hash)s, 3);
INSERT INTO blob_piece (blob, n, bytes) SELECT id, 0, 'neighbour''s secret' FROM blob WHERE hash = %(hash)s;
INSERT INTO document (id, scope, urn, version, hash, name, title, type, pages, task, opening) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'urn:beta', 1, %(hash)s, 'neighbour''s secret', 'neighbour''s secret', 'pdf', 1, %(n)s + 1,
        %(n)s);
INSERT INTO phase (document, ordinal, name, unit, shown, scope, task)
VALUES (%(n)s, 10, 'ocr', 'page', true, %(n)s, %(n)s + 1);
INSERT INTO page (document, number, scope, method, text, key, divided)
VALUES (%(n)s, 1, %(n)s, 'text', 'neighbour''s secret', %(hash)s, %(hash)s);
INSERT INTO kept_part (container, urn, scope) VALUES (%(n)s, 'urn:beta', %(n)s);
INSERT INTO chunk (id, scope, document, page, ordinal, start, stop, tokens, text, hash) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 1, 0, 0, 3, 1, 'neighbour''s secret', %(hash)s);
INSERT INTO embedding_model (id, name, dimensions, current) OVERRIDING SYSTEM VALUE VALUES (3, 'model', 3, true);
INSERT INTO embedding (model, chunk, scope, vector) VALUES (3, %(n)s, %(n)s, '[1,0,0]');
INSERT INTO fresh_terms (chunk, scope, length, terms) VALUES (%(n)s, %(n)s, 1, '{"neighbour''s secret": 1}');
INSERT INTO segment (id, scope, size, length, languages, chunks) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 1, 1, '{en}', int8send(%(n)s));
INSERT INTO posting (segment, term, scope, data) VALUES (%(n)s, 'term', %(n)s, 'neighbour''s secret');
INSERT INTO gone_chunk (chunk, scope) VALUES (%(n)s, %(n)s);
INSERT INTO alias (client, alias, key) VALUES ('beta', 'person::alias', %(key)s);
INSERT INTO entity (scope, key, type, properties, linked)
VALUES (%(n)s, %(key)s, 'person', '{"name": "neighbour''s secret"}', true);
INSERT INTO mention (chunk, key, scope, type, name)
VALUES (%(n)s, %(key)s, %(n)s, 'person', 'neighbour''s secret'),
       (%(n)s, 'person::friend', %(n)s, 'person', 'neighbour''s secret');
INSERT INTO relation (chunk, source, type, target, scope, extracted)
VALUES (%(n)s, %(key)s, 'KNOWS', 'person::friend', %(n)s, true);
INSERT INTO extraction (chunk, scope, key) VALUES (%(n)s, %(n)s, %(hash)s);
"""

# By the name and type of a parameter; without a name, for all of that type.
VALUES: dict[tuple[str, str], Any] = {
    ("", "bigint"): NUMBER,
    ("", "bigint[]"): [NUMBER, NUMBER + 1],
    ("", "integer"): 1,
    ("", "integer[]"): [1],
    ("scope", "integer"): NUMBER,
    ("scopes", "integer[]"): [NUMBER],
    ("", "smallint"): 3,
    ("", "smallint[]"): [3],
    ("", "text"): "beta",
    ("", "text[]"): ["beta"],
    ("payloads", "text[]"): ["{}"],
    ("key", "text"): KEY,
    ("keys", "text[]"): [KEY, "person::friend"],
    ("source", "text"): KEY,
    ("target", "text"): "person::friend",
    ("urn", "text"): "urn:beta",
    ("cron", "text"): "* * * * *",
    ("", "uuid"): UUID(int=NUMBER),
    ("", "bytea"): HASH,
    ("", "bytea[]"): [HASH],
    ("", "boolean"): True,
    ("", "real"): 0.5,
    ("", "double precision"): 0.5,
    ("", "interval"): timedelta(seconds=1),
    ("", "timestamp with time zone"): "2026-01-01T00:00:00Z",
    ("", "timestamp with time zone[]"): ["2026-01-01T00:00:00Z"],
    ("", "jsonb"): "[]",
    ("", "vector"): "[1,0,0]",
    ("", "task_status"): "pending",
    ("", "task_status[]"): ["pending"],
    ("", "numeric"): 1,
}

# For single statements, by their name.
SPECIAL: dict[str, dict[str, Any]] = {"plan_anew": {"names": ["enable_sort"]}}


async def move_in(tx: Tx) -> None:
    """Put the neighbour into the database."""
    for statement in ROWS.strip().split(";\n"):
        await tx.execute(statement.rstrip(";"), n=NUMBER, hash=HASH, key=KEY)  # pyright: ignore[reportArgumentType]
    await tx.flush()
