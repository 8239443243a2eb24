"""One request from its first byte to its last: its turn, its attempts, and what its client sees."""

import asyncio
import itertools
import time
from dataclasses import dataclass

from aiohttp import web
from multidict import CIMultiDict

from gristmill.router.backends import whole
from gristmill.router.breaker import Failure
from gristmill.router.pool import Lease, Ticket
from gristmill.router.priority import Priority, PriorityTable, Sender
from gristmill.router.replies import JSON_TYPE, Sink, sink
from gristmill.router.responses import Whole
from gristmill.router.scheduler import Ended, Preempted, Scheduler, TurnedAway
from gristmill.router.upstream import AttemptFailed, Exchange
from gristmill.router.wire import (
    BadRequest,
    Call,
    Question,
    error_body,
    error_line,
    error_text,
    forwarded,
    header,
    read_question,
    returned,
)
from gristmill.settings import RouterSettings

MOST_ERROR = 64 * 1024
GIVEN_UP = {Failure.HEADER_TIMEOUT: 504, Failure.IDLE_TIMEOUT: 504, Failure.CONNECT: 502, Failure.BROKEN: 502}


class PassedOn(Exception):
    """The backend refused the request itself (a 4xx): the client gets its words and nobody else is asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Visit:
    """A request while it is being served."""

    request: web.BaseRequest
    question: Question
    ticket: Ticket
    holds_back: bool
    arrived: float
    response: web.StreamResponse | None = None
    failure: AttemptFailed | None = None
    first: float = 0.0


class Relay:
    """Serves the calls that reach a model."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler) -> None:
        self._scheduler, self._metrics = scheduler, scheduler.metrics
        self._table = PriorityTable(settings.priorities)
        limits = (settings.deadline_p0, settings.deadline_p1, settings.deadline_p2, settings.deadline_p3)
        self._deadlines = [limit.total_seconds() for limit in limits]
        self._patience = settings.patience.total_seconds()
        self._holdback_limit = settings.holdback_limit
        self._ids = itertools.count(1)
        self._now = time.monotonic

    async def serve(self, request: web.BaseRequest, call: Call, sender: Sender) -> web.StreamResponse:
        """Answer one call; raises BadRequest when it is wrong."""
        question = read_question(call, await request.read())
        headers = request.headers
        question.extra = forwarded(headers.items(), headers.get("Connection", ""))
        self._must_be_served(question.full_model)
        ticket, auto = self._ticket(request, question, sender)
        asked = headers.get("X-Router-Holdback")
        holds_back = not question.stream or (ticket.background and not auto if asked is None else asked != "0")
        visit = Visit(request, question, ticket, holds_back, ticket.arrived)
        try:
            response = await self._answered(visit)
        except (asyncio.CancelledError, ConnectionError) as gone:
            self._metrics.requests[ticket.priority.label, call.api, "gone"] += 1
            self._scheduler.gone(ticket)
            if isinstance(gone, asyncio.CancelledError):
                raise
            return visit.response or web.Response(status=499)  # nobody will read it
        finally:
            if not ticket.ended:
                self._scheduler.gone(ticket)
        self._metrics.requests[ticket.priority.label, call.api, str(response.status)] += 1
        return response

    def _must_be_served(self, model: str) -> None:
        if any(self._scheduler.lanes.serving(model)):
            return
        adapters = self._scheduler.adapters.values()
        if any(adapter.models is None and not adapter.spec.models for adapter in adapters):
            raise BadRequest("a backend has not told yet which models it serves; try again in a moment", 503)
        known = sorted({name for adapter in adapters for name in (adapter.models or adapter.spec.models)})
        raise BadRequest(
            f"model {model.removesuffix(':latest')!r} not found; available: {', '.join(known) or 'none'}", 404
        )

    def _ticket(self, request: web.BaseRequest, question: Question, sender: Sender) -> tuple[Ticket, bool]:
        headers, model = request.headers, question.full_model
        urgency = self._table.urgency(
            headers.get("X-Ollama-Priority"),
            model,
            ceiling=sender.ceiling,
            sees=question.sees,
            embeds=question.embeds,
        )
        if urgency is None:
            raise BadRequest("X-Ollama-Priority must be P0, P1, P2, P3 or a number from 50 to 100")
        now, priority = self._now(), urgency.priority
        patient = priority is Priority.CODING and not urgency.auto
        ticket = Ticket(
            id=next(self._ids),
            priority=priority,
            model=model,
            arrived=now,
            deadline=now + self._deadlines[priority],
            patience=self._patience if patient else 0.0,
            session=headers.get("X-Router-Session", "")[:200] or f"{sender.name}@{request.remote}",
            embeds=question.embeds,
        )
        return ticket, urgency.auto

    # ── attempts ────────────────────────────────────────────────────────────

    async def _answered(self, visit: Visit) -> web.StreamResponse:
        self._scheduler.submit(visit.ticket)
        while True:
            try:
                lease = await self._scheduler.turn(visit.ticket)
            except TurnedAway as away:
                return await self._given_up(visit, away)
            if not visit.ticket.preemptions and not visit.ticket.failures:
                self._metrics.queue_wait[visit.ticket.priority].observe(self._now() - visit.arrived)
            try:
                return await self._attempted(visit, lease)
            except Preempted:
                continue
            except Ended:
                return await self._broken_off(visit, "ended to make way for more urgent work")
            except AttemptFailed as failure:
                visit.failure = failure
                self._scheduler.fail(lease, failure)
                if visit.response is not None:
                    return await self._broken_off(visit, f"the backend failed: {failure}")
            except PassedOn as refusal:
                return _json(refusal.status, error_body(visit.question.call.api, refusal.status, str(refusal)))

    async def _attempted(self, visit: Visit, lease: Lease) -> web.StreamResponse:
        scheduler, adapter = self._scheduler, self._scheduler.adapters[lease.backend.name]
        outgoing = adapter.prepare(visit.question)
        exchange = await adapter.send(visit.question, outgoing)
        scheduler.attach(lease, exchange)
        await exchange.begun()
        if exchange.status != 200:
            await self._refused(lease, exchange)
        into = sink(visit.question, outgoing.call, outgoing.usage)
        outcome = "aborted"
        try:
            response = await self._relayed(visit, lease, exchange, into)
            outcome = "done"
        except Preempted:
            outcome = "preempted"
            raise
        finally:
            tally = into.tally()
            self._metrics.count_tokens(visit.ticket.model, tally.prompt, tally.completion, outcome)
        return response

    async def _refused(self, lease: Lease, exchange: Exchange) -> None:
        """The backend answered with something else than 200: its own failure, or the client's."""
        status = exchange.status
        text = error_text(await whole(exchange, MOST_ERROR))
        if status == 429:
            raise AttemptFailed(
                Failure.THROTTLED,
                text,
                status=status,
                retry_after=_seconds(header(exchange.headers, b"retry-after")),
            )
        ours = status in (401, 403, 408)  # our key or our set-up, not the client's request
        if ours or (status >= 500 and status != 501):  # 501: it never does what was asked for, and says so
            raise AttemptFailed(Failure.STATUS, text, status=status if status >= 500 else 502)
        if status == 404:
            raise AttemptFailed(Failure.ABSENT, text, status=status)
        self._scheduler.finish(lease)
        raise PassedOn(status, text)

    async def _relayed(self, visit: Visit, lease: Lease, exchange: Exchange, into: Sink) -> web.StreamResponse:
        held, size = list[bytes](), 0
        while data := await exchange.read():
            out = into.feed(data)
            if not visit.first:
                self._note_first(visit)
            if not out:
                continue
            if visit.holds_back:
                held.append(out)
                size += len(out)
                if size > self._holdback_limit:
                    visit.holds_back = False
                    out = b"".join(held)
            if not visit.holds_back:
                await self._write(visit, exchange, into, out)
        last = into.close()
        self._scheduler.finish(lease)
        if visit.response is None and (visit.holds_back or not visit.question.stream):
            body = b"".join([*held, last]) if held else last
            return Whole(200, into.content_type, body, returned(exchange.headers))
        if last or visit.response is None:
            await self._write(visit, exchange, into, last)
        assert visit.response is not None
        await visit.response.write_eof()
        return visit.response

    def _note_first(self, visit: Visit) -> None:
        visit.first = self._now()
        self._metrics.first_token[visit.ticket.priority].observe(visit.first - visit.arrived)

    async def _write(self, visit: Visit, exchange: Exchange, into: Sink, data: bytes) -> None:
        response = visit.response
        if response is None:
            self._scheduler.commit(visit.ticket)
            headers = CIMultiDict([("Content-Type", into.content_type), *returned(exchange.headers)])
            response = visit.response = web.StreamResponse(headers=headers)
            await response.prepare(visit.request)
        if data:
            await response.write(data)

    # ── endings ─────────────────────────────────────────────────────────────

    async def _broken_off(self, visit: Visit, why: str) -> web.StreamResponse:
        """A stream that has begun ends with an explicit error, never with a false `done`."""
        response = visit.response
        assert response is not None
        await response.write(error_line(visit.question.call.api, why))
        await response.write_eof()
        return response

    async def _given_up(self, visit: Visit, away: TurnedAway) -> web.StreamResponse:
        refusal, failure, api = away.refusal, visit.failure, visit.question.call.api
        status, message = refusal.status, refusal.reason
        if failure is not None:
            status = GIVEN_UP.get(failure.kind, failure.status)
            message = f"{refusal.reason}: {failure}"
        if failure is not None and failure.kind is Failure.ABSENT:
            self._must_be_served(visit.ticket.model)
        later = [("Retry-After", str(refusal.retry_after))] if status in (429, 503) else None
        return _json(status, error_body(api, status, message), later)


def _json(status: int, body: bytes, more: list[tuple[str, str]] | None = None) -> Whole:
    return Whole(status, JSON_TYPE, body, more)


def _seconds(value: str | None) -> float | None:
    return float(value) if value is not None and value.strip().isdigit() else None
