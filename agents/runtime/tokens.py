"""How many tokens a text costs: counts of what decides it (`Mix`), times what each costs (`Rates`), which calibrate.

No tokenizer: the runtime knows no engine. Tokenizers cut text much alike: a word, a group of digits, a run of marks and
a line end cost about one token each, Chinese by how common the character is. `DEFAULT_RATES` are those of o200k_base,
fitted to prose, code and JSON; good to some 5 % on a page of ordinary text. What a provider reports makes them better:
calibrating.py.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import add, mul
from typing import Final, Protocol

from agents.runtime.events import AssistantMessage, Record, ToolReturned, UserMessage
from agents.runtime.model import FilePart, Part, TextPart, ToolCall, ToolSpec, file_note

MESSAGE_TOKENS: Final = 4  # role and separators around each message
IMAGE_TOKENS: Final = 800
# No model's tokens cost less, or more, than so many times what they cost by default; rates that say so learnt nonsense.
SANE: Final = (0.25, 4.0)

# Each element of a mix, in order: what one of it costs by default, and by how much models differ in that.
ELEMENTS: Final[dict[str, tuple[float, float]]] = {
    "words": (1.04, 0.03),  # runs of ASCII letters
    "long": (0.08, 0.01),  # letters beyond the 6th of a word
    "very_long": (0.2, 0.02),  # letters beyond the 10th
    "capitals": (0.12, 0.1),  # pairs of capitals
    "digits": (0.03, 0.4),  # each, for tokenizers that cut numbers into digits
    "groups": (1.15, 0.25),  # of up to three digits
    "marks": (0.48, 0.05),  # runs of ASCII punctuation
    "more_marks": (0.33, 0.03),  # beyond the first of a run, up to the 4th
    "many_marks": (0.12, 0.1),  # beyond the 4th
    "spaced_marks": (0.55, 0.1),  # runs after a space
    "spaced_digits": (1.0, 0.15),  # numbers after a space
    "lines": (0.7, 0.08),
    "indents": (0.33, 0.1),  # lines that begin with blanks
    "gaps": (0.85, 0.2),  # two blanks or more within a line
    "han_frequent": (0.55, 0.2),
    "han_common": (0.55, 0.2),
    "han": (1.05, 0.4),
    "han_rare": (1.6, 0.6),
    "kana": (0.65, 0.2),
    "hangul": (0.75, 0.3),
    "wide_marks": (0.95, 0.2),  # full-width punctuation and symbols
    "emoji": (1.8, 0.4),
    "letters": (0.38, 0.15),  # of other alphabets
    "messages": (float(MESSAGE_TOKENS), 1.5),
    "calls": (8.0, 5.0),  # the frame of a tool call; few servers show its id to the model
    "images": (float(IMAGE_TOKENS), 500.0),
    "tools": (6.0, 6.0),  # the frame of a declared tool
    "schema": (0.9, 0.3),  # tokens of the JSON of declared tools; some servers rewrite it
    "requests": (3.0, 15.0),  # what a server adds to each
}
_INDEX: Final = {name: i for i, name in enumerate(ELEMENTS)}
_ZEROS: Final = (0,) * len(ELEMENTS)
_DEFAULTS: Final = tuple(default for default, _ in ELEMENTS.values())


@dataclass(frozen=True, slots=True)
class Mix:
    """What a text is made of, as far as it decides what it costs. Adds up: the mix of a request is that of its parts.

    counts: how many of each of ELEMENTS, in their order.
    """

    counts: tuple[int, ...] = _ZEROS

    def __add__(self, other: "Mix") -> "Mix":
        return Mix(tuple(map(add, self.counts, other.counts)))


@dataclass(frozen=True, slots=True)
class Rates:
    """What each element of a Mix costs one model, in tokens; in the order of ELEMENTS, none negative."""

    values: tuple[float, ...] = _DEFAULTS

    def tokens(self, mix: Mix) -> int:
        """Return about how many tokens the mix costs; 0 for nothing, else at least 1, and SANE whatever was learnt."""
        if mix.counts == _ZEROS:
            return 0
        cost: float = sum(map(mul, self.values, mix.counts))
        if self.values is not _DEFAULTS:
            default: float = sum(map(mul, _DEFAULTS, mix.counts))
            cost = min(max(cost, SANE[0] * default), SANE[1] * default)
        return max(1, round(cost))


DEFAULT_RATES: Final = Rates()
NOTHING: Final = Mix()


def _of(**counts: int) -> Mix:
    return Mix(tuple(counts.get(name, 0) for name in ELEMENTS))


MESSAGE: Final = _of(messages=1)
CALL: Final = _of(calls=1)
IMAGE: Final = _of(images=1)
REQUEST: Final = _of(requests=1)  # once in the mix of a whole request


def total(mixes: Iterable[Mix]) -> Mix:
    """Return the sum of many mixes; faster than adding them one by one."""
    columns = list(zip(*(mix.counts for mix in mixes), strict=True))
    return Mix(tuple(map(sum, columns))) if columns else NOTHING


def estimate(text: str) -> int:
    """Return about how many tokens the text costs; 0 for an empty text, else at least 1."""
    return max(1, DEFAULT_RATES.tokens(measure(text))) if text else 0


def estimate_parts(parts: tuple[Part, ...]) -> int:
    """Return about how many tokens the parts of a message cost, without its frame."""
    return DEFAULT_RATES.tokens(measure_parts(parts))


def estimate_record(record: Record) -> int:
    """Return about how many tokens a record costs in a prompt; 0 for one that a model never sees."""
    return DEFAULT_RATES.tokens(measure_record(record))


def measure(text: str) -> Mix:
    """Return the mix of a text. Linear in its length."""
    if not text:
        return NOTHING
    if text.isascii():
        return Mix(_ascii(text.encode()) + _NO_WIDE)
    wide = Counter("".join(_NOT_ASCII.findall(text)))
    counts = [0] * len(_WIDE)
    for char, count in wide.items():
        counts[_wide_class(char)] += count
    return Mix((*_ascii(text.encode("utf-8", "surrogatepass")), *counts, *_NO_FRAMES))


def measure_parts(parts: tuple[Part, ...]) -> Mix:
    """Return the mix of a message's parts, without its frame. Files that are no images cost the line that names them.

    An image counts as one also for a model that cannot look at it: its rate then becomes that of the line.
    """
    mix = NOTHING
    for part in parts:
        if isinstance(part, TextPart):
            mix += measure(part.text)
        elif isinstance(part, FilePart):
            mix += IMAGE if part.media == "image" else measure(file_note(part))
    return mix


def measure_calls(calls: Sequence[ToolCall]) -> Mix:
    """Return the mix of the tool calls of one answer: names and arguments, as they are sent, and their frames."""
    return total(CALL + measure(call.name) + measure(call.arguments) for call in calls)


def measure_record(record: Record) -> Mix:
    """Return the mix of what a record is in a prompt, its frame included; NOTHING for one that a model never sees.

    Reasoning is not in it: few models are told it again.
    """
    match record:
        case UserMessage():
            return MESSAGE + measure_parts(record.parts)
        case AssistantMessage():
            return MESSAGE + measure(record.text) + measure_calls(record.tool_calls)
        case ToolReturned():
            return MESSAGE + measure(record.content)
        case _:
            return NOTHING


def measure_tools(tools: Sequence[ToolSpec]) -> Mix:
    """Return the mix of the declarations of tools in a request."""
    if not tools:
        return NOTHING
    declared = [{"name": t.name, "description": t.description, "parameters": dict(t.parameters)} for t in tools]
    return _of(tools=len(tools), schema=estimate(json.dumps(declared, ensure_ascii=False)))


class Calibration(Protocol):
    """The rates of one model, getting better with each call whose usage the provider reports. Never waits or raises."""

    @property
    def rates(self) -> Rates: ...

    def learn(self, mix: Mix, prompt_tokens: int) -> None:
        """Take in what a request of this mix cost. Calls without usage (0) teach nothing."""
        ...


class Uncalibrated:
    """Calibration that stays as it is."""

    rates = DEFAULT_RATES

    def learn(self, mix: Mix, prompt_tokens: int) -> None:
        pass


_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_WIDE: Final = ("han_frequent", "han_common", "han", "han_rare", "kana", "hangul", "wide_marks", "emoji", "letters")
_NO_FRAMES: Final = (0,) * (len(ELEMENTS) - _INDEX["messages"])
_NO_WIDE: Final = (0,) * len(_WIDE) + _NO_FRAMES
_WIDE_BLOCKS: Final = (  # the first and the last character of each
    ("\u3400", "\u9fff", "han_rare"),
    ("\uf900", "\ufaff", "han_rare"),
    ("\U00020000", "\U0003ffff", "han_rare"),
    ("\u3040", "\u30ff", "kana"),
    ("\uac00", "\ud7af", "hangul"),
    ("\u1100", "\u11ff", "hangul"),
    ("\u2010", "\u2bff", "wide_marks"),
    ("\u3000", "\u303f", "wide_marks"),
    ("\uff00", "\uffef", "wide_marks"),
    ("\U0001f000", "\U0001faff", "emoji"),
)
# The characters that modern Chinese uses most: a tokenizer has them, and most words of them, as one token.
_FREQUENT: Final = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多"
    "经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
)
_COMMON: Final = (
    "日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果"
    "加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电"
    "数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且"
    "权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"
)


def _classes() -> bytes:
    """Return the table that maps bytes to their class: a letter, A capital, 0 digit, . mark, blank, line end.

    0 is the class of what is no ASCII, so UTF-8 can be asked as it is.
    """
    table = bytearray(b"." * 128 + bytes(128))
    table[ord("a") : ord("z") + 1] = b"a" * 26
    table[ord("A") : ord("Z") + 1] = b"A" * 26
    table[ord("0") : ord("9") + 1] = b"0" * 10
    for blank in b" \t\v\f":
        table[blank] = ord(" ")
    table[ord("\r")] = table[ord("\0")] = 0
    table[ord("\n")] = ord("\n")
    return bytes(table)


_CLASSES: Final = _classes()
_LETTERS, _DIGITS, _MARKS = (
    bytes(c if kind in kinds else ord(" ") for c, kind in enumerate(_CLASSES)) for kinds in (b"aA", b"0", b".")
)


_INK: Final = bytes(c if c in b" \n" else ord("x") for c in range(256))


def _ascii(text: bytes) -> tuple[int, ...]:
    """Return the counts of the elements that are ASCII. Whole-text passes in C: a loop over words costs ten times."""
    kinds = text.translate(_CLASSES)
    words = Counter(map(len, text.translate(_LETTERS).split()))
    numbers = Counter(map(len, text.translate(_DIGITS).split())) if b"0" in kinds else {}
    marks = Counter(map(len, text.translate(_MARKS).split()))
    return (
        words.total(),
        sum((size - 6) * n for size, n in words.items() if size > 6),
        sum((size - 10) * n for size, n in words.items() if size > 10),
        kinds.count(b"AA"),
        sum(size * n for size, n in numbers.items()),
        sum((size + 2) // 3 * n for size, n in numbers.items()),
        marks.total(),
        sum(min(size - 1, 3) * n for size, n in marks.items()),
        sum((size - 4) * n for size, n in marks.items() if size > 4),
        kinds.count(b" ."),
        kinds.count(b" 0"),
        kinds.count(b"\n"),
        kinds.count(b"\n "),
        kinds.translate(_INK).count(b"x  "),
    )


@cache
def _known_han() -> dict[str, int]:
    """Return the place in _WIDE of each character of GB 2312's first level, the 3,755 of everyday text."""
    everyday = (
        bytes((high, low)).decode("gb2312", "ignore") for high in range(0xB0, 0xD8) for low in range(0xA1, 0xFF)
    )
    known = dict.fromkeys(filter(None, everyday), _WIDE.index("han"))
    known |= dict.fromkeys(_COMMON, _WIDE.index("han_common"))
    return known | dict.fromkeys(_FREQUENT, _WIDE.index("han_frequent"))


def _wide_class(char: str) -> int:
    """Return the place in _WIDE of a character that is not ASCII."""
    found = _known_han().get(char)
    if found is not None:
        return found
    name = next((name for first, last, name in _WIDE_BLOCKS if first <= char <= last), "letters")
    return _WIDE.index(name)
