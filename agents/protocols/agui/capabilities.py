"""What this server can do, in AG-UI's words (GET /agui/capabilities/)."""

from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]


def capabilities(*, version: str, agents: Sequence[str], models: Sequence[str], images: bool) -> JSON:
    """Return the capabilities. agents, models: names a client may ask for, the default first. images: whether the
    default model looks at pictures; any other file is read with tools."""
    return {
        "identity": {"name": "workbench", "type": "agent", "version": version},
        "transport": {"streaming": True, "websocket": True, "httpBinary": False, "resumable": True},
        "tools": {"supported": True, "parallelCalls": True, "clientProvided": True},
        "state": {"snapshots": True, "deltas": True, "persistentState": True},
        "reasoning": {"supported": True, "streaming": True, "encrypted": False},
        "multimodal": {"input": {"image": images, "audio": False, "video": False, "pdf": True, "file": True}},
        "humanInTheLoop": {"supported": True, "interventions": True, "approvals": False, "interrupts": False},
        "custom": {
            "workbench": {
                "protocol": "agui.v1",
                "agents": list(agents),
                "models": list(models),
                "documents": {"citations": True, "sources": True},
            }
        },
    }
