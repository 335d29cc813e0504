"""What tests of documents share: do the jobs that wait, and ask the table what is found."""

import io
from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import connection

from agents import jobs
from agents.background import work
from agents.models.job import Job
from agents.runtime.artifacts import SHARED
from artifacts import saving
from artifacts.models import Version
from artifacts.rows import Scope, Source
from artifacts.saving import Saved


def upload(owner: User, name: str, data: bytes, *, session: int | None = None) -> Saved:
    """Bring a file into the library, or into a conversation."""
    full = name if session else SHARED + name
    source = Source(origin=Version.Origin.UPLOAD, original_name=name)
    return saving.save(Scope(owner=owner.pk, session=session), full, io.BytesIO(data), source)


def do_jobs(kind: str = jobs.READ) -> int:
    """Do every job of a kind that waits, here, and return how many there were."""
    waiting = list(Job.objects.filter(kind=kind, status=Job.Status.QUEUED).order_by("pk"))
    for job in waiting:
        claim = jobs.claim(job.pk)
        assert claim is not None
        work.do(claim)
        jobs.done(claim)
    return len(waiting)


def found(owner: User, *lexemes: str) -> list[str]:
    """Return the passages of the owner whose entries have all of the lexemes, in order."""
    wanted: Sequence[str] = [f"{owner.pk}:{lexeme}" for lexeme in lexemes]
    with connection.cursor() as cursor:
        cursor.execute(
            "select p.text from agents_searchentry e join artifacts_passage p on p.id = e.ref"
            " where e.owner_id = %s and e.kind = 'passage' and tsvector_to_array(e.terms) @> %s::text[]"
            " order by e.group_id, e.position",
            [owner.pk, wanted],
        )
        return [text for (text,) in cursor.fetchall()]


def entries(owner: User) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from agents_searchentry where owner_id = %s", [owner.pk])
        return int(cursor.fetchone()[0])
