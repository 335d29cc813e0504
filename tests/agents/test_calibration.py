"""Token rates that outlive a process, and what a run gets of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from agents import wiring
from agents.models.token_rate import TokenRate
from agents.providers import openai_windows
from agents.runtime.context.window import GUESS, Window
from agents.runtime.tokens import DEFAULT_RATES, MESSAGE, REQUEST, Mix, Uncalibrated, measure
from agents.stores import calibrations, pool
from tests.agents.wall import walled

pytestmark = pytest.mark.django_db(transaction=True)

DEAR = 1.5  # this model's tokens cost so many times the default


@pytest_asyncio.fixture(autouse=True)
async def closed(transactional_db: Any) -> AsyncIterator[None]:
    yield
    await calibrations.close()
    await pool.close()


def request(number: int) -> tuple[Mix, int]:
    text = f"Case {number}: the seal is worn, see page {number + 3}. 第{number}号库房的门封磨损了，请看报告。\n" * (
        10 + number
    )
    mix = REQUEST + MESSAGE + measure(text)
    return mix, round(DEFAULT_RATES.tokens(mix) * DEAR)


def teach(calls: int, model: str = "dear") -> float:
    """Let a model learn from so many calls and return how far off it is then."""
    calibration = calibrations.of("openai", model)
    for number in range(calls):
        calibration.learn(*request(number))
    return error(model)


def error(model: str = "dear") -> float:
    mix, cost = request(7)
    return abs(calibrations.of("openai", model).rates.tokens(mix) / cost - 1)


async def restart() -> None:
    """End this process's work as a drain does, and read the rows anew."""
    await calibrations.close()
    calibrations.of("openai", "dear")
    await calibrations.settled()


async def rows() -> list[tuple[Any, ...]]:
    return await pool.fetch("select provider, model, calls from agents_tokenrate order by id", ())


async def test_what_was_learnt_is_there_after_a_restart() -> None:
    calibrations.of("openai", "dear")
    await calibrations.settled()
    before = error()
    learnt = teach(12)
    assert before > 0.3 and learnt < 0.02
    await restart()
    assert error() == pytest.approx(learnt, abs=0.001)
    assert await rows() == [("openai", "dear", 12)]


async def test_models_are_apart_and_their_calibration_is_one_for_all_runs() -> None:
    teach(12)
    assert calibrations.of("openai", "dear") is calibrations.of("openai", "dear")
    assert calibrations.of("openai", "other").rates == DEFAULT_RATES
    assert calibrations.of("elsewhere", "dear").rates == DEFAULT_RATES


async def test_a_row_is_written_after_every_twentieth_call_and_not_before() -> None:
    calibrations.of("openai", "dear")
    await calibrations.settled()
    teach(calibrations.SAVE_CALLS - 1)
    await calibrations.settled()
    assert await rows() == []
    teach(1)
    await calibrations.settled()
    assert await rows() == [("openai", "dear", calibrations.SAVE_CALLS)]


async def test_a_row_is_written_by_the_first_call_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrations.of("openai", "dear")
    await calibrations.settled()
    monkeypatch.setattr(calibrations, "SAVE_S", 0.0)
    teach(1)
    await calibrations.settled()
    assert await rows() == [("openai", "dear", 1)]


async def test_a_row_never_goes_back_to_fewer_calls() -> None:
    teach(3)
    await calibrations.settled()
    await pool.fetch(
        "insert into agents_tokenrate (provider, model, values, calls, updated_at)"
        " values ('openai', 'dear', '{}', 500, now())",
        (),
    )
    await calibrations.close()
    assert await rows() == [("openai", "dear", 500)]


async def test_what_is_learnt_before_the_row_is_read_is_learnt_on_top_of_it() -> None:
    teach(30)
    await calibrations.close()
    calibration = calibrations.of("openai", "dear")
    assert calibration.rates == DEFAULT_RATES  # nobody waits for the row
    calibration.learn(*request(3))
    await calibrations.settled()
    assert error() < 0.02
    await calibrations.close()
    assert await rows() == [("openai", "dear", 31)]


@pytest.mark.parametrize("values", [{}, [], {"form": "old", "rates": [1.0]}, "x", None])
async def test_a_row_that_cannot_be_read_counts_as_nothing_learnt(values: Any) -> None:
    await pool.fetch(
        "insert into agents_tokenrate (provider, model, values, calls, updated_at)"
        " values ('openai', 'dear', %s::jsonb, 3, now())",
        (calibrations.orjson.dumps(values).decode(),),
    )
    assert teach(12) < 0.02
    await calibrations.settled()
    assert error() < 0.02


async def test_a_database_that_is_away_costs_a_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with walled(monkeypatch) as wall:
        assert await pool.fetch("select 1", ()) == [(1,)]
        monkeypatch.setattr(pool, "AWAY_S", 0.3)
        wall.flows.clear()
        async with asyncio.timeout(5):
            assert teach(45) < 0.02
            await calibrations.settled()
            assert error() < 0.02
        wall.flows.set()
        monkeypatch.setattr(pool, "AWAY_S", 10.0)
        await calibrations.close()  # it is kept as soon as the database is there again
    await pool.close()
    assert await rows() == [("openai", "dear", 45)]


async def test_the_admin_side_reads_the_same_row() -> None:
    teach(12)
    await calibrations.close()
    kept = await asyncio.to_thread(lambda: TokenRate.objects.get(provider="openai", model="dear"))
    assert (str(kept), kept.calls, kept.values["calls"]) == ("openai dear", 12, 12)


def test_outside_of_a_loop_there_are_the_defaults() -> None:
    assert isinstance(calibrations.of("openai", "dear"), Uncalibrated)


async def test_a_run_gets_the_rates_and_the_window_of_its_model(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MODELS = [
        {"name": "said", "window": 9_000},
        {"name": "told", "base_url": "http://models.example/v1"},
        {"name": "gpt-4o-mini"},
        {"name": "unheard-of"},
    ]
    monkeypatch.setitem(openai_windows._told, "http://models.example/v1", {"told": 7_000, "said": 1})
    assert wiring.window_of("") == wiring.window_of("said") == Window(tokens=9_000, source="settings")
    assert wiring.window_of("said", run=500) == Window(tokens=500, source="run")
    assert wiring.window_of("told") == Window(tokens=7_000, source="provider")
    assert wiring.window_of("gpt-4o-mini") == Window(tokens=128_000, source="registry")
    assert wiring.window_of("unheard-of") == GUESS
    assert wiring.window_of("claude-gone") == Window(tokens=200_000, source="registry")  # configured no more
    assert wiring.calibration_of("told") is calibrations.of("openai", "told")


def test_the_offline_model_has_a_window_and_nothing_to_learn_from(settings: Any) -> None:
    settings.MODELS, settings.OPENAI_MODEL, settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = [], "", "", ""
    assert wiring.window_of("") == Window(tokens=131_072, source="model")
    assert isinstance(wiring.calibration_of(""), Uncalibrated)
