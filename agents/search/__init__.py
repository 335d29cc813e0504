"""The one query builder for everything searchable: owner and scope, words, vectors, neighbours.

BM25 over the lexemes of agents.models.search_entry, counted inside the statement, so nothing is kept in step: the best
CANDIDATES, and the nearest vectors where the scope is small, come back with their neighbours and are weighed here. A
neighbour lends its words; vectors, lengths and, for events, speakers, questions and dates add a little. Start reading
at searching.py.
"""

from agents.search.dates import dates_in
from agents.search.scope import Groups, Line, Ranked, Scope, Vector
from agents.search.searching import search
from agents.search.statement import MOST_HITS
from agents.search.words import clean, holds, phrases

__all__ = (
    "MOST_HITS",
    "Groups",
    "Line",
    "Ranked",
    "Scope",
    "Vector",
    "clean",
    "dates_in",
    "holds",
    "phrases",
    "search",
)
