"""`manage.py bench context --sets DIR`: what a long conversation costs, held against what it may cost;
`manage.py bench recall --sets DIR`: what of it a search finds again."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import wiring
from agents.presets import assistant
from agents.runtime.embedding import EmbedderFailed
from agents.runtime.model import Model
from agents.runtime.summary.asking import Summarizer
from agents.runtime.summary.extractive import ExtractiveSummarizer
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import session as session_tools
from workbench.bench import context, recalling, results
from workbench.bench.asking import Asking
from workbench.bench.figures import Figure
from workbench.bench.measuring import Bench
from workbench.bench.questions import Quiz
from workbench.bench.readers import History, SetUnreadable
from workbench.bench.shortening import RATIO
from workbench.version import version

WRITERS = ("ratio", "extractive", "model")


class Command(BaseCommand):
    help = "Measure what a long conversation costs, and what of it is found again. Needs no network without --model."
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

        words = kinds.add_parser(
            "recall", help="evidence found by a search, through the database; leaves nothing there"
        )
        words.add_argument("--sets", type=Path, required=True, help="folder with locomo/, qmsum/, longmemeval/")
        words.add_argument("--out", type=Path, help="write the result as JSON to this file")
        words.add_argument("--only", action="append", choices=recalling.PARTS, help="only this part; may be repeated")
        words.add_argument("--words", action="store_true", help="by words alone, without the configured embedder")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["kind"] == "recall":
            self._recall(options)
        else:
            asyncio.run(self._measure(options))

    def _recall(self, options: dict[str, Any]) -> None:
        sets = self._sets(options["sets"])
        embedder = None if options["words"] else wiring.embedder()
        parts = options["only"] or recalling.PARTS
        try:
            figures, missing = recalling.measure(sets, embedder, parts=parts, say=self._say)
        except EmbedderFailed as error:
            raise CommandError(str(error)) from error
        self._missing(missing)
        if options["out"]:
            setup = results.Setup(
                model=f"{embedder.name} {embedder.model}" if embedder else "none",
                summariser="none",
                version=version(),
                at=datetime.now(UTC),
                seed=0,
                options={"parts": list(parts)},
                sets=context.counts(sets),
            )
            results.write(options["out"], setup, figures)

    def _sets(self, folder: Path) -> dict[str, list[History]]:
        if not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.")
        try:
            return context.read(folder)
        except (SetUnreadable, OSError) as error:
            raise CommandError(str(error)) from error

    def _missing(self, missing: Sequence[tuple[str, str]]) -> None:
        for part, reason in missing:
            self.stdout.write(f"{part}: not measured, {reason}")

    async def _measure(self, options: dict[str, Any]) -> None:
        sets = self._sets(options["sets"])
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
        self._missing(measured.missing)
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
        agent = assistant.build((*knowledge_tools.tools(), *artifact_tools.tools(), *session_tools.tools()))
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
