"""Make the events that are there already searchable, one conversation per transaction.

A migration that was cut short goes on where it stopped: a conversation that has entries is passed over.
"""

from typing import Any

from django.db import migrations

# What agents/runtime/pieces.py said of these records at the time, but cut by length alone. Time words are not marked:
# their weight is the least of all.
ENTER = r"""
with asked as materialized (
  select id, owner_id from agents_session where id = %(session)s and entries = 0 for update),
content as materialized (
  select e.position, e.fork, e.type, e.at, case e.type
    when 'user_message' then (
      select string_agg(case p.part ->> 'type' when 'file' then '[Attached file "' || (p.part ->> 'name') || '"]'
                        else coalesce(p.part ->> 'text', '') end, E'\n' order by p.nth)
      from jsonb_array_elements(e.payload -> 'parts') with ordinality p(part, nth))
    when 'assistant_message' then
      case when e.payload ? 'citations'
      then regexp_replace(e.payload ->> 'text', '\[\d+\]\(#c-([a-z0-9]+)\)', '[[c:\1]]', 'g')
      else e.payload ->> 'text' end
    else e.payload ->> 'content' end text
  from asked join agents_event e on e.session_id = asked.id
  where e.type in ('user_message', 'assistant_message') or e.type = 'tool_returned'
    and coalesce(e.payload ->> 'status', 'ok') = 'ok'
    and e.payload ->> 'name' not in ('session_search', 'session_load')),
piece as materialized (
  select c.position ref, c.fork, c.at, octet_length(left(c.text, n * 1500)) start,
    regexp_replace(substr(c.text, n * 1500 + 1, 1500), '\[\[c:[A-Za-z0-9_-]{1,8}\]\]', ' ', 'g') body,
    case when c.type = 'assistant_message' then array['@assist', '@助手',
      case when n = (length(c.text) - 1) / 1500 and rtrim(c.text, E' \t\r\n') ~ '[?？]$' then '#q' else '' end]
    else array[]::text[] end marks
  from content c cross join lateral generate_series(0, (length(c.text) - 1) / 1500) n
  where c.text <> ''),
numbered as materialized (
  select *, row_number() over (order by ref, start) nth from piece where body ~ '\S'),
entered as (
  insert into agents_searchentry (owner_id, kind, ref, "offset", fork, group_id, position, length, terms, created)
  select owner_id, 'event', ref, start, fork, id, nth, least(length(terms), 32767), terms, at
  from (select n.*, asked.owner_id, asked.id, wb_index(asked.owner_id, n.body, n.marks) terms
        from numbered n cross join asked offset 0) x
  order by nth)
update agents_session s set entries = (select count(*) from numbered) from asked where s.id = asked.id
"""
LEAVE = """
with gone as (delete from agents_searchentry e using agents_session s
              where s.id = %(session)s and e.owner_id = s.owner_id and e.kind = 'event' and e.group_id = s.id)
update agents_session set entries = 0 where id = %(session)s
"""


def enter(apps: Any, schema_editor: Any) -> None:
    _each(schema_editor, ENTER, "entries = 0 and last_position > 0")


def leave(apps: Any, schema_editor: Any) -> None:
    _each(schema_editor, LEAVE, "entries > 0")


def _each(schema_editor: Any, statement: str, which: str) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(f"select id from agents_session where {which} order by id")
        for (session,) in cursor.fetchall():
            cursor.execute(statement, {"session": session})


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agents", "0007_entries")]

    operations = [migrations.RunPython(enter, leave)]
