"""The one query builder for everything searchable: owner and scope, words, vectors, neighbours.

BM25 over the lexemes of agents.models.search_entry, counted inside the statement, so nothing is kept in step: the best
CANDIDATES, and the nearest vectors where the scope is small, come back with their neighbours and are weighed here. A
neighbour lends its words; vectors, lengths and, for events, speakers, questions and dates add a little.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Lock
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import NDArray

from agents.models.search_entry import Kind

CANDIDATES: Final = 100
NEAREST: Final = 50
MOST_HITS: Final = 6_000  # of the rarest terms, to choose candidates from; commoner ones only weigh them
EXACT_ROWS: Final = 20_000  # in larger scopes vectors re-rank and find nothing of their own
LEAST_LIKENESS: Final = 0.3  # cosine; what is further away answers nothing
QUERY_CHARS: Final = 4_000
MOST_TERMS: Final = 32  # the rarest; a question of more words than this is a text
KEEP_S: Final = 600.0
COMMON_FROM: Final = 1_000  # what stands in fewer entries is counted each time
COMMON_WORDS, COMMON_OWNERS = 400, 1_000

# Weights, measured on held-out conversations. LENT: what a text gets of the words of the one at this distance.
LENT: Final = {-2: 0.5, -1: 0.8, 1: 0.5, 2: 0.3}
VECTOR, SPEAKER, QUESTION, TIME, DATE, LENGTH = 0.5, 0.2, 0.2, 0.1, 0.7, 0.1
WIDE: Final = 15  # of the wide window, to each side, when one long group is searched
WIDE_FROM: Final = 100  # entries
FADING: Final = 0.9  # of the wide window, for each TURN lexemes of distance
TURN: Final = 12.0

Floats = NDArray[np.float64]
Groups: TypeAlias = Sequence[int] | QuerySet[Any, int] | None

_SCOPE = "e.owner_id = %(owner)s and e.kind = any(%(kinds)s){groups}{created}"

# Casts keep the arithmetic in float8: in numeric, ln alone takes 5 microseconds. `offset 0` keeps each look-up by
# itself: the planner guesses a lexeme in 0.5 % of all rows and would join the wrong way round. `fence` is `scope`, its
# owner out of reach of an index: the lexemes name it already, and all of the owner's rows would be looked up as well.
_SQL = """
with given as materialized (
  select lexeme, tq from wb_query(%(owner)s, %(text)s) order by md5(lexeme) limit 256),
n as materialized (select coalesce(%(n)s::float8, (select count(*) from agents_searchentry e where {scope})) n),
q as materialized (
  select row_number() over ()::int ord, sum(known) over (order by known, lexeme) upto,
    row_number() over (partition by known is null order by known, lexeme) nth, x.*
  from (
    select lexeme, tq, k.df known from given
    left join unnest(%(lexemes)s::text[], %(dfs)s::int[]) k(l, df) on k.l = lexeme
    order by case when (select count(*) from given) > {most} then nullif((select count(*) from (
      select from agents_searchentry e where e.terms @@ tq and {fence} limit 1000) x), 0) end nulls last, lexeme
    limit {most}) x),
must as materialized (select string_agg(tq::text, ' & ')::tsquery tq from wb_query(%(owner)s, %(phrase)s)),
h as materialized (
  select q.ord, e.df, e.ids, e.lengths from q cross join lateral (
    select count(*)::int df, array_agg(e.id) ids, array_agg(e.length) lengths from agents_searchentry e
    where e.terms @@ q.tq and {fence}{must} offset 0) e
  where q.known is null or q.upto <= {hits} or q.nth <= 2),
d as materialized (
  select ord, q.lexeme, coalesce(h.df, q.known) df, ids, lengths from q left join h using (ord)
  where coalesce(h.df, q.known) > 0),
rare as (
  select ln(1 + greatest((select n from n) - df + .5::float8, .5::float8) / (df + .5::float8)) idf, ids, lengths
  from (select d.*, sum(df) over w total, row_number() over w nth from d where ids is not null
        window w as (order by df, ord)) x
  where total <= {hits} or nth <= 2),
scored as (
  select id, sum(rare.idf / (1.63::float8 + .009::float8 * length)) s
  from rare cross join lateral unnest(ids, lengths) x(id, length) group by 1),
top as (select id from scored order by s desc limit {candidates}),
{near}
win as materialized (
  select distinct e.kind, e.group_id, e.position + x p from (select * from top{or_near}) t
  join agents_searchentry e on e.id = t.id and {scope} cross join generate_series(-2, 2) x)
select e.kind, e.ref, e.group_id, e.position, e.length, {cosine}, {chat},
  array(select ord from q where e.terms @@ q.tq) m,
  case when row_number() over () = 1 then json_build_object('n', (select n from n),
    'df', (select json_agg(json_build_array(ord, df, lexeme)) from d), 'wide', {wide})::text end
from win cross join lateral (
  select e.* from agents_searchentry e
  where {scope} and e.kind = win.kind and e.group_id = win.group_id and e.position = win.p offset 0) e{vectors}
"""
_NEAR = """near as materialized (
  select id from (
    select e.entry_id id, e.vector <#> %(vector)s::halfvec far from agents_embedding e
    where {scope} and e.model = %(model)s and (select n from n) <= {exact} order by 2 limit {nearest}) x
  where far <= -{least}::float8),"""
_COSINE = "case when v.model = %(model)s then -(v.vector <#> %(vector)s::halfvec) end"
_VECTORS = "\nleft join agents_embedding v on v.entry_id = e.id and v.owner_id = %(owner)s"
_CHAT = """e.terms @@ wb_quote(%(owner)s, '#q')::tsquery, e.terms @@ wb_quote(%(owner)s, '#t')::tsquery,
  e.terms @@ (select string_agg(wb_quote(%(owner)s, '@' || lexeme), ' | ')::tsquery from q), e.created::date"""
_NO_CHAT = "false, false, false, null::date"
_WIDE = """(select json_build_array(array_agg(e.position), array_agg(s))
    from scored join agents_searchentry e using (id))"""

_PHRASE = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」')
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A question as one embedder sees it. model: agents.runtime.embedding.model_id. values: of length 1."""

    model: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One text that was found: the row `ref` of the table that `kind` names. score: comparable within one search."""

    ref: int
    kind: str
    group_id: int
    position: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to search. groups: None = all, () = nowhere; a query set of keys is asked in the search's own statement.

    created: from, and up to but without.
    """

    owner_id: int
    kinds: tuple[Kind, ...]
    groups: Groups = None
    created: tuple[datetime, datetime] | None = None

    @property
    def is_empty(self) -> bool:
        return not self.kinds or (isinstance(self.groups, Sequence) and not self.groups)

    @property
    def is_whole(self) -> bool:
        return self.groups is None and self.created is None

    @property
    def is_one_group(self) -> bool:
        return isinstance(self.groups, Sequence) and len(self.groups) == 1


class _Row(NamedTuple):
    kind: str
    ref: int
    group_id: int
    position: int
    length: int
    cosine: float | None
    asks: bool
    tells_time: bool
    speaks: bool | None
    created: date | None
    terms: list[int]
    about: str | None

    @property
    def place(self) -> tuple[str, int, int]:
        return self.kind, self.group_id, self.position


def search(scope: Scope, query: str, *, limit: int = 26, vector: Vector | None = None) -> tuple[Ranked, ...]:
    """Return the texts of the scope that answer the query, best first, each once. One statement; for a worker thread.

    query: a question in any script. Stop words and punctuation alone find nothing. "Quoted" words must all be there;
    that they stand together is the caller's to check on the source text (`holds`). vector: None = by words alone.
    """
    if limit < 1 or scope.is_empty:
        return ()
    quoted = phrases(query)
    if quoted:
        vector = None
    counted = _counts.get(scope)
    with connection.cursor() as cursor:
        given: dict[str, Any] = {"text": clean(query), "phrase": " ".join(quoted), "n": counted.n}
        given |= {"lexemes": list(counted.words), "dfs": list(counted.words.values())}
        cursor.execute(_statement(scope, vector, given), given)
        rows = [_Row(*row) for row in cursor.fetchall()]
    if not rows:
        return ()
    about = json.loads(next(row.about for row in rows if row.about))
    if not quoted:
        _counts.put(scope, about["n"], {lexeme: df for _, df, lexeme in about["df"] or ()})
    scores = _weigh(rows, about, dates_in(query) if Kind.EVENT in scope.kinds else ())
    return _best(rows, scores, limit)


def clean(query: str) -> str:
    """Return what the database takes of the query: QUERY_CHARS, no control characters, no halves of characters."""
    return _CONTROLS.sub(" ", query[:QUERY_CHARS]).encode("utf-8", "ignore").decode()


def phrases(query: str) -> tuple[str, ...]:
    """Return what stands in quotation marks."""
    found = (next(filter(None, match.groups())) for match in _PHRASE.finditer(clean(query)))
    return tuple(" ".join(phrase.split()) for phrase in found if phrase.strip())


def holds(text: str, quoted: Sequence[str]) -> bool:
    """Return whether each phrase stands in the text, whatever the case and the blanks between words."""
    plain = " ".join(text.split()).casefold()
    return all(phrase.casefold() in plain for phrase in quoted)


def _statement(scope: Scope, vector: Vector | None, given: dict[str, Any]) -> str:
    """Return the statement; its parameters go into `given`."""
    given |= {"owner": scope.owner_id, "kinds": [kind.value for kind in scope.kinds]}
    groups, created = _groups(scope.groups, given), ""
    if scope.created is not None:
        given |= {"since": scope.created[0], "until": scope.created[1]}
        created = " and e.created >= %(since)s and e.created < %(until)s"
    if vector is not None:
        values = "[" + ",".join(f"{x:.6g}" for x in vector.values) + "]"
        given |= {"vector": values, "model": vector.model}
    where = _SCOPE.format(groups=groups, created=created)
    near = _NEAR.format(
        scope=_SCOPE.format(groups=groups, created=""),
        exact=EXACT_ROWS,
        nearest=NEAREST,
        least=LEAST_LIKENESS,
    )
    return _SQL.format(
        scope=where,
        fence=where.replace("e.owner_id", "e.owner_id + 0"),
        most=MOST_TERMS,
        candidates=CANDIDATES,
        hits=MOST_HITS,
        must=" and e.terms @@ (select tq from must)" if given["phrase"] else "",
        near=near if vector is not None else "",
        or_near=" union select * from near" if vector is not None else "",
        cosine=_COSINE if vector is not None else "null",
        vectors=_VECTORS if vector is not None else "",
        chat=_CHAT if Kind.EVENT in scope.kinds else _NO_CHAT,
        wide=_WIDE if scope.is_one_group else "null",
    )


def _groups(groups: Groups, given: dict[str, Any]) -> str:
    if groups is None:
        return ""
    if isinstance(groups, QuerySet):
        inner, values = groups.query.sql_with_params()
        names = [f"group_{i}" for i in range(len(values))]
        given |= dict(zip(names, values, strict=True))
        return f" and e.group_id = any(array({inner % tuple(f'%({name})s' for name in names)}))"
    given["groups"] = list(groups)
    return " and e.group_id = any(%(groups)s::bigint[])"


def _weigh(rows: Sequence[_Row], about: Mapping[str, Any], dates: Sequence[tuple[date, date]]) -> Floats:
    at = {row.place: i for i, row in enumerate(rows)}
    around = {d: np.array([at.get((r.kind, r.group_id, r.position + d), -1) for r in rows]) for d in LENT}
    lengths = np.array([row.length for row in rows], dtype=np.float64)
    df = {ord_: count for ord_, count, _ in about["df"] or ()}
    column = {ord_: i for i, ord_ in enumerate(df)}
    found = np.zeros((len(rows) + 1, len(df)))  # the last row stands for a neighbour that is not here
    pairs = [(i, column[ord_]) for i, row in enumerate(rows) for ord_ in row.terms if ord_ in column]
    found[[i for i, _ in pairs], [j for _, j in pairs]] = 1.0
    counts = np.array(list(df.values()), dtype=np.float64)
    idf = np.log(1 + np.maximum(about["n"] - counts + 0.5, 0.5) / (counts + 0.5))
    found[:-1] *= idf * (1.9 / (1.63 + 0.009 * lengths))[:, None]
    lent = found[:-1]
    for distance, part in LENT.items():
        lent = np.maximum(lent, part * found[around[distance]])
    score = _to_one(lent.sum(axis=1)) + _wide(rows, about, float(lengths.mean()))
    score += VECTOR * _likeness(rows, around) / 4 + LENGTH * np.minimum(lengths, 30) / 30
    score -= QUESTION * np.array([row.asks for row in rows])
    score += SPEAKER * np.array([bool(row.speaks) for row in rows])
    if dates:
        score += DATE * np.array([any(a <= r.created < b for a, b in dates) if r.created else 0 for r in rows])
        score += TIME * np.array([row.tells_time for row in rows])
    return np.asarray(score)


def _to_one(values: Floats) -> Floats:
    most = values.max()
    return values / most if most > 0 else values


def _likeness(rows: Sequence[_Row], around: Mapping[int, NDArray[Any]]) -> Floats:
    """Return how like the question each text is, with half of its neighbours' likeness, in standard deviations."""
    known = np.array([np.nan if row.cosine is None else row.cosine for row in rows] + [np.nan])
    if np.isnan(known).all():
        return np.zeros(len(rows))
    known = np.where(np.isnan(known), np.nanmean(known), known)
    near = known[:-1] + 0.5 * (known[around[-1]] + known[around[1]])
    spread = near.std()
    return (near - near.mean()) / spread if spread > 1e-6 else np.zeros(len(rows))


def _wide(rows: Sequence[_Row], about: Mapping[str, Any], length: float) -> Floats:
    """Return what the wide surroundings in one long group add. It was measured on turns of TURN lexemes; passages are
    longer, so it reaches over fewer of them."""
    if not about["wide"] or not about["wide"][0] or about["n"] < WIDE_FROM:
        return np.zeros(len(rows))
    positions, scores = (np.array(values, dtype=np.float64) for values in about["wide"])
    order = np.argsort(positions)
    positions, scores = positions[order], scores[order]
    mine = np.array([row.position for row in rows], dtype=np.float64)
    first, last = np.searchsorted(positions, mine - WIDE), np.searchsorted(positions, mine + WIDE, side="right")
    sums = [
        float((scores[a:b] * FADING ** (np.abs(positions[a:b] - p) * max(1.0, length / TURN))).sum())
        for p, a, b in zip(mine, first, last, strict=True)
    ]
    return _to_one(np.array(sums))


def _best(rows: Sequence[_Row], scores: Floats, limit: int) -> tuple[Ranked, ...]:
    best: dict[tuple[str, int], Ranked] = {}
    groups, positions = np.array([row.group_id for row in rows]), np.array([row.position for row in rows])
    for i in np.lexsort((positions, groups, -scores)):
        row = rows[i]
        score = round(float(scores[i]), 4)
        ranked = Ranked(ref=row.ref, kind=row.kind, group_id=row.group_id, position=row.position, score=score)
        best.setdefault((row.kind, row.ref), ranked)
        if len(best) == limit:
            break
    return tuple(best.values())


_MONTHS: Final = "january february march april may june july august september october november december".split()
_DATE = re.compile(
    r"(?P<y>\d{4})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2}))?(?!\d)|年(?:\s*(?P<m2>\d{1,2})月(?:\s*(?P<d2>\d{1,2})[日号])?)?)"
    rf"|(?:(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+)?(?P<month>{'|'.join(_MONTHS)})"
    r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?(?!\d))?,?\s+(?P<y2>\d{4})"
    r"|\b(?P<y3>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def dates_in(query: str) -> tuple[tuple[date, date], ...]:
    """Return the stretches of time that dates in the query mean: a day and five more, a month and five more, a year."""
    found = []
    for match in _DATE.finditer(clean(query)):
        part = match.groupdict()
        year = int(part["y"] or part["y2"] or part["y3"])
        month = int(part["m"] or part["m2"] or 0) or (_MONTHS.index(part["month"].lower()) + 1 if part["month"] else 0)
        day = int(part["d"] or part["d2"] or part["d3"] or part["d4"] or 0)
        try:
            start = date(year, month or 1, day or 1)
        except ValueError:
            continue
        days = 6 if day else 36 if month else 366
        found.append((start, start + timedelta(days=days)))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """n: all entries of a scope, None = not counted. words: how many hold a common word."""

    n: float | None = None
    words: Mapping[str, int] = field(default_factory=dict)


class _Counts:
    """How many entries an owner has and how many hold a common word, kept for KEEP_S: a common word is counted once
    and not with each question. Only idf depends on it, and there little."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, tuple[Kind, ...]], tuple[float, _Counted]] = OrderedDict()

    def get(self, scope: Scope) -> _Counted:
        if not scope.is_whole:
            return _Counted()
        with self._lock:
            until, counted = self._kept.get((scope.owner_id, scope.kinds), (0.0, _Counted()))
        return counted if monotonic() < until else _Counted()

    def put(self, scope: Scope, n: float, words: Mapping[str, int]) -> None:
        if not scope.is_whole or n < COMMON_FROM:
            return
        key, now = (scope.owner_id, scope.kinds), monotonic()
        common = [(word, count) for word, count in words.items() if count >= COMMON_FROM]
        with self._lock:
            until, counted = self._kept.pop(key, (0.0, _Counted()))
            if now >= until:
                until, counted = now + KEEP_S, _Counted()
            self._kept[key] = until, _Counted(n=n, words=dict([*counted.words.items(), *common][-COMMON_WORDS:]))
            if len(self._kept) > COMMON_OWNERS:
                self._kept.popitem(last=False)


_counts = _Counts()
