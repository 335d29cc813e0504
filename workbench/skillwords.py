"""What pages say of skills, in the reader's language."""

import re

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models.skill import SkillRevision
from agents.runtime.skills.format import Problem
from agents.runtime.skills.skill import BODY_CHARS, DESCRIPTION_CHARS, NAME_CHARS, SkillScope
from agents.stores.skilllibrary import STALE, TAKEN
from agents.stores.skillpacks import FILE_BYTES, MOST_FILES, MOST_SKILLS, UNPACKED_BYTES, PackRefused, Refusal

MIB = 1024 * 1024


def runs_code(executor: str) -> str:
    """Return what runs the code of skills and of the assistant here. executor: its name, "" = nothing does."""
    match executor:
        case "":
            return _("No code is run here: skills are read, and what they do with files is done by hand.")
        case "monty":
            return _(
                "Code runs in a restricted Python interpreter (monty): without network, with the files of its "
                "conversation alone."
            )
        case _:
            return _(
                "Code runs in full Python and a shell, sealed off ({name}): without network, with the files of its "
                "conversation alone."
            ).format(name=executor)


def problem(code: str, words: str = "") -> str:
    """Return why a skill cannot be used. words: the parser's own, for what only it knows."""
    match code:
        case Problem.NO_FILE:
            return _("There is no SKILL.md in it.")
        case Problem.NOT_TEXT:
            return _("SKILL.md is not text in UTF-8.")
        case Problem.NO_NAME:
            return _("It has no name.")
        case Problem.NAME:
            said = _("Its name may hold lower-case letters, digits and single hyphens, at most {most} characters.")
            return said.format(most=NAME_CHARS)
        case Problem.NO_DESCRIPTION:
            return _("It has no description, so nobody can tell when to use it.")
        case Problem.DESCRIPTION:
            return _("Its description has more than {most} characters.").format(most=f"{DESCRIPTION_CHARS:,}")
        case Problem.NO_BODY:
            return _("It does not say what to do.")
        case Problem.BODY:
            return _("Its text has more than {most} characters.").format(most=f"{BODY_CHARS:,}")
        case Problem.FRONT_MATTER:
            line = re.search(r"\d+", words)
            said = _("The lines at the top of SKILL.md cannot be read: in line {line} quotation marks have no end.")
            return said.format(line=line[0] if line else 1)
    return words or _("It cannot be used.")


def refusal(error: PackRefused) -> str:
    """Return why nothing of what was brought was taken."""
    about = error.about
    said = {
        Refusal.EMPTY: _("There is nothing in it."),
        Refusal.NO_SKILL: _("There is no SKILL.md in it. A skill is a folder with a file of exactly this name."),
        Refusal.KIND: _("“{about}” is neither a SKILL.md nor a zip, tar or tar.gz."),
        Refusal.DAMAGED: _("The archive is damaged or incomplete."),
        Refusal.ENCRYPTED: _("The archive is protected by a password."),
        Refusal.FILE_SIZE: _("“{about}” is too large: at most {most} MB per file."),
        Refusal.TOTAL_SIZE: _("It is too large: at most {total} MB in all, unpacked."),
        Refusal.COUNT: _("There is too much in it: at most {files} files and {skills} skills."),
        Refusal.PATH: _("It holds a path that is not allowed: “{about}”."),
        Refusal.LINK: _("It holds a link, which is not allowed: “{about}”."),
        Refusal.DEVICE: _("It holds something that is no file: “{about}”."),
        Refusal.TWICE: _("It holds two files for one place: “{about}”."),
        Refusal.NAME: _("It holds two skills of one name: “{about}”."),
    }[error.reason]
    limits = {
        "most": FILE_BYTES // MIB,
        "total": UNPACKED_BYTES // MIB,
        "files": f"{MOST_FILES:,}",
        "skills": MOST_SKILLS,
    }
    return said.format(about=about, **limits)


def scope(of: SkillScope) -> str:
    return {
        SkillScope.BUNDLED: _("Comes with Workbench"),
        SkillScope.EVERYONE: _("For everyone"),
        SkillScope.MINE: _("Mine"),
    }[of]


def source(of: str) -> str:
    """Return where a revision comes from."""
    return {
        SkillRevision.Source.PERSON.value: _("written here"),
        SkillRevision.Source.IMPORT.value: _("imported"),
        SkillRevision.Source.REVIEWER.value: _("learned from a run"),
        SkillRevision.Source.SUBMISSION.value: _("proposed"),
    }[of]


def status(of: str) -> str:
    """Return the state of a revision."""
    return {
        SkillRevision.Status.PENDING.value: _("being checked"),
        SkillRevision.Status.PENDING_EVAL.value: _("waits for a result"),
        SkillRevision.Status.PENDING_APPROVAL.value: _("waits for a decision"),
        SkillRevision.Status.ACTIVE.value: _("in use"),
        SkillRevision.Status.ARCHIVED.value: _("earlier"),
        SkillRevision.Status.REJECTED.value: _("not taken"),
        SkillRevision.Status.EXPIRED.value: _("nobody decided"),
    }[of]


def comment(of: str) -> str:
    """Return a note about a decision: what the house noted in the reader's language, what a person did as it is."""
    if of == STALE:
        return _("it was made from an older version")
    made = re.fullmatch(re.escape(TAKEN).replace(r"\{number\}", r"(\d+)"), of)
    return _("version {n} was made of it").format(n=made[1]) if made else of


def used(n: int) -> str:
    return ngettext("used in {n} run", "used in {n} runs", n).format(n=n) if n else _("not used yet")


def version(n: int) -> str:
    return _("Version {n}").format(n=n)


def script() -> dict[str, str]:
    """Return the strings of skills.js."""
    return {
        "skillFailed": _("That did not work. Nothing was changed; check the connection and try again."),
        "skillReading": _("Being read…"),
        "characters": _("{n} of {most} characters"),
    }
