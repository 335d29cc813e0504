"""How log lines look. Both shapes carry the ids of the run, the session and the request (the reference people see)."""

import datetime as dt
import json
import logging

from agents.runtime import logcontext

IDS = {
    "run_id": logcontext.run_id,
    "session_id": logcontext.session_id,
    "reference": logcontext.reference,
}


class Ids(logging.Filter):
    """Puts the ids of the current context on a record, unless the caller gave them with `extra`."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, variable in IDS.items():
            if not getattr(record, name, ""):
                setattr(record, name, variable.get())
        return True


def ids_of(record: logging.LogRecord) -> dict[str, str]:
    return {name: str(value) for name in IDS if (value := getattr(record, name, ""))}


class PlainFormatter(logging.Formatter):
    """One line for people: time, level, logger, message, ids; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        ids = "".join(f" {name}={value}" for name, value in ids_of(record).items())
        return super().formatMessage(record) + ids


class JsonFormatter(logging.Formatter):
    """One JSON object a line for machines: at, level, logger, message, ids and, after an error, the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        at = dt.datetime.fromtimestamp(record.created, tz=dt.UTC)
        line: dict[str, str] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **ids_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
