"""The one query builder for everything searchable: owner and scope, words, vectors, neighbours.

BM25 over the lexemes of agents.models.search_entry, counted inside the statement, so nothing is kept in step: the best
CANDIDATES, and the nearest vectors where the scope is small, come back with their neighbours and are weighed here. A
neighbour lends its words; vectors, lengths and, for events, speakers, questions and dates add a little.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeAlias

import numpy as np
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import NDArray

from agents.models.search_entry import Kind

CANDIDATES: Final = 100
NEAREST: Final = 50
NEAR_BY_SIGNS: Final = 600  # among these are the ten nearest, and 99 in 100 of the fifty
MOST_HITS: Final = 3_000  # of the rarest terms, to choose candidates from; commoner ones only weigh them
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
# A hit is one number, its entry's id and in the last 15 bits its length: one array to make and take apart, not two.
# Rows come back as one, of arrays: a thousand values cost less than fifty rows.
_HITS = """select count(*)::int df, array_agg(e.id << 15 | e.length) hits from agents_searchentry e
    where e.terms @@ q.tq and {fence}{must} offset 0"""
_SQL = """
with given as materialized (
  select lexeme, tq from wb_query(%(owner)s, %(text)s) order by md5(lexeme) limit 256),
n as materialized (select coalesce(%(n)s::float8, (select count(*) from agents_searchentry e where {scope})) n),
q as materialized (
  select row_number() over ()::int ord, sum(known) over (order by known, lexeme) upto,
    row_number() over (order by known, lexeme) nth, x.*
  from (
    select lexeme, tq, k.df known from given
    left join (select key, value::int df from json_each_text(%(words)s)) k on k.key = lexeme
    order by case when (select count(*) from given) > {most} then nullif((select count(*) from (
      select from agents_searchentry e where e.terms @@ tq and {fence} limit 1000) x), 0) end nulls last, lexeme
    limit {most}) x),
{phrase}
fresh as materialized (select q.ord, e.* from q cross join lateral ({hits_of}) e where q.known is null),
h as materialized (
  select * from fresh union all select q.ord, e.* from q cross join lateral ({hits_of}) e
  where q.known is not null and (
    q.upto + (select coalesce(sum(df), 0) from fresh where df <= q.known) <= {hits}
    or q.nth + (select count(*) from fresh where df between 1 and q.known) <= 2)),
d as materialized (
  select ord, q.lexeme, coalesce(h.df, q.known) df, hits from q left join h using (ord)
  where coalesce(h.df, q.known) > 0),
rare as (
  select ln(1 + greatest((select n from n) - df + .5::float8, .5::float8) / (df + .5::float8)) idf, hits
  from (select d.*, sum(df) over w total, row_number() over w nth from d where hits is not null
        window w as (order by df, ord)) x
  where total <= {hits} or nth <= 2),
scored as (
  select hit >> 15 id, sum(rare.idf / (1.63::float8 + .009::float8 * (hit & 32767))) s
  from rare cross join lateral unnest(hits) x(hit) group by hit),
top as (select id from scored order by s desc, id limit {candidates}),
{near}
best as materialized (
  select e.kind, e.group_id, e.position from (select id from top{or_near}) t
  join agents_searchentry e on e.id = t.id and {scope}),
w as (
  select distinct x.* from best cross join lateral (
    select array_position(%(kinds)s, e.kind) kind, e.ref, e.group_id, e.position, e.length, {cosine}::real cosine,
      {chat},
      (select coalesce(bit_or(1::bigint << q.ord), 0) from q where e.terms @@ q.tq) words
    from agents_searchentry e{vectors}
    where {scope} and e.kind = best.kind and e.group_id = best.group_id
      and e.position between best.position - 2 and best.position + 2 offset 0) x)
select json_build_object('n', (select n from n),
    'df', (select json_agg(json_build_array(ord, df, lexeme)) from d), 'wide', {wide})::text,
  array_agg(kind), array_agg(ref), array_agg(group_id), array_agg(position), array_agg(length), array_agg(cosine),
  array_agg(words), array_agg(asks), array_agg(tells_time), array_agg(speaks), array_agg(created)
from w having count(*) > 0
"""
# Signs alone are a sixteenth of a vector and are read from the index; what is near by them is compared exactly.
_NEAR = """near as materialized (
  select id from (
    select x.id, v.vector <#> %(vector)s::halfvec far from (
      select e.entry_id id from agents_embedding e
      where {scope} and e.model = %(model)s and (select n from n) <= {exact}
      order by e.signs <~> binary_quantize(%(vector)s::halfvec) limit {signs}) x
    cross join lateral (
      select v.vector from agents_embedding v where v.entry_id = x.id and v.owner_id = %(owner)s offset 0) v
    order by 2 limit {nearest}) x
  where far <= -{least}::float8),"""
_COSINE = "case when v.model = %(model)s then -(v.vector <#> %(vector)s::halfvec) end"
_VECTORS = """ left join lateral (
      select v.model, v.vector from agents_embedding v
      where v.entry_id = e.id and v.owner_id = %(owner)s offset 0) v on true"""
_MUST = """must as materialized (
  select string_agg(tq::text, ' & ')::tsquery tq from wb_query(%(owner)s, %(phrase)s)),"""
_CHAT = """e.terms @@ wb_quote(%(owner)s, '#q')::tsquery asks, e.terms @@ wb_quote(%(owner)s, '#t')::tsquery tells_time,
      e.terms @@ (select string_agg(wb_quote(%(owner)s, '@' || lexeme), ' | ')::tsquery from q) speaks,
      e.created::date created"""
_NO_CHAT = "false asks, false tells_time, false speaks, null::date created"
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


class _Rows:
    """What a search weighs, as columns: candidates and their neighbours, each once. words: a bit for each term."""

    def __init__(self, kinds: Sequence[Kind], columns: Sequence[Sequence[Any]]) -> None:
        kind, ref, group, position, length, cosine, words, asks, tells_time, speaks, created = columns
        self.kinds = kinds
        self.kind, self.ref, self.group = np.array(kind), np.array(ref), np.array(group)
        self.position, self.words = np.array(position), np.array(words)
        self.length = np.array(length, dtype=np.float64)
        self.cosine = np.array(cosine, dtype=np.float64)  # nan: no vector
        self.asks, self.tells_time = np.array(asks), np.array(tells_time)
        self.speaks = np.array(speaks, dtype=bool)
        self.created: Sequence[date | None] = created

    def __len__(self) -> int:
        return len(self.ref)

    def around(self, distances: Iterable[int]) -> dict[int, NDArray[Any]]:
        """Return for each distance, row by row, the index of the row so far on in its group, -1 = it is not here."""
        group = np.unique(self.group * (len(self.kinds) + 1) + self.kind, return_inverse=True)[1].astype(np.int64)
        place = (group << 33) + self.position
        order = np.argsort(place)
        ordered = place[order]
        found = {}
        for distance in distances:
            at = np.searchsorted(ordered, place + distance).clip(max=len(ordered) - 1)
            found[distance] = np.where(ordered[at] == place + distance, order[at], -1)
        return found


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
        given: dict[str, Any] = {"text": clean(query), "phrase": " ".join(quoted)}
        given |= {"n": counted.n, "words": json.dumps(counted.words)}
        cursor.execute(_statement(scope, vector, given), given)
        found = cursor.fetchone()
    if found is None:
        return ()
    about, rows = json.loads(found[0]), _Rows(scope.kinds, found[1:])
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
        given |= {"vector": f"[{','.join(map('{:.6g}'.format, vector.values))}]", "model": vector.model}
    where = _SCOPE.format(groups=groups, created=created)
    fence = where.replace("e.owner_id", "e.owner_id + 0")
    must = " and e.terms @@ (select tq from must)" if given["phrase"] else ""
    near = _NEAR.format(
        scope=_SCOPE.format(groups=groups, created=""),
        exact=EXACT_ROWS,
        nearest=NEAREST,
        signs=NEAR_BY_SIGNS,
        least=LEAST_LIKENESS,
    )
    statement = _SQL.format(
        scope=where,
        fence=fence,
        most=MOST_TERMS,
        candidates=CANDIDATES,
        hits=MOST_HITS,
        phrase=_MUST if must else "",
        hits_of=_HITS.format(fence=fence, must=must),
        near=near if vector is not None else "",
        or_near=" union select id from near" if vector is not None else "",
        cosine=_COSINE if vector is not None else "null",
        vectors=_VECTORS if vector is not None else "",
        chat=_CHAT if Kind.EVENT in scope.kinds else _NO_CHAT,
        wide=_WIDE if scope.is_one_group else "null",
    )
    return " ".join(statement.split())  # psycopg keeps what it made of a statement if that is shorter than 4,096


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


def _weigh(rows: _Rows, about: Mapping[str, Any], dates: Sequence[tuple[date, date]]) -> Floats:
    around = rows.around(LENT)
    terms = about["df"] or ()
    counts = np.array([count for _, count, _ in terms], dtype=np.float64)
    idf = np.log(1 + np.maximum(about["n"] - counts + 0.5, 0.5) / (counts + 0.5))
    found = np.zeros((len(rows) + 1, len(terms)))  # the last row stands for a neighbour that is not here
    found[:-1] = rows.words[:, None] >> np.array([ord_ for ord_, _, _ in terms], dtype=np.int64) & 1
    found[:-1] *= idf * (1.9 / (1.63 + 0.009 * rows.length))[:, None]
    lent = found[:-1]
    for distance, part in LENT.items():
        lent = np.maximum(lent, part * found[around[distance]])
    score = _to_one(lent.sum(axis=1)) + _wide(rows, about)
    score += VECTOR * _likeness(rows, around) / 4 + LENGTH * np.minimum(rows.length, 30) / 30
    score += SPEAKER * rows.speaks - QUESTION * rows.asks
    if dates:
        score += DATE * np.array([any(a <= day < b for a, b in dates) if day else 0 for day in rows.created])
        score += TIME * rows.tells_time
    return np.asarray(score)


def _to_one(values: Floats) -> Floats:
    most = values.max()
    return values / most if most > 0 else values


def _likeness(rows: _Rows, around: Mapping[int, NDArray[Any]]) -> Floats:
    """Return how like the question each text is, with half of its neighbours' likeness, in standard deviations."""
    known = np.append(rows.cosine, np.nan)
    if np.isnan(known).all():
        return np.zeros(len(rows))
    known = np.where(np.isnan(known), np.nanmean(known), known)
    near = known[:-1] + 0.5 * (known[around[-1]] + known[around[1]])
    spread = near.std()
    return (near - near.mean()) / spread if spread > 1e-6 else np.zeros(len(rows))


def _wide(rows: _Rows, about: Mapping[str, Any]) -> Floats:
    """Return what the wide surroundings in one long group add. It was measured on turns of TURN lexemes; passages are
    longer, so it reaches over fewer of them."""
    if not about["wide"] or not about["wide"][0] or about["n"] < WIDE_FROM:
        return np.zeros(len(rows))
    positions, scores = (np.array(values, dtype=np.float64) for values in about["wide"])
    order = np.argsort(positions)
    positions, scores = positions[order], scores[order]
    mine, length = rows.position.astype(np.float64), float(rows.length.mean())
    first, last = np.searchsorted(positions, mine - WIDE), np.searchsorted(positions, mine + WIDE, side="right")
    sums = [
        float((scores[a:b] * FADING ** (np.abs(positions[a:b] - p) * max(1.0, length / TURN))).sum())
        for p, a, b in zip(mine, first, last, strict=True)
    ]
    return _to_one(np.array(sums))


def _best(rows: _Rows, scores: Floats, limit: int) -> tuple[Ranked, ...]:
    order = np.lexsort((rows.position, rows.group, -scores))
    columns = (column[order].tolist() for column in (rows.kind, rows.ref, rows.group, rows.position, scores))
    best: dict[tuple[int, int], Ranked] = {}
    for kind, ref, group, position, score in zip(*columns, strict=True):
        if (kind, ref) not in best:
            name = rows.kinds[kind - 1].value
            best[kind, ref] = Ranked(ref=ref, kind=name, group_id=group, position=position, score=round(score, 4))
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
