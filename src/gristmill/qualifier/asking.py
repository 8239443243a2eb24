"""The handler that asks an LLM about an item, and writes what was decided with its advice."""

import asyncio
from dataclasses import replace
from functools import partial

from gristmill.db import Tx
from gristmill.errors import Cancelled, LeaseLost, Transient
from gristmill.ids import WorkItemId
from gristmill.models import Llm
from gristmill.qualifier.atoms import check_presence, make_node_key, without_gone_chunks
from gristmill.qualifier.casework import find_identifiers
from gristmill.qualifier.decisions import find_known
from gristmill.qualifier.letters import AskLlm
from gristmill.qualifier.llm_pass import Consultation, consult
from gristmill.qualifier.llm_tools import ToolCalls
from gristmill.qualifier.memory import remember_chunks
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.qualification import PreparedItem, decide_and_write, list_letters, load_customs, prepare
from gristmill.qualifier.texts import load_item_texts
from gristmill.queue import Done, Skip
from gristmill.rooms import Tools


async def ask_llm(letter: AskLlm, *, tools: Tools, llm: Llm) -> Done | Skip:
    """Decide about an item with the advice of an LLM.

    A busy or silent endpoint is waited for, for as long as it takes: the queue backs off from 5 s to 5 min. Whatever
    else goes wrong ends in the state `error`, where a person sees it.
    """
    prepared = await _prepare(letter.item, tools)
    if prepared is None:
        return Skip("The item is not to be decided any more.")
    try:
        found = await _consult(prepared, tools, llm)
    except (Transient, LeaseLost, Cancelled):
        raise
    except Exception as error:  # noqa: BLE001 the item shows it, and everything else goes on
        return Done(partial(_fail, item=letter.item, why=f"{type(error).__name__}: {error}"))
    own = make_node_key(prepared.item)
    has_atom = any(call.nodeKey == own for _, call in found.calls.notes)
    return Done(partial(_write, prepared=prepared, found=found), () if has_atom else list_letters(prepared))


async def _prepare(item: WorkItemId, tools: Tools) -> PreparedItem | None:
    """The words of the item, as they are now."""
    async with tools.db.reading() as tx:
        texts = await load_item_texts(tx, [item])
        if not texts or texts[0].item.state != "qualifying":
            return None
        found = texts[0].item
        customs = await load_customs(tx, [found.client])
    terms = customs.find_terms(found.client, found.project, tools.settings.qualifier)
    prepared = await asyncio.to_thread(prepare, texts[0], terms)
    async with tools.db.reading() as tx:
        known = await find_known(tx, found, find_identifiers(prepared.case.facts, prepared.wording.about.subject))
    return replace(prepared, case=replace(prepared.case, known=known))


async def _consult(prepared: PreparedItem, tools: Tools, llm: Llm) -> Consultation:
    item = prepared.item
    embedders = [tools.models.embedder, tools.models.built_in_embedder]
    calls = ToolCalls(tools.db, embedders, item, prepared.wording.text)
    model = tools.settings.llm.model
    return await consult(llm, calls, prepared.wording, prepared.case, model=model, urgent=item.foreground)


async def _write(tx: Tx, *, prepared: PreparedItem, found: Consultation) -> None:
    await check_presence(tx, prepared.item.id)
    with without_gone_chunks():
        chunks = await found.calls.write(tx)
    await decide_and_write(tx, prepared=prepared, advice=found.advice, summary=found.summary, asked=True)
    keys = [*(call.nodeKey for _, call in found.calls.notes), *(call.nodeKey for call in found.calls.nodes)]
    await remember_chunks(tx, prepared.item.id, keys, chunks)


async def _fail(tx: Tx, *, item: WorkItemId, why: str) -> None:
    await move_item(tx, item, "error", since=["qualifying"], why=why, by="llm")
