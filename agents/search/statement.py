"""The one statement of a search, with its scope. The tenant filter stands here and nowhere else."""

from typing import Any, Final

from django.db.models import QuerySet

from agents.models.search_entry import Kind
from agents.search.scope import Groups, Scope, Vector

CANDIDATES: Final = 100
NEAREST: Final = 50
NEAREST_UNSEEN: Final = 200  # to choose those from, when only its entry tells whether it is in the scope
NEAR_BY_SIGNS: Final = 600  # among these are the ten nearest, and 99 in 100 of the fifty
MOST_HITS: Final = 3_000  # of the rarest terms, to choose candidates from; commoner ones only weigh them
EXACT_ROWS: Final = 20_000  # in larger scopes vectors re-rank and find nothing of their own
LEAST_LIKENESS: Final = 0.3  # cosine; what is further away answers nothing
MOST_TERMS: Final = 32  # the rarest; a question of more words than this is a text

_SCOPE = "e.owner_id = %(owner)s and e.kind = any(%(kinds)s){groups}{seen}"

# Casts keep the arithmetic in float8: in numeric, ln alone takes 5 microseconds. `offset 0` keeps each look-up by
# itself: the planner guesses a lexeme in 0.5 % of all rows and would join the wrong way round. `fence` is `scope`, its
# owner out of reach of an index: the lexemes name it already, and all of the owner's rows would be looked up as well.
# A hit is one number, its entry's id and in the last 15 bits its length: one array to make and take apart, not two.
# Rows come back as one, of arrays: a thousand values cost less than fifty rows.
_HITS = """select count(*)::int df, array_agg(e.id << 15 | e.length) hits from agents_searchentry e
    where e.terms @@ q.tq and {fence}{must} offset 0"""
_SQL = """
with given as materialized (
  select lexeme, {tq} from wb_query(%(owner)s, %(text)s){alike} order by md5(lexeme) limit 256),
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
    select array_position(%(kinds)s, e.kind) kind, e.ref, e."offset", e.group_id, e.position, e.length,
      {cosine}::real cosine, {chat},
      (select coalesce(bit_or(1::bigint << q.ord), 0) from q where e.terms @@ q.tq) words
    from agents_searchentry e{vectors}
    where {scope} and e.kind = best.kind and e.group_id = best.group_id
      and e.position between best.position - 2 and best.position + 2 offset 0) x)
select json_build_object('n', (select n from n),
    'df', (select json_agg(json_build_array(ord, df, lexeme)) from d), 'wide', {wide})::text,
  array_agg(kind), array_agg(ref), array_agg("offset"), array_agg(group_id), array_agg(position), array_agg(length),
  array_agg(cosine), array_agg(words), array_agg(asks), array_agg(tells_time), array_agg(speaks), array_agg(created)
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
  where far <= -{least}::float8{seen}),"""
_SEEN = " and exists (select from agents_searchentry e where e.id = x.id and {scope}) order by far limit {nearest}"
_COSINE = "case when v.model = %(model)s then -(v.vector <#> %(vector)s::halfvec) end"
_VECTORS = """ left join lateral (
      select v.model, v.vector from agents_embedding v
      where v.entry_id = e.id and v.owner_id = %(owner)s offset 0) v on true"""
# A term is any of the words that say the same.
_ALIKE = """ left join (
    select w.lexeme, string_agg(o.tq::text, ' | ')::tsquery others
    from unnest(%(alike)s::text[], %(others)s::text[]) x(word, others)
    cross join lateral wb_query(%(owner)s, x.word) w cross join lateral wb_query(%(owner)s, x.others) o
    group by 1) a using (lexeme)"""
_MUST = """must as materialized (
  select string_agg(tq::text, ' & ')::tsquery tq from wb_query(%(owner)s, %(phrase)s)),"""
_CHAT = """e.terms @@ wb_quote(%(owner)s, '#q')::tsquery asks, e.terms @@ wb_quote(%(owner)s, '#t')::tsquery tells_time,
      e.terms @@ (select string_agg(wb_quote(%(owner)s, '@' || x), ' | ')::tsquery from (
        select lexeme x from q union select unnest(%(names)s::text[])) x) speaks,
      e.created::date created"""
_NO_CHAT = "false asks, false tells_time, false speaks, null::date created"
_WIDE = """(select json_build_array(array_agg(e.position), array_agg(s))
    from scored join agents_searchentry e using (id))"""


def statement(scope: Scope, vector: Vector | None, given: dict[str, Any]) -> str:
    """Return the statement; its parameters go into `given`, which holds those of the query."""
    given |= {"owner": scope.owner_id, "kinds": [kind.value for kind in scope.kinds]}
    groups, seen = _groups(scope, given), _seen(scope, given)
    if vector is not None:
        given |= {"vector": f"[{','.join(map('{:.6g}'.format, vector.values))}]", "model": vector.model}
    where = _SCOPE.format(groups=groups, seen=seen)
    fence = where.replace("e.owner_id", "e.owner_id + 0")
    if Kind.MEMORY in scope.kinds:  # each is a group of its own, and all of them would be looked up with each term
        fence = fence.replace("e.group_id", "e.group_id + 0")
    must = " and e.terms @@ (select tq from must)" if given["phrase"] else ""
    near = _NEAR.format(
        scope=_SCOPE.format(groups=groups, seen=""),
        seen=_SEEN.format(scope=where, nearest=NEAREST) if seen else "",
        exact=EXACT_ROWS,
        nearest=NEAREST_UNSEEN if seen else NEAREST,
        signs=NEAR_BY_SIGNS,
        least=LEAST_LIKENESS,
    )
    made = _SQL.format(
        scope=where,
        fence=fence,
        most=MOST_TERMS,
        candidates=CANDIDATES,
        hits=MOST_HITS,
        tq="coalesce(tq || others, tq) tq" if given["alike"] else "tq",
        alike=_ALIKE if given["alike"] else "",
        phrase=_MUST if must else "",
        hits_of=_HITS.format(fence=fence, must=must),
        near=near if vector is not None else "",
        or_near=" union select id from near" if vector is not None else "",
        cosine=_COSINE if vector is not None else "null",
        vectors=_VECTORS if vector is not None else "",
        chat=_CHAT if Kind.EVENT in scope.kinds else _NO_CHAT,
        wide=_WIDE if scope.is_one_document else "null",
    )
    return " ".join(made.split())  # psycopg keeps what it made of a statement if that is shorter than 4,096


def _groups(scope: Scope, given: dict[str, Any]) -> str:
    """Return which groups, as far as an embedding's row tells it too."""
    found = "" if scope.groups is None else f" and e.group_id = any({_keys('group', scope.groups, given)})"
    if scope.without is not None:
        found += f" and {_of_events(scope)}e.group_id <> all({_keys('gone', scope.without, given)}))"
    return found


def _seen(scope: Scope, given: dict[str, Any]) -> str:
    """Return which entries of these groups, as only their own rows tell it."""
    found = ""
    if scope.created is not None:
        given |= {"since": scope.created[0], "until": scope.created[1]}
        found = " and e.created >= %(since)s and e.created < %(until)s"
    if scope.line is not None:
        group, forks = scope.line
        given |= {"line": group, "forks": [fork for fork, _ in forks], "upto": [upto for _, upto in forks]}
        found += (
            f" and {_of_events(scope)}e.group_id <> %(line)s"
            " or e.ref <= (%(upto)s::bigint[])[array_position(%(forks)s::int[], e.fork)])"
        )
    return found


def _of_events(scope: Scope) -> str:
    return "(" if scope.kinds == (Kind.EVENT,) else "(e.kind <> 'event' or "


def _keys(name: str, keys: Groups, given: dict[str, Any]) -> str:
    """Return keys as an array in the statement, a query set as a part of it."""
    if isinstance(keys, QuerySet):
        inner, values = keys.query.sql_with_params()
        names = [f"{name}_{i}" for i in range(len(values))]
        given |= dict(zip(names, values, strict=True))
        return f"array({inner % tuple(f'%({name})s' for name in names)})"
    given[name] = list(keys or ())
    return f"%({name})s::bigint[]"
