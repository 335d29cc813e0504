"""What the scripts say about documents: the library, the panel, citations and the choice of sources."""

from collections.abc import Collection

from django.utils.translation import gettext as _

from workbench import places


def script_words() -> dict[str, str]:
    """Return the strings of library.js, panel.js, cite.js and sources.js, in the language of the request."""
    return {
        **places.script_words(),
        **_library(),
        "citeLabel": _("Source {n}: {name}, {place}"),
        "citeLabelBare": _("Source {n}: {name}"),
        "citeQuote": _("“{quote}”"),
        "citeVersion": _("version {n}"),
        "citeGone": _("This document was deleted or is not yours any more. The quote was kept with the answer."),
        "citeGoneMessage": _("This conversation was deleted. The quote was kept with the answer."),
        "citeConversation": _("Untitled conversation"),
        "bytes": _("{n} bytes"),
        "sourcesOne": _("1 source"),
        "sources": _("{n} sources"),
        "sourcesNone": _("No sources"),
        "sourcesUnused": _("{sources} · {n} not used"),
        "unusedAnd": _("; "),
        "sourceOpen": _("Open"),
        "sourceGone": _("{place} (deleted)"),
        "notInDocuments": _("Your documents do not answer this."),
        "notInChosen": _("The chosen documents do not say this."),
        "footnotes": _("Sources"),
        "scopeAll": _("All documents"),
        "scopeNone": _("No documents"),
        "scopeOne": _("1 document"),
        "scopeSome": _("{n} documents"),
        "scopeSaid": _("Answered from: {scope}"),
        "scopeTooMany": _("At most {n} documents can be chosen."),
        "panelFailed": _("The document could not be opened. Check the connection and try again."),
        "panelGone": _("This document is not there"),
        "change": _("{n} of {total}"),
        "draftKept": _("Kept in this browser"),
        "draftBack": _("What you had written here before is back."),
    }


def scope(sources: Collection[str] | None) -> str:
    """Return what an answer could use, in words; "" for everything. static/js/sources.js says it the same way."""
    if sources is None:
        return ""
    say = script_words()
    word = {0: "scopeNone", 1: "scopeOne"}.get(len(sources), "scopeSome")
    return say["scopeSaid"].format(scope=say[word].format(n=len(sources)))


def not_in_documents(sources: Collection[str] | None) -> str:
    """Return that what an answer could use does not answer, in words. static/js/runview.js says it the same way."""
    return script_words()["notInChosen" if sources else "notInDocuments"]


def _library() -> dict[str, str]:
    return {
        "uploadWaiting": _("Waiting to be uploaded"),
        "uploading": _("Uploading"),
        "storing": _("Storing"),
        "uploadFailed": _("Not uploaded"),
        "uploadLost": _("The connection broke. Try again."),
        "uploadTooLarge": _("It is larger than {size}."),
        "uploadEmpty": _("It is empty."),
        "uploadSame": _("Already there"),
        "uploadCancel": _("Cancel upload of {name}"),
        "remove": _("Remove {name}"),
        "uploadMore": _("{n} more wait to be uploaded"),
        "uploadDone": _("{n} uploaded"),
        "ticked": _("{n} selected"),
        "deleteFailed": _("It could not be deleted. Check the connection and try again."),
        "nameFailed": _("It could not be saved. Check the connection and try again."),
        "sayReading": _("Reading {name}"),
        "sayReady": _("{name} is ready"),
        "sayNotRead": _("{name} could not be read"),
    }
