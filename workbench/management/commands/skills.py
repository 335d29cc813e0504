"""`manage.py skills optimise`: a skill made better over a file of cases, by a model. What is better waits for approval.

The file: {"feedback": [...], "validation": [...], "holdout": [...]}, at least ten cases each, none in two of them; a
case is {"input": "...", "contains": ["..."], "lacks": ["..."], "pattern": "..."}.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.background import optimise
from agents.runtime.errors import Rejected, RunError
from agents.runtime.evolution.optimising import DEFAULT, CasesInvalid, Limits, load
from agents.runtime.skills.skill import SkillMissing
from workbench.management.commands.ask import owner_of
from workbench.version import version

SAID: Final = {
    "pending_approval": "Revision {number} is better, and waits on the page Skills for somebody to accept it.",
    "rejected": "Revision {number} is better, but was rejected by the gates; the page Skills says why.",
    "": "Nothing that was tried is better on cases that it was not made from. Nothing was changed.",
}


class Command(BaseCommand):
    help = "Make a skill better over a file of cases. Needs a language model."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        does = parser.add_subparsers(dest="do", required=True)
        better = does.add_parser("optimise", help="try new wordings, keep what holds up")
        better.add_argument("--cases", required=True, metavar="FILE", help="JSON: feedback, validation, holdout")
        better.add_argument("--skill", required=True, metavar="NAME", help="one of this person's own skills")
        better.add_argument("--user", default="", metavar="U", help="whose skill it is (the owner's)")
        better.add_argument("--model", default="", metavar="M", help="one of the configured models (the first)")
        better.add_argument("--calls", type=int, default=DEFAULT.calls, metavar="N", help="budget of model calls")
        better.add_argument("--iterations", type=int, default=DEFAULT.iterations, metavar="N", help="new wordings")
        better.add_argument("--batch", type=int, default=DEFAULT.batch, metavar="N", help="cases thought about at once")
        better.add_argument("--record", default="", metavar="FILE", help="where the record goes (beside the cases)")

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(options["cases"])
        limits = Limits(iterations=options["iterations"], batch=options["batch"], calls=options["calls"])
        if min(limits.iterations, limits.batch) < 1:
            raise CommandError("--iterations and --batch must be at least 1.")
        try:
            cases = load(file.read_text(encoding="utf-8"))
            work = optimise.run(
                owner_of(options["user"]), options["skill"], cases, model=options["model"], limits=limits
            )
            done = asyncio.run(work)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"The cases cannot be read: {error}") from error
        except CasesInvalid as error:
            raise CommandError(str(error)) from error
        except optimise.NoModel as error:
            raise CommandError(
                "This needs a language model: set OPENAI_API_KEY or OPENAI_BASE_URL, or name one with --model."
            ) from error
        except SkillMissing as error:
            raise CommandError(f"There is no skill {options['skill']!r} of this person.") from error
        except (Rejected, RunError) as error:
            raise CommandError(f"The model gave no answer: {error}") from error
        record = Path(options["record"] or file.with_suffix(f".{timezone.now():%Y%m%d-%H%M%S}.experiment.json"))
        text = json.dumps(done.experiment.as_json(), ensure_ascii=False, indent=2)
        record.write_text(f"{text}\n", encoding="utf-8")
        self.stdout.write(SAID[done.status].format(number=done.number))
        self.stdout.write(f"{done.experiment.calls} calls to the model; what was tried stands in {record}.")
