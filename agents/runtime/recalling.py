"""What to search for next when one search did not tell all: by rules, from the question and what was found."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

READ: Final = 3  # of the first texts
UNTOLD: Final = 2  # words of the question that a next query asks for again
WORDS: Final = 3  # that a next query takes from them
MOST_SHARE: Final = 0.25  # of the texts; a word in more of them tells nothing apart
LEAST_TEXTS: Final = 4

_HAN: Final = r"\u3400-\u9fff"
_WORD: Final = re.compile(rf"[^\W_{_HAN}]+(?:['’][^\W_{_HAN}]+)*|[{_HAN}]+")
_NAME: Final = re.compile(rf"[A-Z][^\W_{_HAN}]+")
_LEAST_CHARS: Final = 4

# English words that say little of what a text is about: the most frequent ones and those of talk.
_COMMON: Final = frozenset(
    """a able about above actually after again against ago all almost already also although always am amazing an and
    another any anyone anything are aren't around as ask asked at away awesome back bad be because been before being
    best better between big bit both but by call called came can can't cannot check come coming could couldn't day days
    definitely did didn't different do does doesn't doing don't done down each either else end enough even ever every
    everyone everything excited exactly feel feeling feels few find first for found from fun gave get gets getting give
    given glad go goes going good got great guess guys had happened happy hard has hasn't have haven't having he hear
    heard hello help helped helps her here hey hi him his hope how however i i'd i'll i'm i've idea if important in
    incredible instead interesting into is isn't it it's its it’s just keep kind knew know last lately later least let
    let's life like little long look looked looking looks lot lots love loved made make makes making many matter may
    maybe me mean means might mine mind moment more most mr mrs much must my myself name need needed never new nice no
    nope not nothing now of off often oh ok okay on once one only or other others our out over own part people perhaps
    pic picture photo place plan please pretty probably put quite ready really recently remember right said same saw say
    saying says see seeing seem seems seen shall share shared shares she should show side since so some someone
    something sometimes soon sorry sounds special start started still stuff such sure take taken takes taking talk
    talked tell than thank thanks that that's that’s the their them then there there's these they they're thing things
    think thinking this those though thought through time times to today together told tomorrow tonight too took toward
    tried true try trying turn two under until up upon us use used very wait want wanted was wasn't way we we'll we're
    we've well went were what what's whatever when where which while who whole whose why will wish with without won't
    wonderful words work working world would wouldn't wow year years yeah yep yes yesterday yet you you'll you're you've
    your yours""".split()
)


def follow_up(query: str, texts: Sequence[str], asked: Sequence[str] = ()) -> str | None:
    """Return what to search for next, None if the texts give nothing new to ask.

    texts: what was found, best first. asked: earlier follow-ups. The next query holds the names of the question, else
    its first word that says something; what of the question no text tells of; and words of the first texts that few of
    all hold.
    """
    known = {_root(word) for words in (query, *asked) for word in _words(words)}
    held = Counter(root for text in texts for root in {_root(word) for word in _words(text)})
    most = max(LEAST_TEXTS, MOST_SHARE * len(texts))
    worth: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for text in texts[:READ]:
        for word in dict.fromkeys(_words(text)):
            root = _root(word)
            if root not in known and held[root] <= most and _tells(word):
                worth[root] += 1
                shown.setdefault(root, word)
    found = [shown[root] for root, _ in worth.most_common(WORDS)]
    about = _about(query)
    named = {_root(word) for name in about for word in _words(name)}
    untold = [w for w in _words(query) if _tells(w) and _root(w) not in held and _root(w) not in named]
    return " ".join((*about, *untold[:UNTOLD], *found)) if found else None


def _about(query: str) -> tuple[str, ...]:
    """Return the names in the question; else its words that say something, the first of them."""
    first = _WORD.search(query)
    names = [name for name in _NAME.findall(query) if name.lower() not in _COMMON]
    if first and names[:1] == [first[0]] and len(names) > 1:
        names = names[1:]  # a capital that begins the sentence
    return tuple(dict.fromkeys(names)) or tuple(word for word in _words(query) if _tells(word))[:1]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def _tells(word: str) -> bool:
    return (len(word) >= _LEAST_CHARS or not word.isascii()) and word not in _COMMON


def _root(word: str) -> str:
    """Return the word without its commonest endings, for counting only."""
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
