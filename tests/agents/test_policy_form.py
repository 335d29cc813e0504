"""The form of context policies opens whatever stands in its row, so that staff can mend it."""

from typing import Any

import pytest

from agents.models.agent_policy import AgentPolicy
from agents.policyform import PolicyForm
from agents.stores import policies


@pytest.fixture(autouse=True)
def _own_policies() -> Any:
    yield
    policies.learn({})


@pytest.mark.parametrize(
    "values",
    [
        {"summary_ratio": [1, 2]},
        {"allow": [1]},
        {"compact_force": [None]},
        {"template": {"a": "甲"}},
        {"placement": ["system"]},
        {"keep_rounds": 10**400},
        {"nothing": 3},
        [1],
        "text",
        5,
        True,
        None,
    ],
)
def test_a_row_that_cannot_be_is_shown_to_be_mended_and_the_agents_own_policy_holds(values: Any) -> None:
    row = AgentPolicy(agent="assistant", values=values)
    assert 'name="summary_ratio"' in PolicyForm(instance=row).as_p()
    policies.learn({"assistant": values})
    assert policies.of("assistant") == policies.own("assistant")
