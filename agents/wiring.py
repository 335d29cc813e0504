"""Settings in, Runner out: the only place that picks implementations and reads the agents' settings."""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from django.conf import settings

from agents.metrics import backlog, multiprocess
from agents.presets import assistant
from agents.providers import bubblewrap, embeddings, minilm, monty, openai, openai_windows
from agents.providers.offline import model as offline
from agents.providers.sandbox import walls
from agents.runtime.artifacts import ArtifactInvalid, ArtifactMissing, ArtifactNotKept, ArtifactRef
from agents.runtime.code import CodeLimits, Executor, Workspace
from agents.runtime.context.guard import Family, guard
from agents.runtime.context.sizes import KnownSizes
from agents.runtime.context.window import Tried, Window, resolve
from agents.runtime.embedding import Embedder
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.invocation import Limits, Services
from agents.runtime.llm import LLMAgent
from agents.runtime.measures import Known, Labels
from agents.runtime.metrics import NO_METRICS, Metrics, Sink
from agents.runtime.model import FilePart, Model, ModelInfo, Part
from agents.runtime.planning import check
from agents.runtime.policy import ContextPolicy
from agents.runtime.runner import Runner
from agents.runtime.session import OpenRun, RunRequest
from agents.runtime.summary import extractive
from agents.runtime.summary.asking import DynamicSummarizer, Summarizer
from agents.runtime.summary.extractive import ExtractiveSummarizer
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.tokens import Calibration, Uncalibrated
from agents.runtime.zones import zone_named
from agents.stores import calibrations, db, policies
from agents.stores.knowledge import PgKnowledge
from agents.stores.memories import PgMemories
from agents.stores.recall import PgRecall
from agents.stores.sessions import PgSessionStore
from agents.stores.skills import PgSkills
from agents.stores.skills import Run as SkillRun
from agents.stores.summaries import PgSummaries
from agents.tools import artifacts as artifact_tools
from agents.tools import knowledge as knowledge_tools
from agents.tools import memory as memory_tools
from agents.tools import session as session_tools
from agents.tools import skillrun as skillrun_tools
from agents.tools import skills as skill_tools
from agents.tools import workspace as workspace_tools
from agents.tools.commandpolicy import CommandPolicy
from agents.workspaces import sweeping
from agents.workspaces.directory import DirectoryWorkspace
from artifacts.rows import missing, session_of_thread
from artifacts.store import DjangoArtifactStore

logger = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_DEFAULT = "gpt-4.1"
LIMITS = Limits()
_sizes = KnownSizes()
_tried: defaultdict[tuple[str, str], Tried] = defaultdict(Tried)  # by the server's address and the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredModel:
    """A model that may answer. endpoint: None = the offline one."""

    info: ModelInfo
    endpoint: openai.Endpoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What `live` needs. prepare: fills in what the request leaves open and looks its files up; raises Rejected."""

    runner: Runner
    redis_url: str
    runs_per_owner: int
    prepare: Callable[[RunRequest], Awaitable[RunRequest]]


def redis_url() -> str:
    """Return where the live log is."""
    return str(settings.REDIS_URL)


def build() -> Wiring:
    """Return the wiring of this installation."""
    presets = agents()
    sweeping.sweep(settings.WORKSPACES_DIR, keep_s=settings.WORKSPACE_KEEP_S)  # of this machine; there may be others
    runner = Runner(
        agents={agent.name: agent for agent in presets},
        default_agent=presets[0].name,
        sessions=PgSessionStore(runs_per_owner=settings.RUNS_PER_OWNER, summarised=policies.summarised),
        services=services,
        limits=LIMITS,
        now=now,
        new_id=new_id,
        metrics=metrics(),
    )
    return Wiring(runner=runner, redis_url=redis_url(), runs_per_owner=settings.RUNS_PER_OWNER, prepare=prepare)


@cache
def agents() -> tuple[LLMAgent, ...]:
    """Return the agents we ship, the default first."""
    modules = (knowledge_tools, artifact_tools, session_tools, skill_tools, memory_tools)
    found = executor()
    info = found.info if found is not None else None
    policy = CommandPolicy(allowed=frozenset(settings.CODE_ALLOWED), denied=frozenset(settings.CODE_DENIED))
    code = (*workspace_tools.tools(info, policy), *skillrun_tools.tools(info, policy))
    return (assistant.build((*(tool for module in modules for tool in module.tools()), *code)),)


def executor() -> Executor | None:
    """Return what runs code in this installation, None where nothing may or can."""
    return _executor(settings.CODE_EXECUTOR)


@cache
def _executor(choice: str) -> Executor | None:
    if choice == "none":
        return None
    if choice != "monty":
        missing = walls.unavailable(_hidden())
        if not missing:
            return bubblewrap.Bubblewrap(hidden=_hidden(), env=settings.CODE_ENV)
        if choice == "bubblewrap":
            logger.error("no code can be run: %s", missing)
            return None
    return monty.MontyExecutor(env=settings.CODE_ENV)


def code_found() -> tuple[str, str]:
    """Return (what runs code here, why it is not bubblewrap, if that was wanted), in words for who runs the place."""
    found, choice = executor(), settings.CODE_EXECUTOR
    missing = walls.unavailable(_hidden()) if choice in ("auto", "bubblewrap") else ""
    return (f"{found.info.name}: {found.info.isolation}" if found else "nothing", missing)


def _hidden() -> tuple[Path, ...]:
    """Return directories of ours that code must not see, wherever they lie."""
    return (settings.BASE_DIR, settings.DATA_DIR, settings.WORKSPACES_DIR)


def workspace_of(owner_id: int, session_id: int) -> Workspace | None:
    """Return where the code of one conversation of one owner works; None where none is run."""
    found = executor()
    if found is None:
        return None
    return DirectoryWorkspace(
        top=settings.WORKSPACES_DIR,
        owner_id=owner_id,
        session_id=session_id,
        executor=found,
        limits=CodeLimits(
            wall_s=settings.CODE_TIMEOUT_S,
            cpu_s=300.0,
            memory_bytes=settings.CODE_MEMORY_BYTES,
            processes=settings.CODE_PROCESSES,
            disk_bytes=settings.CODE_DISK_BYTES,
            files=settings.CODE_FILES,
        ),
    )


@cache
def metrics() -> Metrics:
    """Return what counts in this process: for Prometheus, for OpenTelemetry, both, or nothing."""
    sinks: list[Sink] = []
    if settings.METRICS_TOKEN:
        try:
            multiprocess.keep_in(settings.METRICS_DIR)
            from agents.metrics import prometheus  # noqa: PLC0415  # it must be told first where it keeps figures

            sinks.append(prometheus.PrometheusSink())
        except OSError as error:  # a full disk is no reason to answer nobody
            logger.error("no figures for Prometheus: %s", error)
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        from agents.metrics import otlp  # noqa: PLC0415  # half a second that nobody else need wait

        sinks.append(
            otlp.OtlpSink(
                endpoint=settings.OTEL_EXPORTER_OTLP_ENDPOINT,
                version=settings.VERSION,
                backlog=backlog.on_own_thread,
            )
        )
    if not sinks:
        return NO_METRICS
    known = Known(
        models=frozenset(model.info.name for model in models()),
        agents=frozenset(agent.name for agent in agents()),
        tools=frozenset(tool.spec.name for agent in agents() for tool in agent.tools),
        summarizers=frozenset((extractive.NAME, *(model.info.name for model in models()))),
    )
    return Metrics(tuple(sinks), Labels(known))


def exposition(waiting: Iterable[backlog.Backlog]) -> bytes:
    """Return what Prometheus reads, of all processes on this data directory. Sync: it reads their files.

    Call it only where METRICS_TOKEN is set.
    """
    metrics()
    from agents.metrics import prometheus  # noqa: PLC0415  # as above

    return prometheus.exposition(settings.METRICS_DIR, waiting)


def close_metrics() -> None:
    """Send off what was not sent yet. For processes that end without Python's own way out, like a worker's children."""
    for sink in metrics().sinks:
        sink.close()


async def close_clients() -> None:
    """Close this event loop's connections to models, and its interpreters."""
    await openai.close_clients()
    await monty.close()


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    return uuid4().hex


def services(request: RunRequest, opened: OpenRun) -> Services:
    """Return what one run reaches outside, bound to its owner and session."""
    files = DjangoArtifactStore(owner_id=request.owner_id, session_id=opened.session.id)
    return Services(
        model=model_of(request.model, request.owner_id),
        artifacts=files,
        knowledge=PgKnowledge(request.owner_id, int(opened.session.id), opened.sources, embedder=embedder()),
        recall=PgRecall(
            request.owner_id,
            int(opened.session.id),
            fork=opened.session.fork,
            filter_key=opened.records[0].origin.filter_key,
            before=opened.records[0].position,
            embedder=embedder(),
        ),
        memories=PgMemories(request.owner_id, embedder=embedder(), heeds_switch=True),
        remembers=opened.remembers,
        workspace=workspace_of(request.owner_id, int(opened.session.id)),
        skills=PgSkills(
            request.owner_id,
            run=SkillRun(session_id=int(opened.session.id), run_id=request.run_id),
            versions=opened.libraries,
        ),
        zone=zone_named(opened.zone) or ZoneInfo(settings.TIME_ZONE),
        ledger=opened.ledger,
        now=now,
        new_id=new_id,
        monotonic=monotonic,
        metrics=metrics().of_run(opened.session.id, request.run_id),
        window=lambda: window_of(request.model, run=request.window_tokens),
        tried=tried_of(request.model),
        calibration=calibration_of(request.model),
        policy=policies.of,
        sizes=_sizes,
        summaries=PgSummaries(owner_id=request.owner_id, session_id=int(opened.session.id), fork=opened.session.fork),
        summarizer=DynamicSummarizer(
            lambda agent, run_id: summarizer_of(policies.of(agent), request.model, request.owner_id)
        ),
    )


def summarizer_of(policy: ContextPolicy, answering: str, owner_id: int) -> Summarizer:
    """Return who writes an agent's summaries: the policy's model, else the one that answers, else the default; where
    that is no language model, rules do. A name that was taken out of the settings is passed over."""
    names = {model.info.name for model in models()}
    name = next((name for name in (policy.summary_model, answering) if name in names), "")
    model = model_of(name, owner_id)
    return ExtractiveSummarizer() if model.info.provider == offline.INFO.provider else ModelSummarizer(model)


def models() -> tuple[ConfiguredModel, ...]:
    """Return the models a person may choose from; the first is the default, and there is always one."""
    listed = tuple(_configured(entry) for entry in settings.MODELS)
    if settings.OPENAI_MODEL or (not listed and (settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL)):
        name = settings.OPENAI_MODEL or OPENAI_DEFAULT
        listed = (_configured({"name": name}), *(model for model in listed if model.info.name != name))
    return listed or (ConfiguredModel(info=offline.INFO, endpoint=None),)


def model_of(name: str, owner_id: int) -> Model:
    """Return the model of this name ("" = the default), able to read the owner's images. Raises Rejected."""
    found = _find(name)
    if found is None:
        raise Rejected("model_unavailable", f'There is no model "{name}" here.')
    if found.endpoint is None:
        return offline.OfflineModel()

    async def image(part: FilePart) -> bytes:
        files = DjangoArtifactStore(owner_id=owner_id, session_id=None)
        return await files.load(await files.find(part.artifact_id, part.version))

    return openai.OpenAIModel(info=found.info, endpoint=found.endpoint, files=image)


def window_of(name: str, *, run: int | None = None) -> Window:
    """Return the window of the model of this name ("" = the default), configured or not, and where it is known from.

    run: what an option of the run says, in tokens. What a server tells may come later, so ask again for each request.
    A refusal counts more than what anybody says.
    """
    found = _find(name)
    if found is None:
        return resolve(name, run=run)
    declared = found.info.window_tokens
    if found.endpoint is None:
        return resolve(found.info.name, run=run, model=declared)
    server, model = found.endpoint.base_url, found.info.name
    window = resolve(model, run=run, settings=declared, provider=openai_windows.told(server, model))
    named = openai_windows.refused(server, model)
    if named is not None and named < window.tokens:
        window = Window(tokens=named, source="provider")
    return tried_of(name).within(window, monotonic())


def tried_of(name: str) -> Tried:
    """Return what requests have shown of the window of this model ("" = the default), the same for all runs."""
    found = _find(name)
    if found is None or found.endpoint is None:
        return Tried()
    return _tried[found.endpoint.base_url, found.info.name]


def calibration_of(name: str) -> Calibration:
    """Return what the tokens of this model ("" = the default) cost, as its provider reports. Call it in the loop.

    The offline model counts by our own estimates, so there is nothing to learn from it.
    """
    found = _find(name)
    if found is None or found.endpoint is None:
        return Uncalibrated()
    return calibrations.of(found.info.provider, found.info.name)


def embedder() -> Embedder | None:
    """Return what makes vectors for search, one per process; None = words alone."""
    if settings.EMBEDDER == "minilm":
        return _minilm(settings.EMBEDDER_TIMEOUT_S)
    if settings.EMBEDDER == "openai":
        own = settings.EMBEDDER_BASE_URL
        return _endpoint(
            own or settings.OPENAI_BASE_URL or OPENAI_URL,
            # the models' key is not for another server
            settings.EMBEDDER_API_KEY or ("" if own else settings.OPENAI_API_KEY),
            settings.EMBEDDER_MODEL,
            settings.EMBEDDER_TIMEOUT_S,
        )
    return None


@cache
def _minilm(query_s: float) -> Embedder:
    return minilm.MiniLM(query_s=query_s)


@cache
def _endpoint(base_url: str, api_key: str, model: str, query_s: float) -> Embedder:
    return embeddings.OpenAIEmbedder(base_url=base_url, api_key=api_key, model=model, query_s=query_s)


def _find(name: str) -> ConfiguredModel | None:
    return next((model for model in models() if not name or model.info.name == name), None)


def _configured(entry: dict[str, Any]) -> ConfiguredModel:
    info = ModelInfo(
        name=entry["name"],
        provider=entry.get("provider", "openai"),
        window_tokens=entry.get("window"),
        price_prompt=entry.get("price_prompt"),
        price_cached=entry.get("price_cached"),
        price_completion=entry.get("price_completion"),
        images=bool(entry.get("images", False)),
    )
    endpoint = openai.Endpoint(
        base_url=entry.get("base_url") or settings.OPENAI_BASE_URL or OPENAI_URL,
        api_key=entry.get("api_key") or settings.OPENAI_API_KEY,
        connect_s=settings.MODEL_CONNECT_TIMEOUT_S,
        read_s=settings.MODEL_READ_TIMEOUT_S,
        total_s=settings.MODEL_TOTAL_TIMEOUT_S,
        transport="httpx" if settings.MODEL_HTTP == "httpx" else "aiohttp",
    )
    return ConfiguredModel(info=info, endpoint=endpoint)


async def prepare(request: RunRequest) -> RunRequest:
    """Name the model, look up the documents to answer from, store uploads, bring the files the message names into its
    conversation, guard long answers.

    All for this owner: another's file is not found. Raises Rejected, and StorageUnavailable if a file was not kept.
    """
    names = [model.info.name for model in models()]
    if request.model and request.model not in names:
        raise Rejected("model_unavailable", f'There is no model "{request.model}" here.')
    request = replace(request, model=request.model or names[0])
    if request.sources_given and request.sources:
        for unknown in await db.in_thread(missing)(request.owner_id, request.sources):
            raise Rejected("invalid_input", f'There is no document "{unknown}".')
    try:
        return await _with_files(await _guarded(request))
    except ArtifactMissing as error:
        raise Rejected("invalid_input", "An attached file is not there any more.") from error
    except ArtifactInvalid as error:
        raise Rejected("invalid_input", str(error)) from error
    except ArtifactNotKept as error:
        raise StorageUnavailable from error


async def _with_files(request: RunRequest) -> RunRequest:
    message = request.message
    if message is None or not (request.uploads or any(isinstance(part, FilePart) for part in message.parts)):
        return request
    if len(request.uploads) > settings.MAX_FILES_PER_MESSAGE:
        raise Rejected("payload_too_large", f"At most {settings.MAX_FILES_PER_MESSAGE} files per message.")
    anywhere = DjangoArtifactStore(owner_id=request.owner_id, session_id=None)
    named: dict[Part, ArtifactRef] = {}
    for part in message.parts:
        if isinstance(part, FilePart):
            named[part] = await anywhere.find(part.artifact_id, part.version or None)
    files = await _files_of_thread(request, make=True)
    if files is None:
        raise Rejected("thread_not_found")
    parts = [_part(await files.bring(named[part])) if part in named else part for part in message.parts]
    for upload in request.uploads:
        ref = await files.save(name=upload.name, data=upload.data, mime=upload.mime, origin={"kind": "upload"})
        parts.append(_part(ref))
    return replace(request, message=replace(message, parts=tuple(parts)), uploads=())


async def _guarded(request: RunRequest) -> RunRequest:
    """Return the request with the answers to external calls as they may be stored, like results of our own tools."""
    if all(len(result.content.encode()) <= LIMITS.tool_result_bytes for result in request.tool_results):
        return request
    check(request)  # what will be refused anyway leaves no file behind
    files = await _files_of_thread(request, make=False)
    if files is None:
        raise Rejected("thread_not_found")
    results = [
        await guard(
            result,
            family=Family.GENERAL,
            limit_bytes=LIMITS.tool_result_bytes,
            artifacts=files,
            run_id=request.run_id,
        )
        for result in request.tool_results
    ]
    return replace(request, tool_results=tuple(results))


async def _files_of_thread(request: RunRequest, *, make: bool) -> DjangoArtifactStore | None:
    session_id = await db.in_thread(session_of_thread)(request.owner_id, request.thread_id, make=make)
    return None if session_id is None else DjangoArtifactStore(owner_id=request.owner_id, session_id=str(session_id))


def _part(ref: ArtifactRef) -> FilePart:
    kind = ref.mime.partition("/")[0]
    return FilePart(
        artifact_id=ref.artifact_id,
        version=ref.version,
        name=ref.name,
        mime=ref.mime,
        size_bytes=ref.size_bytes,
        media=kind if kind in ("image", "audio", "video") else "document",
    )
