"""What started a run: the message of its turn."""

from agents.stores import pool


async def message_id(run_key: int) -> str | None:
    """Return the client's id of the user message that started the run; None for a retry, a continue or tool results.

    Raises StorageUnavailable.
    """
    rows = await pool.fetch(
        """
        SELECT e.payload ->> 'id'
        FROM agents_run r JOIN agents_event e ON e.session_id = r.session_id AND e.run_id = r.id
        WHERE r.id = %s AND e.type = 'user_message' AND e.payload ->> 'kind' IS NULL
        ORDER BY e.position LIMIT 1
        """,
        (run_key,),
    )
    return rows[0][0] if rows else None
