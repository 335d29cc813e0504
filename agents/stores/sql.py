"""The statements of the hot path, as text. Everything else goes through the ORM.

Lock order, the same in every statement that locks more than one row: sessions by id, each together with its run, then
state rows by their unique key. Whoever waits here waits in that order, so there is no deadlock.
"""

# A record as events.row gives it, and what is made of it: an event, and an entry for each of its pieces. _WRITTEN goes
# on from a CTE `fresh`: the records to store, with session_id, owner_id, run, fork, position, ord, and `entries`, how
# many the session has. They are numbered on from there without gaps, over all forks, so neighbours stand side by side.
_RECORD = """id text, type text, invocation_id text, author text, branch text, filter_key text, origin jsonb,
        payload jsonb, tokens int, at timestamptz, state jsonb, scoped jsonb, pieces json"""
_NAMES = "id, type, invocation_id, author, branch, filter_key, origin, payload, tokens, at, state, scoped, pieces, ord"
_WRITTEN = """written AS (
    INSERT INTO agents_event (owner_id, session_id, position, fork, run_id, event_id, type, invocation_id, author,
                              branch, filter_key, origin, payload, tokens, at)
    SELECT owner_id, session_id, position, fork, run, id, type, invocation_id, author,
           coalesce(branch, ''), coalesce(filter_key, ''), coalesce(origin, '{}'), payload, coalesce(tokens, 0), at
    FROM fresh ORDER BY ord
), piece AS MATERIALIZED (
    SELECT f.owner_id, f.session_id, f.position AS ref, f.fork, f.at, p.*,
           f.entries + row_number() OVER (PARTITION BY f.session_id ORDER BY f.ord, p.start) AS position
    FROM fresh f CROSS JOIN LATERAL json_to_recordset(f.pieces) AS p(start int, marks text, body text)
), entered AS (
    INSERT INTO agents_searchentry (owner_id, kind, ref, "offset", fork, group_id, position, length, terms, created)
    SELECT owner_id, 'event', ref, start, fork, session_id, position, least(length(terms), 32767), terms, at
    FROM (SELECT *, wb_index(owner_id, body, string_to_array(marks, ' ')) AS terms FROM piece OFFSET 0) x
    ORDER BY session_id, position
)"""

# One batch of the writer: $1 the runs, $2 the records, $3 the model calls, each a JSON array; $4 the kinds of jobs that
# follow a run, $5 the kind of one that an append asked for. `held` is the fence: a run that is over, or whose epoch was
# raised, is not in it and gets nothing stored. It locks run and session, so what it sees is the newest, not the
# snapshot's.
_APPEND = """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS t(
        run bigint, epoch int, status text, prompt bigint, cached bigint, completion bigint, reasoning bigint,
        model_calls int, error_code text, error_message text, summarise bool)
), held AS MATERIALIZED (
    SELECT s.id AS session_id, s.owner_id, s.agent, s.last_position, s.entries, s.title,
           s.title_by_person, r.id AS run, r.client_id, r.fork
    FROM asked a
    JOIN agents_run r ON r.id = a.run AND r.epoch = a.epoch AND r.status = 'running'
    JOIN agents_session s ON s.id = r.session_id
    ORDER BY s.id
    FOR UPDATE OF s, r{skip}
), given AS MATERIALIZED (
    SELECT e.*, h.session_id, h.owner_id, h.agent, h.fork, h.last_position, h.entries
    FROM ROWS FROM (json_to_recordset(%s::json) AS (
        run bigint, {record})) WITH ORDINALITY AS e(
        run, {names})
    JOIN held h ON h.run = e.run
), known AS MATERIALIZED (
    SELECT g.run, g.id FROM given g
    JOIN agents_event e ON e.session_id = g.session_id AND e.event_id = g.id AND e.event_id <> ''
), fresh AS MATERIALIZED (
    SELECT g.*, g.last_position + row_number() OVER (PARTITION BY g.run ORDER BY g.ord) AS position
    FROM given g LEFT JOIN known k ON k.run = g.run AND k.id = g.id
    WHERE k.id IS NULL
), {written}, folded AS MATERIALIZED (
    SELECT f.session_id, jsonb_object_agg(kv.key, kv.value ORDER BY f.ord) AS delta
    FROM fresh f, jsonb_each(f.state) kv WHERE f.state IS NOT NULL GROUP BY f.session_id
), moved AS (
    UPDATE agents_session s
    SET last_position = m.position,
        entries = s.entries + (SELECT count(*) FROM piece p WHERE p.session_id = s.id),
        -- only at the end: an indexed column that changes makes the update three times as dear
        active_at = CASE WHEN a.status IS NULL THEN s.active_at ELSE clock_timestamp() END,
        state = CASE WHEN d.delta IS NULL THEN s.state ELSE s.state || d.delta END
    FROM (SELECT session_id, run, max(position) AS position FROM fresh GROUP BY session_id, run) m
    JOIN asked a ON a.run = m.run
    LEFT JOIN folded d ON d.session_id = m.session_id
    WHERE s.id = m.session_id
), shared AS (
    INSERT INTO agents_state (scope, owner_id, agent, key, value, changed_at)
    SELECT DISTINCT ON (scope, owner_id, agent, key) scope, owner_id, agent, key, value, clock_timestamp()
    FROM (SELECT split_part(kv.key, ':', 1) AS scope,
                 CASE WHEN kv.key LIKE 'user:%%' THEN f.owner_id END AS owner_id,
                 CASE WHEN kv.key LIKE 'app:%%' THEN f.agent ELSE '' END AS agent,
                 substr(kv.key, strpos(kv.key, ':') + 1) AS key, kv.value, f.ord
          FROM fresh f, jsonb_each(f.scoped) kv WHERE f.scoped IS NOT NULL) v
    ORDER BY scope, owner_id, agent, key, ord DESC
    ON CONFLICT (scope, owner_id, agent, key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at
), called AS (
    INSERT INTO agents_modelcall (owner_id, call_id, session_id, run_id, invocation_id, purpose, provider, model,
                                  prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, ttft_ms,
                                  latency_ms, finish_reason, error_code, parts, request_sha256, started_at)
    SELECT h.owner_id, c.id, h.session_id, h.run, c.invocation_id, c.purpose, c.provider, c.model,
           c.prompt, c.cached, c.completion, c.reasoning, c.ttft_ms,
           c.latency_ms, c.finish_reason, c.error_code, c.parts, c.request_sha256,
           coalesce(c.started_at, clock_timestamp())
    FROM ROWS FROM (json_to_recordset(%s::json) AS (
        run bigint, id text, invocation_id text, purpose text, provider text, model text, prompt int, cached int,
        completion int, reasoning int, ttft_ms float8, latency_ms float8, finish_reason text, error_code text,
        parts jsonb, request_sha256 text, started_at timestamptz)) WITH ORDINALITY AS c(
        run, id, invocation_id, purpose, provider, model, prompt, cached, completion, reasoning, ttft_ms, latency_ms,
        finish_reason, error_code, parts, request_sha256, started_at, ord)
    JOIN held h ON h.run = c.run
    ORDER BY c.ord
    ON CONFLICT (call_id) DO NOTHING
), ended AS (
    UPDATE agents_run r
    SET status = a.status, ended_at = clock_timestamp(), prompt_tokens = a.prompt, cached_tokens = a.cached,
        completion_tokens = a.completion, reasoning_tokens = a.reasoning, model_calls = a.model_calls,
        error_code = a.error_code, error_message = a.error_message
    FROM asked a JOIN held h ON h.run = a.run
    WHERE r.id = h.run AND a.status IS NOT NULL
), planted AS (
    INSERT INTO agents_job (kind, owner_id, session_id, scope, range, status, attempts, next_at, error_code,
                            error_message, created_at)
    SELECT k.kind, h.owner_id, h.session_id, CASE k.kind WHEN 'embed' THEN 'session:' || h.session_id ELSE '' END,
           jsonb_build_object('run', h.client_id), 'queued', 0, clock_timestamp(), '', '', clock_timestamp()
    FROM held h JOIN asked a ON a.run = h.run
    CROSS JOIN LATERAL (
        SELECT ended.kind FROM unnest(%s::text[]) AS ended(kind) WHERE a.status IS NOT NULL
        UNION ALL SELECT %s::text WHERE a.summarise
    ) k
    WHERE k.kind <> 'title' OR (h.title = '' AND NOT h.title_by_person)
    ORDER BY h.session_id, k.kind
    ON CONFLICT DO NOTHING
    RETURNING id, kind, session_id
)
SELECT h.run, h.fork, h.last_position,
       (SELECT array_agg(k.id) FROM known k WHERE k.run = h.run),
       (SELECT jsonb_object_agg(p.kind, p.id) FROM planted p WHERE p.session_id = h.session_id)
FROM held h
"""
_PARTS_OF_A_RECORD = {"record": _RECORD, "names": _NAMES, "written": _WRITTEN}
APPEND = _APPEND.format(skip="", **_PARTS_OF_A_RECORD)
# When somebody holds one session's row for long, the others go on; who was left out is asked for by FATE.
APPEND_SKIPPING_LOCKED = _APPEND.format(skip=" SKIP LOCKED", **_PARTS_OF_A_RECORD)

# What became of runs that an APPEND did not find: gone (no row), over, fenced, or only locked.
FATE = "SELECT id, epoch, status = 'running' FROM agents_run WHERE id = ANY(%s)"

_EVENT_COLUMNS = """e.position, e.fork, e.event_id, e.type, e.invocation_id, e.author, e.branch, e.filter_key, e.origin,
       e.payload, e.tokens, e.at, r.client_id"""

EVENTS_BY_ID = f"""
SELECT ask.id, {_EVENT_COLUMNS}
FROM agents_run ask
JOIN agents_event e ON e.session_id = ask.session_id
JOIN agents_run r ON r.id = e.run_id
WHERE ask.id = ANY(%s) AND e.event_id = ANY(%s) AND e.event_id <> ''
"""

EVENTS_OF_RUN = f"""
SELECT {_EVENT_COLUMNS}
FROM agents_run r JOIN agents_event e ON e.session_id = r.session_id AND e.run_id = r.id
WHERE r.id = %s ORDER BY e.position
"""

# The visible chain that ends in a fork, as (fork, up to which position it counts): a query to stand in FROM.
_LINE = """(
    WITH RECURSIVE line(fork, up_to) AS (
        SELECT {fork}, 9223372036854775807::bigint
        UNION ALL
        SELECT f.parent, least(line.up_to, f.shared_position)
        FROM line JOIN agents_fork f ON f.session_id = {session} AND f.number = line.fork
        WHERE f.parent IS NOT NULL
    )
    SELECT fork, up_to FROM line)"""

# The chain given as two arrays.
_PARTS = "unnest(%(forks)s::int[], %(up_to)s::bigint[])"

# The newest summary of one scope whose boundary lies on a chain. `m.*` are columns of agents_summary.
_NEWEST = """
    SELECT m.* FROM agents_summary m
    WHERE m.session_id = {session} AND m.filter_key = {key}
      AND EXISTS (SELECT FROM {line} AS part(fork, up_to) WHERE part.fork = m.fork AND m.position <= part.up_to)
    ORDER BY m.position DESC, m.id DESC LIMIT 1"""

_SUMMARY = """jsonb_build_object(
    'id', m.summary_id, 'text', m.text, 'filter_key', m.filter_key, 'position', m.position, 'fork', m.fork,
    'event_id', m.event_id, 'at', m.at, 'read_from', m.read_from, 'made_at', m.created_at,
    'base', (SELECT b.summary_id FROM agents_summary b WHERE b.id = m.base_id), 'summarizer', m.summarizer,
    'model', m.model, 'source', m.source, 'citations', m.citations, 'tokens', m.tokens,
    'covered_tokens', m.covered_tokens, 'covered_events', m.covered_events, 'report', m.report)"""

# The scopes of a session that have summaries: from one to the next along the index.
_SCOPES = """(
    WITH RECURSIVE scope(key) AS (
        SELECT (SELECT min(m.filter_key) FROM agents_summary m WHERE m.session_id = {session})
        UNION ALL
        SELECT (SELECT min(m.filter_key) FROM agents_summary m
                WHERE m.session_id = {session} AND m.filter_key > scope.key)
        FROM scope WHERE scope.key IS NOT NULL
    )
    SELECT key FROM scope WHERE key IS NOT NULL)"""

# The newest summary of each of these scopes as a chain sees it, for a fork and for a chain that is no fork yet.
_SUMMARIES = f"""
SELECT {_SUMMARY}
FROM (SELECT s.id FROM agents_session s WHERE s.id = %(session)s AND s.owner_id = %(owner)s) ask
CROSS JOIN unnest(%(keys)s::text[]) AS wanted(key)
CROSS JOIN LATERAL ({{newest}}) m
"""
SUMMARIES = _SUMMARIES.format(
    newest=_NEWEST.format(session="ask.id", key="wanted.key", line=_LINE.format(session="ask.id", fork="%(fork)s::int"))
)
SUMMARIES_OF_PARTS = _SUMMARIES.format(newest=_NEWEST.format(session="ask.id", key="wanted.key", line=_PARTS))

# A summary is stored if what it was built from is still the newest of its scope, and its boundary lies beyond that
# one's, on the chain, at an event that is there. Sent twice it is stored once. One row: whether it lies there.
ADVANCE = f"""
WITH newest AS MATERIALIZED ({
    _NEWEST.format(
        session="%(session)s", key="%(filter_key)s", line=_LINE.format(session="%(session)s", fork="%(head)s::int")
    )
}
), written AS (
    INSERT INTO agents_summary (summary_id, owner_id, session_id, filter_key, fork, position, event_id, at, read_from,
                                base_id, text, citations, tokens, covered_tokens, covered_events, summarizer, model,
                                source, report, created_at)
    SELECT g.id, s.owner_id, s.id, g.filter_key, g.fork, g.position, g.event_id, g.at, g.read_from,
           n.id, g.text, g.citations, g.tokens, g.covered_tokens, g.covered_events, g.summarizer, g.model,
           g.source, g.report, g.made_at
    FROM json_to_record(%(summary)s::json) AS g(
        id text, filter_key text, fork int, position bigint, event_id text, at timestamptz, read_from bigint,
        base text, text text, citations jsonb, tokens int, covered_tokens bigint, covered_events int,
        summarizer text, model text, source text, report jsonb, made_at timestamptz)
    JOIN agents_session s ON s.id = %(session)s AND s.owner_id = %(owner)s AND s.deleted_at IS NULL
    JOIN agents_event e ON e.session_id = s.id AND e.position = g.position AND e.fork = g.fork
    JOIN {_LINE.format(session="%(session)s", fork="%(head)s::int")} AS part(fork, up_to)
      ON part.fork = g.fork AND g.position <= part.up_to
    LEFT JOIN newest n ON true
    WHERE coalesce(n.summary_id, '') = g.base AND (n.id IS NULL OR n.position < g.position)
    ON CONFLICT (summary_id) DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM written) OR EXISTS (SELECT FROM newest n WHERE n.summary_id = %(id)s)
"""

# What a request to run finds. One row always: the session's columns are null when the thread is new. A session that
# files came to before any run has no agent yet: the first run's is its own.
OPENING = f"""
SELECT s.id, coalesce(nullif(s.agent, ''), ask.agent), coalesce(s.title, ''), s.state, coalesce(s.head_fork, 0),
       coalesce(s.last_position, 0), s.deleted_at IS NOT NULL,
       (SELECT jsonb_agg(jsonb_build_array(f.number, f.parent, f.shared_position) ORDER BY f.number)
        FROM agents_fork f WHERE f.session_id = s.id),
       (SELECT r.id FROM agents_run r WHERE r.session_id = s.id AND r.client_id = ask.run_id),
       (SELECT r.client_id FROM agents_run r WHERE r.session_id = s.id AND r.status = 'running'),
       (SELECT jsonb_object_agg(st.scope || ':' || st.key, st.value) FROM agents_state st
        WHERE (st.scope = 'app' AND st.owner_id IS NULL AND st.agent = coalesce(nullif(s.agent, ''), ask.agent))
           OR (st.scope = 'user' AND st.owner_id = ask.owner_id AND st.agent = '')),
       EXISTS (SELECT FROM agents_inbox i
               WHERE i.session_id = s.id AND i.consumed_at IS NULL AND i.kind = 'steer'),
       (SELECT e.event_id FROM agents_event e WHERE e.session_id = s.id AND e.position = s.last_position),
       (SELECT array_agg(r.slot) FROM agents_run r WHERE r.owner_id = ask.owner_id AND r.status = 'running'),
       (SELECT jsonb_agg({_SUMMARY})
        FROM {_SCOPES.format(session="s.id")} AS scope(key)
        CROSS JOIN LATERAL ({
    _NEWEST.format(session="s.id", key="scope.key", line=_LINE.format(session="s.id", fork="s.head_fork"))
}) m
        WHERE scope.key IN ('', coalesce(nullif(s.agent, ''), ask.agent), ask.agent)
           OR starts_with(scope.key, coalesce(nullif(s.agent, ''), ask.agent) || '/')),
       ask.message_id <> '' AND EXISTS (
           SELECT FROM agents_event e
           WHERE e.session_id = s.id AND e.type = 'user_message' AND e.payload ->> 'id' = ask.message_id),
       (SELECT jsonb_object_agg(p.agent, p.values) FROM agents_agentpolicy p),
       EXISTS (SELECT FROM agents_memory m WHERE m.owner_id = ask.owner_id AND m.superseded_by_id IS NULL)
           AND NOT EXISTS (SELECT FROM agents_memorysetting o WHERE o.owner_id = ask.owner_id AND NOT o.enabled),
       coalesce((SELECT max(d.id) FROM agents_memorytombstone d WHERE d.owner_id = ask.owner_id), 0),
       ARRAY[coalesce((SELECT l.version FROM agents_skilllibrary l WHERE l.owner_id IS NULL), 0),
             coalesce((SELECT l.version FROM agents_skilllibrary l WHERE l.owner_id = ask.owner_id), 0)]
FROM (SELECT %s::bigint AS owner_id, %s::text AS thread_id, %s::text AS agent, %s::text AS run_id,
             %s::text AS message_id) ask
LEFT JOIN agents_session s ON s.owner_id = ask.owner_id AND s.thread_id = ask.thread_id
"""

# The visible chain from a position on: one range of positions per fork. $1 forks, $2 up to which each counts.
CHAIN = f"""
SELECT {_EVENT_COLUMNS}
FROM unnest(%s::int[], %s::bigint[]) AS part(fork, up_to)
JOIN agents_event e ON e.session_id = %s AND e.fork = part.fork AND e.position BETWEEN %s AND part.up_to
JOIN agents_run r ON r.id = e.run_id AND r.session_id = e.session_id
ORDER BY e.position
"""

# What the changes of state along a chain say, oldest first. Parameters as in CHAIN.
STATE_CHANGES = """
SELECT e.payload
FROM unnest(%s::int[], %s::bigint[]) AS part(fork, up_to)
JOIN agents_event e
  ON e.session_id = %s AND e.fork = part.fork AND e.type = 'state_changed' AND e.position <= part.up_to
ORDER BY e.position
"""

# The newest `limit` events of the chain below a position, newest first.
CHAIN_PAGE = f"""
SELECT {_EVENT_COLUMNS}
FROM unnest(%s::int[], %s::bigint[]) AS part(fork, up_to)
CROSS JOIN LATERAL (
    SELECT * FROM agents_event p
    WHERE p.session_id = %s AND p.fork = part.fork AND p.position <= part.up_to
    ORDER BY p.position DESC LIMIT %s
) e
JOIN agents_run r ON r.id = e.run_id AND r.session_id = e.session_id
ORDER BY e.position DESC LIMIT %s
"""

# A run begins: everything in one statement, so it is its own transaction. `here` has no row when the session is no
# longer as OPENING saw it; the unique indexes of agents_run refuse a second running run, a run id met before, and a
# slot that another run of the owner took meanwhile.
_OPEN = """
WITH here AS ({here}), forked AS (
    INSERT INTO agents_fork (session_id, number, parent, shared_position, created_at)
    SELECT here.id, f.number, f.parent, f.shared_position, clock_timestamp()
    FROM here, json_to_recordset(%(forks)s::json) AS f(number int, parent int, shared_position bigint)
), run AS (
    INSERT INTO agents_run (owner_id, session_id, client_id, parent_client_id, fork, agent, model, status, epoch,
                            slot, lease_expires_at, render_html, origin, started_at, prompt_tokens, cached_tokens,
                            completion_tokens, reasoning_tokens, model_calls, error_code, error_message)
    SELECT %(owner_id)s, here.id, %(run_id)s, %(parent_run_id)s, %(fork)s, %(agent)s, %(model)s, 'running', 1,
           %(slot)s::int, clock_timestamp() + make_interval(secs => %(lease_s)s), %(render_html)s, %(origin)s,
           clock_timestamp(), 0, 0, 0, 0, 0, '', ''
    FROM here
    RETURNING id
), fresh AS MATERIALIZED (
    SELECT e.*, here.id AS session_id, here.entries, run.id AS run, %(owner_id)s::int AS owner_id,
           %(fork)s::int AS fork, %(last_position)s::bigint + e.ord AS position
    FROM here, run, ROWS FROM (json_to_recordset(%(records)s::json) AS (
        {record})) WITH ORDINALITY AS e(
        {names})
), {written}, shared AS (
    INSERT INTO agents_state (scope, owner_id, agent, key, value, changed_at)
    SELECT split_part(kv.key, ':', 1), CASE WHEN kv.key LIKE 'user:%%' THEN %(owner_id)s::int END,
           CASE WHEN kv.key LIKE 'app:%%' THEN %(session_agent)s ELSE '' END,
           substr(kv.key, strpos(kv.key, ':') + 1), kv.value, clock_timestamp()
    FROM here, jsonb_each(%(scoped)s::jsonb) kv
    ORDER BY 1, 2, 3, 4
    ON CONFLICT (scope, owner_id, agent, key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at
), taken AS (
    UPDATE agents_inbox i SET consumed_at = clock_timestamp(), run_id = run.id
    FROM here, run
    WHERE i.session_id = here.id AND i.client_id = %(message_id)s AND i.consumed_at IS NULL
)
SELECT here.id, run.id FROM here, run
"""
OPEN_NEW = _OPEN.format(
    here="""
    INSERT INTO agents_session (owner_id, thread_id, agent, title, title_by_person, head_fork, last_position, entries,
                                state, seen_position, created_at, active_at)
    SELECT %(owner_id)s, %(thread_id)s, %(session_agent)s, '', false, %(fork)s,
           %(last_position)s + %(count)s, %(entries)s, %(state)s::jsonb, 0, clock_timestamp(), clock_timestamp()
    ON CONFLICT (owner_id, thread_id) DO NOTHING
    RETURNING id, 0 AS entries""",
    **_PARTS_OF_A_RECORD,
)
OPEN_KNOWN = _OPEN.format(
    here="""
    UPDATE agents_session
    SET head_fork = %(fork)s, last_position = %(last_position)s + %(count)s, entries = entries + %(entries)s,
        agent = coalesce(nullif(agent, ''), %(session_agent)s), state = %(state)s::jsonb, active_at = clock_timestamp()
    WHERE id = %(session_id)s AND owner_id = %(owner_id)s AND last_position = %(last_position)s
      AND head_fork = %(head_fork)s AND deleted_at IS NULL
    RETURNING id, entries - %(entries)s AS entries""",
    **_PARTS_OF_A_RECORD,
)

# Renew leases and read the flags, for all runs of a process at once. Locks runs in the order of APPEND.
HEARTBEAT = """
WITH held AS MATERIALIZED (
    SELECT r.id, r.session_id, r.cancel_requested_at IS NOT NULL AS cancel_requested
    FROM unnest(%s::bigint[], %s::int[]) AS beat(run, epoch)
    JOIN agents_run r ON r.id = beat.run AND r.epoch = beat.epoch AND r.status = 'running'
    ORDER BY r.session_id
    FOR UPDATE OF r
), renewed AS (
    UPDATE agents_run r SET lease_expires_at = clock_timestamp() + make_interval(secs => %s)
    FROM held WHERE r.id = held.id
)
SELECT held.id, held.cancel_requested,
       EXISTS (SELECT FROM agents_inbox i
               WHERE i.session_id = held.session_id AND i.consumed_at IS NULL AND i.kind = 'steer')
FROM held
"""

# Take a run over whose lease is out: the epoch is raised, so its owner is fenced from here on. One taker wins.
TAKE_OVER = """
WITH held AS MATERIALIZED (
    SELECT r.id FROM agents_run r JOIN agents_session s ON s.id = r.session_id
    WHERE r.id = %s AND r.epoch = %s AND r.status = 'running' AND r.lease_expires_at < clock_timestamp()
    FOR UPDATE OF s, r
)
UPDATE agents_run r SET epoch = r.epoch + 1, lease_expires_at = clock_timestamp() + make_interval(secs => %s)
FROM held WHERE r.id = held.id
RETURNING r.epoch
"""

# Steering messages for a run, marked read; none if the run is over or fenced. Also those it got before, so that the
# statement may be sent twice.
TAKE_STEERING = """
WITH held AS MATERIALIZED (
    SELECT id, session_id FROM agents_run WHERE id = %s AND epoch = %s AND status = 'running' FOR SHARE
), taken AS (
    UPDATE agents_inbox i SET consumed_at = coalesce(i.consumed_at, clock_timestamp()), run_id = held.id
    FROM held
    WHERE i.session_id = held.session_id AND i.kind = 'steer' AND (i.consumed_at IS NULL OR i.run_id = held.id)
    RETURNING i.id, i.payload
)
SELECT held.id, taken.id, taken.payload FROM held LEFT JOIN taken ON true ORDER BY taken.id
"""

# What a lost run took out of the inbox but did not come to store.
GIVE_STEERING_BACK = """
UPDATE agents_inbox i SET consumed_at = NULL, run_id = NULL
WHERE i.run_id = %s AND NOT EXISTS (
    SELECT FROM agents_event e
    WHERE e.session_id = i.session_id AND e.run_id = i.run_id AND e.type = 'user_message'
      AND e.payload ->> 'id' = i.client_id)
RETURNING i.id
"""

# From where a run looks back: the chain that ends in its fork, as two arrays, and the position up to which the newest
# summary of its scope, else of the whole session, stands for it; 0 = none does.
LOOKING_BACK = f"""
WITH line AS MATERIALIZED (
    SELECT fork, up_to FROM {_LINE.format(session="%(session)s", fork="%(fork)s::int")} AS part(fork, up_to))
SELECT (SELECT array_agg(fork ORDER BY fork) FROM line), (SELECT array_agg(up_to ORDER BY fork) FROM line), coalesce((
    SELECT m.position FROM agents_summary m JOIN line ON line.fork = m.fork AND m.position <= line.up_to
    WHERE m.session_id = s.id AND m.filter_key IN (%(filter_key)s, '')
    ORDER BY m.filter_key = '', m.position DESC, m.id DESC LIMIT 1), 0)
FROM agents_session s WHERE s.id = %(session)s AND s.owner_id = %(owner)s
"""

# The events of found entries, with their conversations, and of these the line that is shown and, if that is not the
# first, all lines. likeness: of the entry's vector to a question's, null without.
FOUND_EVENTS = f"""
SELECT ask.ord, s.thread_id, s.title, (
    SELECT -(v.vector <#> %(vector)s::halfvec)
    FROM agents_searchentry n JOIN agents_embedding v ON v.entry_id = n.id AND v.model = %(model)s::int
    WHERE n.owner_id = s.owner_id AND n.kind = 'event' AND n.group_id = s.id AND n.position = ask.entry LIMIT 1),
    s.head_fork, CASE WHEN s.head_fork <> 0 THEN (
        SELECT jsonb_agg(jsonb_build_array(f.number, f.parent, f.shared_position) ORDER BY f.number)
        FROM agents_fork f WHERE f.session_id = s.id) END,
    {_EVENT_COLUMNS}
FROM unnest(%(sessions)s::bigint[], %(positions)s::bigint[], %(entries)s::int[]) WITH ORDINALITY
    AS ask(session, position, entry, ord)
JOIN agents_session s ON s.id = ask.session AND s.owner_id = %(owner)s AND s.deleted_at IS NULL
JOIN agents_event e ON e.session_id = s.id AND e.position = ask.position
JOIN agents_run r ON r.id = e.run_id
ORDER BY ask.ord
"""

# A conversation of the owner, and the events of it that are meant: by event id, else by the call of a result, else by
# the id of a message; the newest first.
ANCHORS = """
SELECT s.id, s.thread_id, s.title, s.agent, s.head_fork,
       (SELECT jsonb_agg(jsonb_build_array(f.number, f.parent, f.shared_position) ORDER BY f.number)
        FROM agents_fork f WHERE f.session_id = s.id),
       (SELECT jsonb_agg(jsonb_build_array(a.position, a.fork) ORDER BY a.way, a.position DESC) FROM (
            SELECT 0 AS way, e.position, e.fork FROM agents_event e
            WHERE e.session_id = s.id AND e.event_id = %(event)s AND e.event_id <> ''
            UNION ALL
            SELECT 1, e.position, e.fork FROM agents_event e
            WHERE %(call)s <> '' AND e.session_id = s.id AND e.type = 'tool_returned'
              AND e.payload ->> 'call_id' = %(call)s
            UNION ALL
            SELECT 2, e.position, e.fork FROM agents_event e
            WHERE %(message)s <> '' AND e.session_id = s.id AND e.type IN ('user_message', 'assistant_message')
              AND e.payload ->> 'id' = %(message)s) a)
FROM agents_session s
WHERE s.owner_id = %(owner)s AND s.deleted_at IS NULL
  AND CASE WHEN %(thread)s = '' THEN s.id = %(session)s ELSE s.thread_id = %(thread)s END
"""

# An event with its neighbours on a chain, as pieces.content_of has a text of them, and the newest summary that covers
# it.
_TEXTS = """(e.type = 'user_message'
    OR e.type = 'assistant_message' AND e.payload ->> 'text' ~ '\\S'
    OR e.type = 'tool_returned' AND coalesce(e.payload ->> 'status', 'ok') = 'ok' AND e.payload ->> 'content' ~ '\\S'
       AND NOT coalesce(e.payload ->> 'name', '') = ANY(%(silent)s::text[]))"""
_BESIDE = f"""
    SELECT x.id FROM {_PARTS} AS part(fork, up_to) CROSS JOIN LATERAL (
        SELECT e.id, e.position FROM agents_event e
        WHERE e.session_id = %(session)s AND e.fork = part.fork AND e.position <= part.up_to
          AND e.position {{side}} %(position)s AND {_TEXTS}
        ORDER BY e.position {{order}} LIMIT {{most}}) x
    ORDER BY x.position {{order}} LIMIT {{most}}"""
WINDOW = f"""
WITH near AS (
    ({_BESIDE.format(side="<", order="DESC", most="%(before)s")}) UNION ALL
    ({_BESIDE.format(side=">", order="ASC", most="%(after)s")}) UNION ALL
    SELECT e.id FROM agents_event e WHERE e.session_id = %(session)s AND e.position = %(position)s
)
SELECT (SELECT jsonb_build_array(m.summary_id, m.text)
        FROM {_PARTS} AS part(fork, up_to)
        JOIN agents_summary m ON m.fork = part.fork AND m.position <= part.up_to
        WHERE m.session_id = %(session)s AND m.filter_key IN (%(agent)s, '') AND m.position >= %(position)s
        ORDER BY m.filter_key = '', m.position DESC, m.id DESC LIMIT 1),
    {_EVENT_COLUMNS}
FROM near JOIN agents_event e ON e.id = near.id JOIN agents_run r ON r.id = e.run_id
ORDER BY e.position
"""
