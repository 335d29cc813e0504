"""A search: one statement, then weighed."""

import json
from typing import Any

from django.db import connection

from agents.models.search_entry import Kind
from agents.search.alike import alike
from agents.search.choosing import choose
from agents.search.counts import counts
from agents.search.rows import Rows
from agents.search.scope import Ranked, Scope, Vector
from agents.search.statement import statement
from agents.search.weighing import weigh
from agents.search.words import asked, names_in, phrases


def search(
    scope: Scope, query: str, *, limit: int = 26, hits: int | None = None, vector: Vector | None = None
) -> tuple[Ranked, ...]:
    """Return the texts of the scope that answer the query, best first, each once. One statement; for a worker thread.

    hits: only so many are the best, and the rest up to `limit` complete them: neighbours of the first, and what tells
    of the parts of the query that the others tell least of. None = all are the best.

    query: a question in any script. Stop words and punctuation alone find nothing. "Quoted" words must all be there;
    that they stand together is the caller's to check on the source text (`holds`). vector: None = by words alone.
    """
    if limit < 1 or scope.is_empty:
        return ()
    quoted = phrases(query)
    if quoted:
        vector = None
    counted = counts.get(scope)
    same = alike(query) if Kind.EVENT in scope.kinds else ()  # measured on conversations
    with connection.cursor() as cursor:
        given: dict[str, Any] = {"text": asked(query), "phrase": " ".join(quoted)}
        given |= {"alike": [word for word, _ in same], "others": [others for _, others in same]}
        given |= {"n": counted.n, "words": json.dumps(counted.words), "names": list(names_in(query))}
        cursor.execute(statement(scope, vector, given), given)
        found = cursor.fetchone()
    if found is None:
        return ()
    about, rows = json.loads(found[0]), Rows(scope.kinds, found[1:])
    if not quoted:
        counts.put(scope, about["n"], {lexeme: df for _, df, lexeme in about["df"] or ()})
    return choose(rows, weigh(rows, about, query), limit=limit, hits=hits)
