"""The tables of the agents app, one file per noun. Django finds models only if this package imports them."""

from agents.models import event, job, model_call, run, search_entry, session  # noqa: F401 - Django finds them here
