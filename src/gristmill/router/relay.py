"""One request from its first byte to its last: its turn, its attempts, and the answer that its client sees."""

import itertools
import time

import msgspec

from gristmill.router.backends import Adapter, Outgoing
from gristmill.router.breaker import BackendFailure
from gristmill.router.pool import Lease, LeasePhase, Ticket
from gristmill.router.priority import LABELS, Priority, PriorityTable, Sender
from gristmill.router.replies import Sink, end_part, sink
from gristmill.router.requests import Headers, Request
from gristmill.router.scheduler import AttemptEnded, Preempted, Scheduler, TurnedAway
from gristmill.router.upstream import AttemptFailed, Exchange, read_whole
from gristmill.router.wire import (
    MODEL_NOT_FOUND,
    BadRequest,
    ModelCall,
    ModelRequest,
    asks_nothing,
    error_body,
    error_line,
    error_text,
    header,
    headers_to_client,
    model_missing,
    nothing_said,
    read_question,
    unloads,
)
from gristmill.settings import RouterSettings

MOST_ERROR = 64 * 1024
MISSHAPEN = (TypeError, AttributeError, LookupError, ValueError)  # the errors that a value of a wrong type leads to
MOST_KEPT = 256 * 1024**2  # bytes of an answer of which nothing can be passed on yet
GIVEN_UP = {
    BackendFailure.HEADER_TIMEOUT: 504,
    BackendFailure.IDLE_TIMEOUT: 504,
    BackendFailure.CONNECT: 502,
    BackendFailure.BROKEN: 502,
}


class Visit(msgspec.Struct, eq=False):
    """A request while it is being served."""

    request: Request
    question: ModelRequest
    ticket: Ticket
    holds_back: bool
    failure: AttemptFailed | None = None
    first: float = 0.0


class BackendAttempt(msgspec.Struct, eq=False):
    """A request at one backend."""

    visit: Visit
    lease: Lease
    adapter: Adapter
    outgoing: Outgoing


class Relay:
    """Serves the calls that reach a model."""

    def __init__(self, settings: RouterSettings, scheduler: Scheduler) -> None:
        self._scheduler, self._metrics = scheduler, scheduler.metrics
        self._ids = itertools.count(1)
        self._now = time.monotonic
        self.configure(settings)

    def configure(self, settings: RouterSettings) -> None:
        """Go by these settings from now on."""
        self._table = PriorityTable(settings.priorities)
        limits = (settings.deadline_p0, settings.deadline_p1, settings.deadline_p2, settings.deadline_p3)
        self._deadlines = [limit.total_seconds() for limit in limits]
        self._patience = settings.patience.total_seconds()
        self._holdback_limit = settings.holdback_limit

    async def serve(self, request: Request, call: ModelCall, sender: Sender) -> None:
        """Answer one call; raises BadRequest when it is wrong."""
        question = read_question(call, request.body)
        question.extra = request.head.passed_on
        self._must_be_served(question.full_model)
        if call.api == "ollama" and asks_nothing(question) and await self._load_or_unload(request, question, sender):
            return
        ticket, auto = self._ticket(request, question, sender)
        asked = request.head.fields.get(b"x-router-holdback")
        holds_back = not question.stream or (ticket.background and not auto if asked is None else asked != b"0")
        outcome = "gone"
        try:
            await self._answer(Visit(request, question, ticket, holds_back))
            outcome = str(request.status)
        except BadRequest as wrong:
            outcome = str(wrong.status)
            raise
        finally:
            self._metrics.requests[LABELS[ticket.priority], call.api, outcome] += 1
            self._scheduler.over(ticket)

    async def _load_or_unload(self, request: Request, question: ModelRequest, sender: Sender) -> bool:
        """Answer a request that only unloads a model, or loads one that is always there; true when that was all."""
        model = question.full_model
        if unloads(question):
            if not sender.admin:
                raise BadRequest("to unload a model needs the router's admin key, as a bearer token", 403)
            for adapter in self._scheduler.adapters.values():
                if self._scheduler.may_unload(adapter, model):
                    await self._scheduler.unload(adapter, model)
        elif any(backend.manages for kind in self._scheduler.lanes.serving(model) for backend in kind):
            return False
        reason = "unload" if unloads(question) else "load"
        request.answer(200, nothing_said(question, reason), "application/json; charset=utf-8")
        return True

    def _must_be_served(self, model: str) -> None:
        if any(self._scheduler.lanes.serving(model)):
            return
        adapters = self._scheduler.adapters.values()
        if silent := [adapter for adapter in adapters if adapter.models is None and not adapter.spec.models]:
            raise BadRequest(_about_silent(silent), 503)
        known = {name for adapter in adapters for name in (adapter.models or adapter.spec.models)}
        raise model_missing(model, known)

    def _ticket(self, request: Request, question: ModelRequest, sender: Sender) -> tuple[Ticket, bool]:
        model = question.full_model
        urgency = self._table.urgency(
            request.head.priority,
            model,
            sender.ceiling,
            question.sees,
            question.embeds,
        )
        if urgency is None:
            raise BadRequest("X-Ollama-Priority must be P0, P1, P2, P3 or a whole number from 50 to 100")
        now, priority = self._now(), urgency.priority
        patient = priority is Priority.CODING and not urgency.auto
        ticket = Ticket(
            id=next(self._ids),
            priority=priority,
            model=model,
            arrived=now,
            deadline=now + self._deadlines[priority],
            patience=self._patience if patient else 0.0,
            session=request.head.session(sender),
            embeds=question.embeds,
        )
        return ticket, urgency.auto

    # ── attempts ────────────────────────────────────────────────────────────

    async def _answer(self, visit: Visit) -> None:
        lease = self._scheduler.submit(visit.ticket)
        while True:
            try:
                lease = lease or await self._scheduler.turn(visit.ticket)
            except TurnedAway as away:
                return self._give_up(visit, away)
            if not visit.ticket.preemptions and not visit.ticket.failures:
                self._metrics.queue_wait[visit.ticket.priority].observe(lease.since - visit.ticket.arrived)
            try:
                return await self._attempt(visit, lease)
            except Preempted:
                lease = None
            except AttemptEnded as why:
                return self._break_off(visit, str(why))
            except AttemptFailed as failure:
                visit.failure = failure
                self._scheduler.fail(lease, failure)
                if visit.request.status:
                    return self._break_off(visit, f"the backend failed: {failure}")
                lease = None

    async def _attempt(self, visit: Visit, lease: Lease) -> None:
        scheduler, question = self._scheduler, visit.question
        adapter = scheduler.adapter_of(lease)
        outgoing = adapter.prepare(question)
        attempt = BackendAttempt(visit, lease, adapter, outgoing)
        # most requests find a connection: sending here saves them a coroutine
        exchange = adapter.send_at_once(question, outgoing.call, outgoing.body)
        if exchange is None:
            exchange = await adapter.send(question, outgoing.call, outgoing.body)
        scheduler.attach(lease, exchange)
        await exchange.wait_for_headers()
        if exchange.status != 200:
            await self._sort_refusal(lease, exchange)
        into = sink(question, outgoing.call, outgoing.usage, outgoing.choices)
        outcome = "aborted"
        try:
            await self._pass_on(attempt, exchange, into)
            outcome = "done"
        except Preempted:
            outcome = "preempted"
            raise
        finally:
            tally = into.tally()
            self._metrics.count_tokens(visit.ticket.model, tally.prompt, tally.completion, outcome)

    async def _sort_refusal(self, lease: Lease, exchange: Exchange) -> None:
        """The backend answered with something else than 200: its own failure, or the client's."""
        status = exchange.status
        text = error_text(await read_whole(exchange, MOST_ERROR))
        if status == 429:
            raise AttemptFailed(
                BackendFailure.THROTTLED,
                text,
                status=status,
                retry_after=_seconds(header(exchange.headers, b"retry-after")),
            )
        ours = status in (401, 403, 408)  # our key or our set-up, not the client's request
        strange = status < 400  # neither an answer nor a refusal, and some of these may have no body
        if ours or strange or (status >= 500 and status != 501):  # 501: it does not support this call at all
            raise AttemptFailed(
                BackendFailure.STATUS, text or f"it said {status}", status=status if status >= 500 else 502
            )
        if status == 404:
            raise AttemptFailed(BackendFailure.ABSENT, text, status=status)
        self._scheduler.finish(lease)
        raise BadRequest(text, status)  # the client gets the backend's words; no other backend is asked

    async def _pass_on(self, attempt: BackendAttempt, exchange: Exchange, into: Sink) -> None:
        """Read the backend's reply to its end, and write the client's answer."""
        visit, lease = attempt.visit, attempt.lease
        request, held, size, kept = visit.request, list[bytes](), 0, 0
        more = attempt.outgoing.more
        while True:
            if (data := exchange.take()) is None:
                await exchange.wait_for_data()
                continue
            if not data and not more:
                break
            try:
                out = into.feed(data) if data else end_part(into)
            except MISSHAPEN as error:
                raise AttemptFailed(
                    BackendFailure.BROKEN, "the backend's answer is not of the shape its API has"
                ) from error
            if not data:
                exchange = await self._begin_next_part(attempt, more[0])
                more = more[1:]
            if not visit.first:
                self._note_first(visit)
            if not out:
                kept += len(data)
                if kept > MOST_KEPT:
                    raise AttemptFailed(BackendFailure.BROKEN, "the backend's answer does not end")
                continue
            kept = 0
            if visit.holds_back:
                held.append(out)
                size += len(out)
                if size <= self._holdback_limit:
                    continue
                visit.holds_back, out = False, b"".join(held)
            if not request.status:
                self._begin(visit, exchange, into)
            await request.write(out)
        try:
            last = into.close()
        except MISSHAPEN as error:
            raise AttemptFailed(
                BackendFailure.BROKEN, "the backend's answer is not of the shape its API has"
            ) from error
        self._scheduler.finish(lease)
        if visit.holds_back:
            body = b"".join([*held, last]) if held else last
            request.answer(200, body, into.content_type, headers_to_client(exchange.headers))
            return
        if not request.status:
            self._begin(visit, exchange, into)
        request.end(last)

    async def _begin_next_part(self, attempt: BackendAttempt, body: bytes) -> Exchange:
        """The next of several choices, from a backend that gives one at a time."""
        if attempt.lease.phase is LeasePhase.LEAVING:
            raise Preempted
        question, call, adapter = attempt.visit.question, attempt.outgoing.call, attempt.adapter
        exchange = adapter.send_at_once(question, call, body) or await adapter.send(question, call, body)
        self._scheduler.attach(attempt.lease, exchange)
        await exchange.wait_for_headers()
        if exchange.status != 200:
            await self._sort_refusal(attempt.lease, exchange)
        return exchange

    def _note_first(self, visit: Visit) -> None:
        visit.first = self._now()
        self._metrics.first_token[visit.ticket.priority].observe(visit.first - visit.ticket.arrived)

    def _begin(self, visit: Visit, exchange: Exchange, into: Sink) -> None:
        self._scheduler.commit(visit.ticket)
        visit.request.begin(into.content_type, headers_to_client(exchange.headers))

    # ── endings ─────────────────────────────────────────────────────────────

    def _break_off(self, visit: Visit, why: str) -> None:
        """A stream that has begun ends with an explicit error, never with a false `done`."""
        visit.request.end(error_line(visit.question.call, why))

    def _give_up(self, visit: Visit, away: TurnedAway) -> None:
        refusal, failure = away.refusal, visit.failure
        status, message = refusal.status, refusal.reason
        if failure is not None:
            status = GIVEN_UP.get(failure.kind, failure.status)
            message = f"{refusal.reason}: {failure}"
        if failure is not None and failure.kind is BackendFailure.ABSENT:
            self._must_be_served(visit.ticket.model)
        later: Headers = [(b"Retry-After", b"%d" % refusal.retry_after)] if status in (429, 503) else ()
        code = MODEL_NOT_FOUND if status == 404 else None
        visit.request.answer(status, error_body(visit.question.call.api, status, message, code), more=later)


def _about_silent(adapters: list[Adapter]) -> str:
    """Advice for a client whose model may be on a backend that has never answered."""
    if not all(adapter.trouble for adapter in adapters):
        return "a backend has not told yet which models it serves; try again in a moment"
    troubles = "; ".join(f"{adapter.name}: {adapter.trouble}" for adapter in adapters)
    return (
        f"the router gets no answer from its backends ({troubles}): start Ollama there (ollama serve),"
        " or correct router.gpu_backends in the router's settings"
    )


def _seconds(value: str | None) -> float | None:
    return float(value) if value is not None and value.strip().isdigit() else None
