"""Context policies as staff have set them, over the agents' own.

What every opening run reads of the table (sql.OPENING) is learnt here for the whole process, so that a run asks for
nothing more and a change counts from the next run on, whichever process it begins in. A row that cannot be is told and
passed over: the agent's own policy holds then.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from agents.models.agent_policy import AgentPolicy
from agents.runtime.policy import ANALYST, ASSISTANT, ContextPolicy, PolicyInvalid

logger = logging.getLogger(__name__)

OWN: Final[Mapping[str, ContextPolicy]] = {"assistant": ASSISTANT, "analyst": ANALYST}

_rows: Mapping[str, Mapping[str, Any]] = {}
_refused: set[str] = set()  # told once


def own(agent: str) -> ContextPolicy:
    """Return the policy that an agent we ship comes with; of others the default."""
    return OWN.get(agent, ContextPolicy())


def of(agent: str, base: ContextPolicy | None = None) -> ContextPolicy:
    """Return an agent's policy as this process last read it. base: its own, None = that of `own`. Asks nothing."""
    base = base or own(agent)
    values = _rows.get(agent)
    if not values:
        return base
    try:
        return ContextPolicy.of(values, base)
    except (PolicyInvalid, TypeError, AttributeError) as error:
        if agent not in _refused:
            _refused.add(agent)
            logger.error("the context policy of agent %s cannot be, its own is used: %s", agent, error)
        return base


def summarised(agent: str) -> bool:
    """Return whether the agent's requests are made with the summary of its scope, so that a run need not read all."""
    policy = of(agent)
    return policy.summarise and policy.timeline == "all" and policy.branch != "all"


def learn(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Take over what the table says, agent to values."""
    global _rows
    if rows != _rows:
        _rows = rows
        _refused.clear()


def read() -> None:
    """Read the table, for processes that open no runs. Sync, on Django's connection."""
    learn(dict(AgentPolicy.objects.values_list("agent", "values")))
