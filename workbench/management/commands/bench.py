"""`manage.py bench context --sets DIR`: what a long conversation costs, held against what it may cost."""

import asyncio
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import wiring
from agents.presets import assistant
from agents.runtime.model import Model
from agents.runtime.summary.asking import Summarizer
from agents.runtime.summary.extractive import ExtractiveSummarizer
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from workbench.bench import context, results
from workbench.bench.asking import Asking
from workbench.bench.figures import Figure
from workbench.bench.measuring import Bench
from workbench.bench.questions import Quiz
from workbench.bench.readers import SetUnreadable
from workbench.bench.shortening import RATIO
from workbench.version import version

WRITERS = ("ratio", "extractive", "model")


class Command(BaseCommand):
    help = "Measure what a long conversation costs. Needs no database and, unless --model is given, no network."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, parser_class=ArgumentParser)
        words = kinds.add_parser("context", help="summaries, prefix cache, questions about long conversations")
        words.add_argument("--sets", type=Path, required=True, help="folder with locomo/, qmsum/, mtbench101/, ...")
        words.add_argument("--out", type=Path, help="write the result as JSON to this file")
        words.add_argument("--only", action="append", choices=context.PARTS, help="only this part; may be repeated")
        words.add_argument("--seed", type=int, default=0, help="of everything that is drawn (0)")
        words.add_argument("--window", type=int, default=32_768, help="of the model, in tokens (32768)")
        words.add_argument("--ratio", type=float, default=RATIO, help=f"of the deterministic summariser ({RATIO})")
        words.add_argument("--limit", type=int, default=0, help="at most so many histories of a set (all)")
        words.add_argument("--summariser", choices=WRITERS, default="ratio", help="who writes the summaries (ratio)")
        words.add_argument("--model", help="the configured model that answers the questions")
        words.add_argument("--judge", help="the configured model that judges the answers")
        words.add_argument("--questions", type=int, default=20, help="asked of each history (20)")

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(self._measure(options))

    async def _measure(self, options: dict[str, Any]) -> None:
        if not options["sets"].is_dir():
            raise CommandError(f"{options['sets']} is not a folder.")
        try:
            sets = context.read(options["sets"])
        except (SetUnreadable, OSError) as error:
            raise CommandError(str(error)) from error
        model = self._model(options["model"]) if options["model"] else None
        bench = self._bench(options, model)
        parts = options["only"] or context.PARTS
        judge = Asking(self._model(options["judge"])) if options["judge"] else None
        asked = (
            Quiz(model=Asking(model), judge=judge, clock=monotonic, questions=options["questions"]) if model else None
        )
        try:
            measured = await context.measure(bench, sets, parts=parts, asked=asked, say=self._say)
        finally:
            await wiring.close_clients()
        for part, reason in measured.missing:
            self.stdout.write(f"{part}: not measured, {reason}")
        if options["out"]:
            setup = results.Setup(
                model=options["model"] or "none",
                summariser=options["summariser"],
                version=version(),
                at=datetime.now(UTC),
                seed=bench.seed,
                options={
                    **{name: options[name] for name in ("window", "ratio", "limit", "questions", "judge")},
                    "parts": list(parts),
                },
                sets=context.counts(sets),
            )
            results.write(options["out"], setup, measured.figures)

    def _bench(self, options: dict[str, Any], model: Model | None) -> Bench:
        agent = assistant.build((*knowledge_tools.tools(), *artifact_tools.tools()))
        writer: Summarizer | None = None
        if options["summariser"] == "extractive":
            writer = ExtractiveSummarizer()
        elif options["summariser"] == "model":
            if model is None:
                raise CommandError("--summariser model needs --model.")
            writer = ModelSummarizer(model, model.info.name)
        return Bench(
            instruction=agent.instruction,
            tools=tuple(tool.spec for tool in agent.tools),
            window=options["window"],
            seed=options["seed"],
            ratio=options["ratio"],
            limit=options["limit"],
            writer=(lambda policy, cache: writer) if writer is not None else None,
            free=options["summariser"] == "extractive",
            answering=Asking(model) if model is not None and options["summariser"] == "model" else None,
        )

    def _model(self, name: str) -> Model:
        if name not in (known := [m.info.name for m in wiring.models() if m.endpoint is not None]):
            raise CommandError(f"There is no model {name!r}. Configured: {', '.join(known) or 'none'}.")
        return wiring.model_of(name, 0)

    def _say(self, figure: Figure) -> None:
        value, bar = figure.shown()
        verdict = {True: "met", False: "NOT MET", None: ""}[figure.met]
        self.stdout.write(f"{figure.name:<96} {value:>12}  {bar:<9} {verdict}")
        if figure.ratios is not None:
            r = figure.ratios
            self.stdout.write(
                f"    ratio of means {r.of_means * 100:.2f} % [{r.low * 100:.2f}, {r.high * 100:.2f}], "
                f"mean of ratios {r.mean_of * 100:.2f} %, n = {r.n}"
            )
        if figure.note:
            self.stdout.write(f"    {figure.note}")
        self.stdout.flush()
