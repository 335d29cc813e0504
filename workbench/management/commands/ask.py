"""`manage.py ask`: one question from a shell, answered by the same machinery as on the page.

The run goes on in this process and is stored like any other; whoever has the conversation open sees it there.
"""

import asyncio
import json
import logging
import mimetypes
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.live import registry
from agents.runtime.context.citing import numbered
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.events import (
    CitationShown,
    Emitted,
    Outcome,
    RunFailed,
    RunFinished,
    RunStarted,
    Summarising,
    TextDelta,
    ToolReturned,
    UserMessage,
    Waiting,
)
from agents.runtime.knowledge import Citation, Cited, place_words
from agents.runtime.model import TextPart
from agents.runtime.session import RunRequest, Upload
from workbench import prepare
from workbench.version import version

CLOSE_S = 5.0
STOPPED = 130  # what shells expect of a program that Ctrl-C ended


class Command(BaseCommand):
    help = "Ask the agent. The answer goes to stdout as it comes, what the agent does to stderr. Ctrl-C stops it."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question", help='what to ask; "-" reads it from stdin')
        parser.add_argument("--file", action="append", default=[], metavar="F", help="attach a file; may be repeated")
        parser.add_argument("--user", default="", metavar="U", help="on whose behalf (the owner of the installation)")
        parser.add_argument("--thread", default="", metavar="T", help="go on with this conversation (a new one)")
        parser.add_argument("--model", default="", metavar="M", help="one of the configured models (the first)")
        parser.add_argument("--json", action="store_true", help="print one JSON object when the run is over, no text")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verbosity"] < 2:
            logging.getLogger("agents").setLevel(logging.WARNING)  # a person reads stderr here
        request = RunRequest(
            owner_id=owner_of(options["user"]),
            thread_id=options["thread"] or str(uuid.uuid4()),
            run_id=str(uuid.uuid4()),
            model=options["model"],
            message=UserMessage(id=str(uuid.uuid4()), parts=parts_of(options["question"])),
            uploads=tuple(upload(Path(name)) for name in options["file"]),
            origin="shell",
        )
        shown = Shown(request=request, out=sys.stdout, rows=sys.stderr, quiet=options["json"])
        try:
            asyncio.run(ask(request, shown))
        except (Rejected, StorageUnavailable) as e:
            shown.error = {"code": e.code, "message": e.message}
        if options["json"]:
            json.dump(shown.result(), sys.stdout, ensure_ascii=False, indent=2)
            sys.stdout.write("\n")
        if shown.error is not None:
            raise CommandError(shown.error["message"], returncode=1)
        if shown.outcome == Outcome.CANCELLED:
            raise CommandError("Stopped. What was written is kept.", returncode=STOPPED)


@dataclass(slots=True, kw_only=True)
class Shown:
    """What came of the run, and where it is shown as it comes. cited: in order of first use. quiet: only collect."""

    request: RunRequest
    out: TextIO
    rows: TextIO
    quiet: bool = False
    text: list[str] = field(default_factory=list)
    cited: list[Cited] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    agent: str = ""
    model: str = ""
    outcome: str = ""
    error: dict[str, Any] | None = None
    _message_id: str = ""

    def take(self, emitted: Emitted) -> None:
        """Show one event."""
        match emitted.event:
            case RunStarted() as started:
                self.agent, self.model = started.agent, started.model
            case TextDelta(message_id=message_id, text=text):
                if self._message_id and message_id != self._message_id:
                    self._write("\n\n")
                self._message_id = message_id
                self._write(numbered(text, self.cited))
            case CitationShown(cited=cited) if cited not in self.cited:
                self.cited.append(cited)
            case ToolReturned() as returned:
                self._tool(returned)
            case Waiting() as waiting:
                self._row(f"{waiting.reason}: trying again in {waiting.delay_s:.1f} s")
            case Summarising(state="started"):
                self._row("summarising earlier messages")
            case RunFinished() as finished:
                self.outcome, self.usage = finished.outcome.value, asdict(finished.usage)
            case RunFailed() as failed:
                self.usage = asdict(failed.usage)
                self.error = {"code": failed.code, "message": failed.message, "retryable": failed.retryable}
                if failed.reference:
                    self.error["reference"] = failed.reference
            case _:
                pass

    def end(self) -> None:
        """Close the last line of the answer and list its sources."""
        if self.text and not self.text[-1].endswith("\n"):
            self._write("\n")
        if self.cited and not self.quiet:
            self.out.write("\n" + "".join(f"{line}\n" for line in sources(self.cited)))
            self.out.flush()
        self._row(f"conversation {self.request.thread_id}")

    def result(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "thread": self.request.thread_id,
            "run": self.request.run_id,
            "agent": self.agent,
            "model": self.model,
            "outcome": self.outcome or "error",
            "text": "".join(self.text).rstrip("\n"),
            "sources": [source(cited) for cited in self.cited],
            "tools": self.tools,
            "usage": self.usage,
            "error": self.error,
        }

    def _tool(self, returned: ToolReturned) -> None:
        row: dict[str, Any] = {
            "name": returned.name,
            "status": returned.status.value,
            "elapsed_ms": returned.elapsed_ms,
        }
        row |= {"summary": returned.summary} if returned.summary else {}
        if returned.artifacts:
            row["artifacts"] = [f"{ref.name}@{ref.version}" for ref in returned.artifacts]
        self.tools.append(row)
        about = returned.summary or returned.status.value
        self._row(f"{returned.name}: {about} ({returned.elapsed_ms} ms)")

    def _write(self, text: str) -> None:
        self.text.append(text)
        if not self.quiet:
            self.out.write(text)
            self.out.flush()

    def _row(self, text: str) -> None:
        if not self.quiet:
            if self.text and not self.text[-1].endswith("\n"):
                self._write("\n")
            self.rows.write(f"· {text}\n")
            self.rows.flush()


def sources(cited: Sequence[Cited]) -> list[str]:
    """Return a line for each document, its number, its name, and the places that are cited; for a message its title
    and date."""
    lines = []
    for number in sorted({one.number for one in cited}):
        citations = [one.citation for one in cited if one.number == number]
        places = dict.fromkeys(filter(None, (where(citation) for citation in citations)))
        named = f"[{number}] {citations[0].name or 'Conversation'}"
        lines.append(f"{named}: {'; '.join(places)}" if places else named)
    return lines


def where(citation: Citation) -> str:
    """Return the place of a passage in words, or the minute at which a message was written."""
    return f"{timezone.localtime(citation.at):%Y-%m-%d %H:%M}" if citation.at else place_words(citation.place)


def source(cited: Cited) -> dict[str, Any]:
    """Return a citation as JSON values, of a document or of a message. place: in words."""
    citation = cited.citation
    said: dict[str, Any] = {"number": cited.number}
    if citation.message_id:
        at = citation.at.isoformat() if citation.at else ""
        said |= {"thread": citation.thread_id, "message": citation.message_id, "name": citation.name, "at": at}
    else:
        said |= {"document": citation.artifact_id, "version": citation.version, "name": citation.name}
        said["place"] = place_words(citation.place)
    return {**said, "quote": citation.quote}


async def ask(request: RunRequest, shown: Shown) -> None:
    """Run the request to its end in this process. Raises Rejected, StorageUnavailable.

    The first Ctrl-C or SIGTERM asks the run to stop, which stores what was written; it ends in order.
    """
    live = registry.current()
    over = asyncio.Event()
    last: list[Emitted] = []

    def watch(emitted: Emitted | None) -> None:
        if emitted is None:
            over.set()
        else:
            last[:] = [emitted]
            shown.take(emitted)

    try:
        await live.start(request, watch=watch)
        loop = asyncio.get_running_loop()
        stopping: set[asyncio.Task[bool]] = set()

        def stop() -> None:
            stopping.add(
                loop.create_task(
                    live.cancel(owner_id=request.owner_id, thread_id=request.thread_id, run_id=request.run_id)
                )
            )

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        await over.wait()
        shown.end()
        if not last or not isinstance(last[0].event, RunFinished | RunFailed):
            shown.error = {"code": "lost", "message": "Another process closed this run."}
    finally:
        await live.drain(CLOSE_S)


def owner_of(name: str) -> int:
    """Return the user the run belongs to: the named one, or the owner, who is made if nobody is there yet."""
    users = get_user_model().objects
    if name:
        user = users.filter(username=name, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {name!r}. `manage.py createsuperuser` makes one.")
        return int(user.pk)
    owner = users.filter(is_superuser=True, is_active=True).order_by("id").first()
    return int((owner or users.create_superuser(prepare.OWNER, password=None)).pk)


def parts_of(question: str) -> tuple[TextPart, ...]:
    text = sys.stdin.read() if question == "-" else question
    return (TextPart(text=text.strip()),) if text.strip() else ()


def upload(path: Path) -> Upload:
    """Return the file as it goes into the request. Raises CommandError."""
    try:
        if path.stat().st_size > settings.UPLOAD_MAX_BYTES:
            raise CommandError(f"{path} is larger than {settings.UPLOAD_MAX_BYTES // 1024**2} MB (UPLOAD_MAX_MB).")
        data = path.read_bytes()
    except OSError as e:
        raise CommandError(f"{path}: {e.strerror}") from e
    mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Upload(name=path.name, mime=mime, data=data)
