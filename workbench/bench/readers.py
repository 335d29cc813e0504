"""Readers of the public data sets. Each returns the same shapes; raises SetUnreadable for what is not in its format.

LoCoMo: one file per conversation, {"turns": [...], "qa": [...]}, or the published file, a list of samples whose
conversation holds session_1, session_2, ... QMSum: one meeting per file. MT-Bench-101: one dialogue per line.
LongMemEval: a list of cases with haystack_sessions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


class SetUnreadable(ValueError):
    """A file is not in the format of its set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that was said; one event. said_by: speaker or role. user: it stands where a person's message does.

    at: when the sitting began in which it was said, None = the set does not tell.
    """

    id: str
    said_by: str
    text: str
    user: bool
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """evidence: ids of the turns that answer it, () = unknown. kind: the set's own category. at: when it is asked."""

    text: str
    answer: str
    evidence: tuple[str, ...] = ()
    kind: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A conversation, oldest turn first, and what is asked of it afterwards."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...] = ()


def locomo(folder: Path) -> list[History]:
    """Return the conversations of LoCoMo, by file name. The first speaker of each takes the person's place."""
    found: list[History] = []
    for path in sorted(folder.glob("*.json")):
        data = _json(path)
        for sample in data if isinstance(data, list) else [data]:
            with _reading(path):
                found.append(_locomo(sample, path.stem))
    return found


def qmsum(folder: Path) -> list[History]:
    """Return the meetings of QMSum with their specific queries; turns are numbered from 0 as its spans are.

    The first speaker takes the person's place, all others the agent's.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        data = _json(path)
        with _reading(path):
            transcript = data["meeting_transcripts"]
            first = transcript[0]["speaker"] if transcript else ""
            turns = tuple(
                Turn(
                    id=str(n),
                    said_by=t["speaker"],
                    text=f"{t['speaker']}: {t['content']}",
                    user=t["speaker"] == first,
                )
                for n, t in enumerate(transcript)
            )
            questions = tuple(
                Question(text=q["query"], answer=q["answer"], evidence=_span(q["relevant_text_span"]), kind="specific")
                for q in data["specific_query_list"]
            )
            found.append(History(id=path.stem, turns=turns, questions=questions))
    return found


def mtbench(folder: Path) -> list[History]:
    """Return the dialogues of MT-Bench-101; the id is "TASK id"."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.strip():
                continue
            with _reading(path):
                row = json.loads(line)
                said = [(key, pair[key]) for pair in row["history"] for key in ("user", "bot")]
                turns = tuple(
                    Turn(id=str(n), said_by=who, text=text, user=who == "user") for n, (who, text) in enumerate(said)
                )
                found.append(History(id=f"{row['task']} {row['id']}", turns=turns))
    return found


def longmemeval(folder: Path) -> list[History]:
    """Return the cases of LongMemEval's files, one question each; a turn's id is "session:number"."""
    found: list[History] = []
    for path in sorted(folder.glob("*.json")):
        data = _json(path)
        with _reading(path):
            found += [_longmemeval(case) for case in data]
    return found


def joined(histories: Sequence[History], *, name: str) -> History:
    """Return one history of several, in this order, with all their questions; ids get their history's in front."""
    turns = [_renamed(turn, h.id) for h in histories for turn in h.turns]
    questions = [
        Question(text=q.text, answer=q.answer, evidence=tuple(f"{h.id}/{e}" for e in q.evidence), kind=q.kind, at=q.at)
        for h in histories
        for q in h.questions
    ]
    return History(id=name, turns=tuple(turns), questions=tuple(questions))


def distant(history: History, least: int) -> tuple[Question, ...]:
    """Return the questions all of whose evidence lies at least so many turns before the end."""
    place = {turn.id: n for n, turn in enumerate(history.turns)}
    last = len(history.turns)
    return tuple(
        q for q in history.questions if q.evidence and all(e in place and last - place[e] >= least for e in q.evidence)
    )


def _renamed(turn: Turn, name: str) -> Turn:
    return replace(turn, id=f"{name}/{turn.id}")


def _locomo(sample: Mapping[str, Any], name: str) -> History:
    rows = list(sample["turns"]) if "turns" in sample else list(_sessions(sample["conversation"]))
    first = rows[0]["speaker"] if rows else ""
    turns, session = [], None
    for row in rows:
        shares = row.get("caption") or row.get("blip_caption")
        text = f"{row['speaker']}: {row['text']}" + (f" [shares {shares}]" if shares else "")
        if row.get("session") != session:
            session = row.get("session")
            text = f"[{row.get('date', '')}] {text}"
        at = _time(str(row.get("date", "")), "%I:%M %p on %d %B, %Y")
        turns.append(Turn(id=row["dia_id"], said_by=row["speaker"], text=text, user=row["speaker"] == first, at=at))
    questions = tuple(
        Question(
            text=q["question"],
            answer=str(q.get("answer", q.get("adversarial_answer", ""))),
            evidence=tuple(_EVIDENCE.findall(" ".join(q.get("evidence") or ()))),
            kind=str(q["category"]),
        )
        for q in sample["qa"]
    )
    return History(id=str(sample.get("sample_id", name)), turns=tuple(turns), questions=questions)


def _sessions(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the turns of the published file's sessions in order, each with its session and date."""
    numbers = sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        for row in conversation[f"session_{number}"]:
            yield {**row, "session": number, "date": conversation.get(f"session_{number}_date_time", "")}


def _time(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _span(spans: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    return tuple(str(n) for first, last in spans for n in range(int(first), int(last) + 1))


def _longmemeval(case: Mapping[str, Any]) -> History:
    turns: list[Turn] = []
    evidence: list[str] = []
    for name, date, session in zip(
        case["haystack_session_ids"], case["haystack_dates"], case["haystack_sessions"], strict=True
    ):
        at = _time(date, "%Y/%m/%d (%a) %H:%M")
        for n, said in enumerate(session):
            lead = f"[{date}] " if n == 0 else ""
            user = said["role"] == "user"
            turns.append(Turn(id=f"{name}:{n}", said_by=said["role"], text=lead + said["content"], user=user, at=at))
            if said.get("has_answer"):
                evidence.append(f"{name}:{n}")
    question = Question(
        text=case["question"],
        answer=str(case["answer"]),
        evidence=tuple(evidence),
        kind=case["question_type"],
        at=case.get("question_date", ""),
    )
    return History(id=case["question_id"], turns=tuple(turns), questions=(question,))


def _json(path: Path) -> Any:
    with _reading(path):
        return json.loads(path.read_text(encoding="utf-8"))


class _reading:
    """Turns what a wrong shape raises into SetUnreadable with the file's name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError | TypeError | ValueError | IndexError | AttributeError):
            raise SetUnreadable(f"{self.path}: {type(error).__name__}: {error}") from error
