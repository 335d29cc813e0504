"""Which commands may be run, where an installation lists some: a parser that refuses what it cannot judge.

With a list only plain words are taken, joined by pipe, &&, || or ;. Whatever could make another command out of the
words (substitution, variables, redirects, sub-shells, braces, assignments) is refused, and so is what
runs other commands or changes the shell. Without a list every command is allowed; the sandbox holds either way.
"""

import re
from dataclasses import dataclass
from typing import Final

ALWAYS_DENIED: Final = frozenset(
    "sh bash dash zsh ksh csh tcsh fish ash busybox eval exec source . command builtin xargs env sudo su doas nohup "
    "setsid nice timeout time watch parallel script expect cd pushd popd export set unset printf read alias "
    "unalias declare typeset local readonly trap ulimit umask hash enable let bind complete wait jobs fg bg "
    "disown chroot unshare nsenter bwrap strace ltrace gdb stdbuf flock taskset chrt ionice setarch linux32 linux64 "
    "prlimit setpriv runuser rbash start-stop-daemon run-parts "
    # words of the shell, behind which a command stands
    "! if then elif else fi for while until do done case esac in select function coproc [[ ]]".split()
)
_LOADER: Final = re.compile(r"ld(-linux.*|-musl.*|)\.so.*")  # runs the program that it is given
_REFUSED: Final = (
    (re.compile(r"\$\(|`"), "command substitution"),
    (re.compile(r"\$"), "variables"),
    (re.compile(r"[<>]"), "redirects"),
    (re.compile(r"[(){}]"), "sub-shells and braces"),
    (re.compile(r"(?<!&)&(?!&)"), "background commands"),
    (re.compile(r"[\n\r\0]"), "several lines"),
    (re.compile(r"\\"), "backslashes"),
    (re.compile(r"#"), "comments"),
    (re.compile(r"[\x01-\x08\x0b-\x1f\x7f]"), "control characters"),
)
_ANYWHERE: Final = ("variables", "command substitution", "control characters")  # in quotation marks too
_PATTERN: Final = re.compile(r"[*?\[\]~]")  # the shell would make another name of it
_JOINS: Final = re.compile(r"\|\||&&|[|;]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPolicy:
    """allowed: names as they are called, exactly; empty = any that is not denied. denied: base names, any case."""

    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()

    @property
    def open(self) -> bool:
        return not self.allowed and not self.denied

    def problem(self, command: str, *, single: bool = False) -> str:
        """Return why a command may not be run, "" if it may. single: one command only, without any joining."""
        if self.open:
            return ""
        bare = _unquoted(command)
        if bare is None:
            return "A quotation mark is not closed."
        for found, name in _REFUSED:
            if found.search(bare if name not in _ANYWHERE else command):
                return f"Only plain commands are allowed here, without {name}."
        if single and _JOINS.search(bare):
            return "Only one command is allowed here, without pipes or anything behind it."
        parts = _parts(command)
        if not all(parts):
            return "A command is missing."
        for words in parts:
            if said := self._judged(words[0]):
                return said
        return ""

    def denies_python(self) -> str:
        """Return why Python code may not be run: it can do what python3 as a command can."""
        return "" if self.open else self._judged("python3")

    def _judged(self, name: str) -> str:
        if _ASSIGNMENT.match(name):
            return "Only plain commands are allowed here, without assignments."
        if _PATTERN.search(name) and name != "[":
            return "Only plain commands are allowed here, without patterns in their names."
        base = name.rsplit("/", 1)[-1].casefold()
        if base in ALWAYS_DENIED or _LOADER.fullmatch(base) or base in {denied.casefold() for denied in self.denied}:
            return f'The command "{name}" is not allowed here.'
        if self.allowed and name not in self.allowed:
            return f'The command "{name}" is not allowed here. Allowed are: {", ".join(sorted(self.allowed))}.'
        return ""


def _unquoted(command: str) -> str | None:
    """Return the command with quoted parts left out; None if a quotation does not end."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    return None if "'" in bare or '"' in bare else bare


def _parts(command: str) -> list[list[str]]:
    """Return the words of each command. Joining marks inside quotation marks are words' own."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0][1:-1])
        return f"\1{len(held) - 1}\2"

    masked = re.sub(r"'[^']*'|\"[^\"]*\"", hold, command.strip(" \t").removesuffix(";"))
    return [
        [re.sub("\1(\\d+)\2", lambda found: held[int(found[1])], word) for word in re.findall(r"[^ \t]+", part)]
        for part in _JOINS.split(masked)
    ]
