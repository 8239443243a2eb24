"""A client next door: something of its own in every table, and a value of its own for every parameter."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from gristmill.db import Tx

NUMBER = 7_700_007  # the id of everything that is the neighbour's, its scope included
SECRET = "neighbour's secret"
HASH = bytes(range(32))
KEY = "person::neighbour"

# what is of the machine, and nobody's
MACHINE = """
INSERT INTO queue (name) VALUES ('beta');
INSERT INTO worker (id, name, process, queues, concurrency, lease_for) OVERRIDING SYSTEM VALUE
VALUES (7, 'machine', 'process', '{beta}', 1, '2 min');
INSERT INTO embedding_model (id, name, dimensions, current) OVERRIDING SYSTEM VALUE VALUES (3, 'model', 3, true);
"""
ROWS = """
INSERT INTO scope (id, client, project) OVERRIDING SYSTEM VALUE VALUES (%(n)s, 'beta', '');
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
INSERT INTO schedule_run (scope, name, at, task, problem) VALUES (%(n)s, 'beta', clock(), %(n)s, 'neighbour''s secret');
INSERT INTO queue_depth (queue, scope, opened) VALUES ('beta', %(n)s, 8);
INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
VALUES ('beta', %(n)s, 'beta.work', 'neighbour''s secret', 1, clock(), clock(), 'neighbour''s secret', ARRAY[%(n)s]);
INSERT INTO queue_sample (queue, scope, at, opened, completed, failed, skipped, cancelled, retried, dead)
VALUES ('beta', %(n)s, clock(), 8, 7, 0, 0, 0, 0, 0);
INSERT INTO queue_sampled (queue, scope, opened, completed, failed, skipped, cancelled, retried, dead)
VALUES ('beta', %(n)s, 8, 7, 0, 0, 0, 0, 0);
INSERT INTO bulk_action (id, scope, created_by, action, filter, last_id) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'cancel', '{"text": "neighbour''s secret"}', %(n)s);
INSERT INTO bulk_change (bulk, scope, task, was) VALUES (%(n)s, %(n)s, %(n)s, '{}');
INSERT INTO blob (hash, size) VALUES (%(hash)s, 3);
INSERT INTO blob_piece (blob, n, bytes) SELECT id, 0, 'neighbour''s secret' FROM blob WHERE hash = %(hash)s;
INSERT INTO document (id, scope, urn, version, hash, name, title, type, pages, task, opening) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'urn:beta', 1, %(hash)s, 'neighbour''s secret', 'neighbour''s secret', 'pdf', 1, %(n)s + 1,
        %(n)s);
INSERT INTO phase (document, ordinal, name, unit, shown, scope, task)
VALUES (%(n)s, 10, 'ocr', 'page', true, %(n)s, %(n)s + 1);
INSERT INTO page (document, number, scope, method, text, key, divided, words)
VALUES (%(n)s, 1, %(n)s, 'text', 'neighbour''s secret', %(hash)s, %(hash)s, 'neighbour''s secret');
INSERT INTO former_version (scope, urn, version, name, added_at, pages, text)
VALUES (%(n)s, 'urn:beta', 1, 'neighbour''s secret', clock(), 1, 'neighbour''s secret');
INSERT INTO kept_part (container, urn, scope) VALUES (%(n)s, 'urn:beta', %(n)s);
INSERT INTO chunk (id, scope, document, page, ordinal, start, stop, tokens, text, hash) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 1, 0, 0, 3, 1, 'neighbour''s secret', %(hash)s);
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
INSERT INTO link (id, scope, hash, url, host, verdict, reason, state, context) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(hash)s, 'neighbour''s secret', 'beta', 'uncertain', 'neighbour''s secret', 'waiting',
        'neighbour''s secret');
INSERT INTO link_place (link, scope, urn, document, label, context)
VALUES (%(n)s, %(n)s, 'urn:beta', %(n)s, 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO link_rule (id, scope, effect, domain, by) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'allow', 'beta', 'neighbour''s secret');
INSERT INTO alarm (id, scope, rule, subject, level, sentence, since, seen_at, fired_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'beta', 'beta', 'warning', 'neighbour''s secret', clock(), clock(), clock());
INSERT INTO alarm_delivery (alarm, scope, channel, event, number, sent_at)
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'fired', 1, clock());
INSERT INTO extraction (chunk, scope, key) VALUES (%(n)s, %(n)s, %(hash)s);
INSERT INTO source (id, scope, name, kind, options, every, listing_every) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'beta', 'beta', '{"path": "neighbour''s secret"}', '5 min', '1 day');
INSERT INTO source_item (id, source, scope, external, state, urn, title, thread) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'beta', 'INDEXED', 'urn:beta', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO source_raw (item, n, scope, bytes) VALUES (%(n)s, 0, %(n)s, 'neighbour''s secret');
INSERT INTO mail_thread (scope, message, thread) VALUES (%(n)s, 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO saved_view (id, scope, page, name, query) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, '/documents', 'neighbour''s secret', 'name=secret');
INSERT INTO data_import (id, scope, name, state, plan, hash, size, estimated_rows, estimated_tokens, estimated_cost)
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'draft', '{}', %(hash)s, 1, 1, 1, 1);
INSERT INTO data_records (id, scope, import, row, hash, whole, external_id, content, columns, embed, created_at,
                          updated_at, chunk) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 1, %(uuid)s, %(uuid)s, 'beta', 'neighbour''s secret',
        '{"beta": "neighbour''s secret"}', true, clock(), clock(), %(n)s);
INSERT INTO data_rejected (import, row, scope, why, reason, cells)
VALUES (%(n)s, 1, %(n)s, 'invalid', 'neighbour''s secret', '{"neighbour''s secret"}');
INSERT INTO data_change (scope, import, row, hash, whole, external_id, content, columns, embed, created_at, updated_at)
VALUES (%(n)s, %(n)s, 1, %(uuid)s, %(uuid)s, 'beta', 'neighbour''s secret', '{}', true, clock(),
        clock());
INSERT INTO node_merge (id, scope, alias, key, repointed) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'person::alias', %(key)s, '{}');
INSERT INTO merged_mention (merge, chunk, key, scope, type, name, count, stated, properties)
VALUES (%(n)s, %(n)s, %(key)s, %(n)s, 'person', 'neighbour''s secret', 1, false, '{}');
INSERT INTO merged_relation (merge, chunk, source, type, target, scope, extracted, stated, properties)
VALUES (%(n)s, %(n)s, %(key)s, 'KNOWS', 'person::friend', %(n)s, true, false, '{}');
INSERT INTO merged_entity (merge, scope, key, type, properties, linked)
VALUES (%(n)s, %(n)s, %(key)s, 'person', '{"name": "neighbour''s secret"}', true);
INSERT INTO item (id, scope, type, urn, document, message, title, text, note, state, written_at, task)
OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'email', 'urn:beta', %(n)s, 'neighbour''s secret', 'neighbour''s secret', 'neighbour''s secret',
        '{"sender": "neighbour''s secret"}', 'ready_for_execution', clock(), %(n)s);
INSERT INTO item_source (scope, urn, item) VALUES (%(n)s, 'urn:beta', %(n)s);
INSERT INTO sent_mail (scope, urn, message, written_at) VALUES (%(n)s, 'urn:beta', 'neighbour''s secret', clock());
INSERT INTO item_event (item, scope, state, why, by)
VALUES (%(n)s, %(n)s, 'new', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO item_memory (item, scope, summary, routing, reason)
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'now', 'neighbour''s secret');
INSERT INTO item_message (item, scope, kind, by, text)
VALUES (%(n)s, %(n)s, 'user', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO item_identifier (scope, kind, value, item) VALUES (%(n)s, 'invoice', 'neighbour''s secret', %(n)s);
INSERT INTO item_checkpoint (item, scope, run, done, data)
VALUES (%(n)s, %(n)s, 1, 1, '{"text": "neighbour''s secret"}');
INSERT INTO item_result (item, run, scope, by, summary, reply)
VALUES (%(n)s, 1, %(n)s, 'neighbour''s secret', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO decision (id, item, scope, author, route, standing, urgency, assign, rules, characters, digest, inputs,
                      path) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'rules', 'now', 'now', 'normal', 'neighbour''s secret', 1, 1, %(hash)s,
        '{"facts": "neighbour''s secret"}', '[{"sentence": "neighbour''s secret"}]');
UPDATE item SET decision = %(n)s WHERE id = %(n)s;
INSERT INTO convention (id, scope, text, note, created_by) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO convention_version (convention, version, scope, text, enabled, by)
VALUES (%(n)s, 1, %(n)s, 'neighbour''s secret', true, 'neighbour''s secret');
INSERT INTO convention_tally (convention, scope, n, last_at) VALUES (%(n)s, %(n)s, 7, clock());
INSERT INTO client_profile (scope, names, addresses, lead_days, changed_by)
VALUES (%(n)s, '{"neighbour''s secret"}', '{"neighbour''s secret"}', 7, 'neighbour''s secret');
INSERT INTO conversation (id, scope, owner, title, summary) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'operator', 'neighbour''s secret', 'neighbour''s secret');
INSERT INTO conversation_message (id, conversation, scope, role, state, text, answer) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'user', 'answered', 'neighbour''s secret', NULL),
       (%(n)s + 1, %(n)s, %(n)s, 'assistant', 'done', 'neighbour''s secret', '{"kind": "answer"}');
INSERT INTO audit (id, scope, caller, role, action, subject, details, address) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'admin', 'retry', 'neighbour''s secret', '{}', '10.7.7.7');
INSERT INTO agent_run (id, scope, request, asked_by, state, fence, task, created_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'neighbour''s secret', 'neighbour''s secret', 'running', 1, %(n)s, clock());
INSERT INTO agent_step (id, run, scope, node, title, started_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'plan', 'neighbour''s secret', clock());
INSERT INTO agent_context (run, scope, level, place, summary, updated_at)
VALUES (%(n)s, %(n)s, 'goal', '1', 'neighbour''s secret', clock());
INSERT INTO agent_delegation (run, scope, delegation, depth, agent, task, output, started_at)
VALUES (%(n)s, %(n)s, 'd1', 1, 'neighbour''s secret', 'neighbour''s secret', '{"result": "neighbour''s secret"}',
        clock());
INSERT INTO agent_text (id, run, scope, source, text, hash, read_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'neighbour''s secret', 'neighbour''s secret', %(hash)s, clock());
INSERT INTO agent_effect (id, run, scope, key, tool, arguments, hash, summary, changes, repeatable, state, attempt,
                          approved_by, approved_at, intended_at, started_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, %(key)s, 'send_mail', '{"to": "neighbour''s secret"}', %(hash)s, 'neighbour''s secret',
        'outside', false, 'executing', 1, 'neighbour''s secret', clock(), clock(), clock());
INSERT INTO agent_question (id, run, scope, key, kind, sentence, effect, asked_at) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, %(key)s, 'unknown_effect', 'neighbour''s secret', %(n)s, clock());
INSERT INTO agent_policy (scope, branches, forbidden_files, max_files, auto_push, recipients, domains, commands, tools,
                          updated_at, updated_by)
VALUES (%(n)s, '{}', '{}', 20, false, '{"neighbour''s secret"}', '{}', '{}', '{}', clock(), 'neighbour''s secret');
INSERT INTO agent_session (id, scope, run, source, summary, details, timestamp) OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, %(n)s, 'chat', 'neighbour''s secret', '{"text": "neighbour''s secret"}', clock());
INSERT INTO agent_procedure (id, scope, trigger_pattern, steps, hash, source, stated_by, created_at)
OVERRIDING SYSTEM VALUE
VALUES (%(n)s, %(n)s, 'neighbour''s secret', '[{"agent": "git", "action": "neighbour''s secret", "parameters": {}}]',
        %(hash)s, 'user_defined', 'neighbour''s secret', clock());
INSERT INTO agent_fact (document, scope, run, evidence_scope, evidence_urn, quote, seen_in, created_at)
VALUES (%(n)s, %(n)s, %(n)s, %(n)s, 'urn:beta', 'neighbour''s secret', %(n)s, clock());
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
    ("notes", "text[]"): ["{}"],
    ("key", "text"): KEY,
    ("keys", "text[]"): [KEY, "person::friend"],
    ("source", "text"): KEY,
    ("target", "text"): "person::friend",
    ("urn", "text"): "urn:beta",
    ("cron", "text"): "* * * * *",
    ("", "uuid"): UUID(int=NUMBER),
    ("", "uuid[]"): [UUID(int=NUMBER)],
    ("", "bytea"): HASH,
    ("", "bytea[]"): [HASH],
    ("", "boolean"): True,
    ("", "real"): 0.5,
    ("", "double precision"): 0.5,
    ("", "interval"): timedelta(seconds=1),
    ("", "timestamp with time zone"): "2026-01-01T00:00:00Z",
    ("", "timestamp with time zone[]"): ["2026-01-01T00:00:00Z"],
    ("", "jsonb"): "[]",
    # a row of any table: keys that are no column of it count for nothing
    ("rows", "json"): f'[{{"id": {NUMBER}, "scope": {NUMBER}, "document": {NUMBER}, "task": {NUMBER}}}]',
    ("", "boolean[]"): [False],
    ("", "vector"): "[1,0,0]",
    ("", "task_status"): "pending",
    ("", "task_status[]"): ["pending"],
    ("", "numeric"): 1,
}

# For single statements, by their name.
SPECIAL: dict[str, dict[str, Any]] = {"plan_anew": {"names": ["enable_sort"]}}


async def move_in(tx: Tx) -> None:
    """Put the neighbour into the database."""
    await set_up_machine(tx)
    await put_belongings(tx)


async def set_up_machine(tx: Tx) -> None:
    await _run(tx, MACHINE)


async def put_belongings(tx: Tx) -> None:
    """Everything that is the neighbour's, on a machine that is set up for it."""
    await _run(tx, ROWS)


async def _run(tx: Tx, statements: str) -> None:
    for statement in statements.strip().split(";\n"):
        await tx.execute(statement.rstrip(";"), n=NUMBER, hash=HASH, key=KEY, uuid=UUID(int=NUMBER))  # pyright: ignore[reportArgumentType]
    await tx.flush()
