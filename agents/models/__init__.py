"""The tables of the agents app, one file per noun. Django finds models only if this package imports them."""

from agents.models import (  # noqa: F401 - Django finds them here
    agent_policy,
    event,
    job,
    memory,
    model_call,
    review,
    run,
    search_entry,
    session,
    skill,
    summary,
    summary_draft,
    token_rate,
)
