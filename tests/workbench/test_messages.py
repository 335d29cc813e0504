"""Translations without gettext's programs."""

import gettext
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from workbench import messages
from workbench.parts import ROOT

LOCALE = ROOT / "workbench" / "locale"
EXAMPLE = r"""
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

#: somewhere.py:1
msgid "Send"
msgstr "发送"

msgctxt "verb"
msgid "Send"
msgstr "寄出"

msgid "%(n)s file"
msgid_plural "%(n)s files"
msgstr[0] "%(n)s 个文件"
msgstr[1] "%(n)s 个文件们"

msgid ""
"long "
"text \"quoted\"\n"
msgstr ""
"长"
"文\t“引”\n"

#, fuzzy
msgid "guessed"
msgstr "猜"

msgid "empty"
msgstr ""

#~ msgid "old"
#~ msgstr "旧"
"""


def write(place: Path, text: str) -> Path:
    po = place / "zz" / "LC_MESSAGES" / "django.po"
    po.parent.mkdir(parents=True, exist_ok=True)
    po.write_text(text, encoding="utf-8")
    return po


def test_what_is_compiled_is_what_gettext_reads(tmp_path: Path) -> None:
    po = write(tmp_path, EXAMPLE)
    assert messages.compile_all(tmp_path) == [po]
    with po.with_suffix(".mo").open("rb") as f:
        said = gettext.GNUTranslations(f)
    assert said.gettext("Send") == "发送"
    assert said.pgettext("verb", "Send") == "寄出"
    assert said.ngettext("%(n)s file", "%(n)s files", 1) == "%(n)s 个文件"
    assert said.ngettext("%(n)s file", "%(n)s files", 5) == "%(n)s 个文件们"
    assert said.gettext('long text "quoted"\n') == "长文\t“引”\n"
    assert [said.gettext(t) for t in ("guessed", "empty", "old")] == ["guessed", "empty", "old"]
    assert messages.untranslated(po) == ["guessed", "empty"]


def test_only_what_changed_is_compiled_again(tmp_path: Path) -> None:
    po = write(tmp_path, EXAMPLE)
    messages.compile_all(tmp_path)
    assert messages.compile_all(tmp_path) == []
    later = po.with_suffix(".mo").stat().st_mtime + 10
    os.utime(po, (later, later))
    assert messages.compile_all(tmp_path) == [po]


@pytest.mark.parametrize("text", ['msgid "a\nmsgstr "b"', 'msgid "a"\nmsgstr b', 'msgid "a"\nmsgstr "b"\nmsgstr "c"'])
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(messages.BadMessages, match=r"django\.po, line \d"):
        messages.read(write(tmp_path, text))


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="compares with gettext's own program")
@pytest.mark.parametrize("po", [*sorted(LOCALE.glob("*/LC_MESSAGES/*.po")), None])
def test_it_compiles_as_msgfmt_does(tmp_path: Path, po: Path | None) -> None:
    po = po or write(tmp_path, EXAMPLE)
    subprocess.run(["msgfmt", "--check-format", "-o", tmp_path / "theirs.mo", po], check=True)
    with (tmp_path / "theirs.mo").open("rb") as f:
        theirs = gettext.GNUTranslations(f)
    ours = gettext.GNUTranslations(io.BytesIO(messages.binary(messages.read(po))))  # type: ignore[arg-type]  # reads bytes only
    assert vars(ours)["_catalog"] == vars(theirs)["_catalog"]


@pytest.mark.parametrize("po", sorted(LOCALE.glob("*/LC_MESSAGES/*.po")))
def test_every_text_has_its_translation(po: Path) -> None:
    assert messages.untranslated(po) == []
