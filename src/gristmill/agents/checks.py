"""What the doctor is told of the language model: whether the router answers, and whether it has the model."""

from datetime import timedelta

from gristmill.db import Tx
from gristmill.errors import GristmillError
from gristmill.models import RouterLlm, say_models
from gristmill.settings import Settings
from gristmill.telemetry import Check

NAME = "language model"
PATIENCE = timedelta(seconds=5)  # a doctor is not kept waiting


async def check_model(tx: Tx, settings: Settings) -> Check:
    """Only a warning, whatever is wrong: everything but sentences and agents works without a model."""
    wanted = dict.fromkeys(filter(None, (settings.llm.model, settings.ask.model, settings.agents.cloud_model)))
    if not wanted:
        said = "None is configured: questions are answered with passages, and items by rule."
        return Check(NAME, "ok", said)
    async with RouterLlm(settings.llm.model_copy(update={"timeout": PATIENCE})) as llm:
        try:
            models = await llm.list_models()
        except GristmillError as error:
            advice = "gristmill router starts one; docs/router.md says how it gets a backend."
            return Check(NAME, "warn", str(error), advice)
    missing = [one for one in wanted if not {one, f"{one}:latest"} & set(models)]
    if missing:
        return Check(NAME, "warn", f"The LLM router has no model {', '.join(missing)}.", say_models(models))
    return Check(NAME, "ok", f"The LLM router has {', '.join(wanted)}.")
