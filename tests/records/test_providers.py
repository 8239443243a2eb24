"""Providers of embeddings: what a job costs, what happens when the credit is used up, and when they misbehave."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from provider import KEY, Provider, open_provider
from tables import House, reviews

from gristmill.models import OpenAiEmbedder, ask_balance
from gristmill.queue import Worker, bind, list_queues, pause
from gristmill.records import load_account, refresh_balance
from gristmill.records.credit import check_account


@asynccontextmanager
async def at_provider(house: House, **behaviour: Any) -> AsyncIterator[tuple[House, Provider]]:
    async with open_provider(**behaviour) as (provider, settings), OpenAiEmbedder(settings) as embedder:
        own = house.settings.model_copy(update={"embedding": settings})
        yield replace(house, settings=own, embedder=embedder), provider


async def work_now(house: House) -> None:
    """Do whatever can be done without waiting."""
    await Worker(house.db, bind(*house.handlers), house.settings.queue, until_idle=True, leave_scheduled=True).run()


async def pass_time(house: House) -> None:
    """The time of everything that waits for its time has come."""
    async with house.db.transaction() as tx:
        await tx.execute("UPDATE task SET run_at = clock() WHERE wait = 'time'")


async def count_findable(house: House) -> int:
    async with house.db.transaction() as tx:
        return await tx.value("SELECT count(*) FROM data_records WHERE chunk IS NOT NULL")


async def is_paused(house: House) -> bool:
    async with house.db.transaction() as tx:
        return next(one.paused for one in await list_queues(tx) if one.name == "vectorization")


async def test_the_cost_is_estimated_before_and_recorded_after(house: House) -> None:
    async with at_provider(house) as (own, provider):
        report = await own.load(reviews(30))
    assert report.estimated_tokens > 300
    assert report.estimated_cost == pytest.approx(report.estimated_tokens * 20 / 1_000_000)
    assert report.cost == pytest.approx(0.31)  # the first call asks for the length of all vectors
    assert report.tokens == sum(len(text.split()) for text in provider.texts)


async def test_a_provider_that_tells_no_usage_is_reckoned_by_the_price_of_the_settings(house: House) -> None:
    async with at_provider(house, tells_usage=False) as (own, _):
        report = await own.load(reviews(30))
    assert report.cost == pytest.approx(report.tokens * 20 / 1_000_000)
    assert abs(report.tokens - report.estimated_tokens) <= 0.1 * report.estimated_tokens


async def test_without_credit_the_queue_is_paused_with_an_alarm_and_no_attempt_is_used(house: House) -> None:
    async with at_provider(house, credit=0.60) as (own, _):
        await own.add(reviews(100))
        await work_now(own)
        assert await is_paused(own)
        assert await count_findable(own) == 50
        async with own.db.transaction() as tx:
            check = await check_account(tx, own.settings)
            assert await tx.value("SELECT max(attempts) FROM tasks WHERE kind = 'vectorization.vectorize'") == 0
    assert check.verdict == "fail"
    assert "Insufficient credits" in check.sentence


async def test_it_goes_on_by_itself_when_the_account_was_filled(house: House) -> None:
    async with at_provider(house, credit=0.60) as (own, provider):
        await own.add(reviews(100))
        await work_now(own)
        await pass_time(own)
        await work_now(own)  # it is still empty
        assert await is_paused(own)
        provider.credit = 50.0
        await pass_time(own)
        await work_now(own)
        await pass_time(own)
        await work_now(own)
        assert not await is_paused(own)
        assert await count_findable(own) == 100
        async with own.db.transaction() as tx:
            assert (await load_account(tx)).empty_since is None
            assert (await check_account(tx, own.settings)).verdict == "ok"


async def test_a_queue_that_an_operator_paused_stays_paused(house: House) -> None:
    async with at_provider(house, credit=0.0) as (own, provider):
        await own.add(reviews(3))
        await work_now(own)
        provider.credit = 50.0
        async with own.db.transaction() as tx:
            await tx.execute("UPDATE embedding_account SET pauses = '{}'")
            await pause(tx, "vectorization")
        await pass_time(own)
        await work_now(own)
        assert await is_paused(own)


async def test_the_balance_is_shown_where_the_provider_tells_it(house: House) -> None:
    async with at_provider(house, credit=42.5) as (own, _):
        await own.load(reviews(10))
        async with own.db.transaction() as tx:
            assert (await load_account(tx)).balance == pytest.approx(42.39)
        assert (await refresh_balance(own.db, own.settings.embedding)).balance == pytest.approx(42.39)
    assert await ask_balance(house.settings.embedding) is None


async def test_a_busy_provider_is_asked_again(house: House) -> None:
    async with at_provider(house, busy=2) as (own, _):
        await own.add(reviews(5))
        for _ in range(4):
            await work_now(own)
            await pass_time(own)
        assert await count_findable(own) == 5


async def test_a_text_that_the_provider_refuses_costs_itself_alone(house: House) -> None:
    async with at_provider(house, poison="number 7:") as (own, _):
        await own.load(reviews(30))
        assert await count_findable(own) == 29
    assert [one for one in await house.records("row, trouble") if one[1]] == [
        (8, "The embedding endpoint answered 400: this text cannot be embedded.")
    ]


async def test_a_job_whose_texts_are_all_refused_leaves_the_others_to_the_next(house: House) -> None:
    async with at_provider(house, poison="number 1:") as (own, _):
        one_each = own.settings.records.model_copy(update={"embed_job": 1})
        own = replace(own, settings=own.settings.model_copy(update={"records": one_each}))
        await own.load(reviews(4))
        assert await count_findable(own) == 3


async def test_vectors_of_another_length_are_not_written(house: House) -> None:
    async with at_provider(house) as (own, provider):
        await own.load(reviews(5))
        provider.dimensions = 256
        await own.add(reviews(5, start=100))
        await work_now(own)
        assert await count_findable(own) == 5
        async with own.db.transaction() as tx:
            error = await tx.value(
                "SELECT error FROM tasks WHERE kind = 'vectorization.vectorize' AND error IS NOT NULL"
            )
        assert error == "The embedding endpoint gave a vector of 256 numbers, where 384 were before."


async def test_no_error_tells_the_key(house: House) -> None:
    async with at_provider(house) as (own, _):
        wrong = own.settings.embedding.model_copy(update={"key": type(own.settings.embedding.key)("sk-or-wrong")})  # type: ignore[misc]
        async with OpenAiEmbedder(wrong) as embedder:
            await replace(own, embedder=embedder).add(reviews(2))
            await work_now(replace(own, embedder=embedder))
        async with own.db.transaction() as tx:
            error = await tx.value("SELECT error FROM tasks WHERE kind = 'vectorization.vectorize'")
    assert "401" in error
    assert "sk-or" not in error
    assert KEY not in error
