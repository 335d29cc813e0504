"""English words that say the same and share no stem: irregular forms, and everyday words for one thing.

A text that holds one of a group is found by the others. General knowledge of the language, no data's vocabulary.
"""

import re
import unicodedata
from typing import Final

from agents.search.words import clean

MOST: Final = 12  # words of a query that are looked up
_WORD = re.compile(r"[a-z]+")
_GROUPS: Final = """
become became|begin began begun start|bite bit bitten|blow blew blown|break broke broken|bring brought|build built
buy bought purchase|catch caught|choose chose chosen choice pick select|come came|dig dug|draw drew drawn
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found
fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten receive
give gave given|go went gone|grow grew grown growth|hang hung|hear heard|hide hid hidden|hold held|keep kept
know knew known knowledge|lead led|leave left|lend lent|lose lost loss|make made|mean meant|meet met meeting|pay paid
ride rode ridden|ring rang rung|rise rose risen|run ran|see saw seen watch|seek sought|sell sold sale|send sent
shake shook shaken|shine shone|shoot shot|sing sang sung song|sink sank sunk|sit sat|sleep slept
speak spoke spoken speech|spend spent|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn
sweep swept|swim swam swum|take took taken|teach taught|tear tore torn|throw threw thrown|understand understood
wake woke woken|wear wore worn|win won|write wrote written|child children kid|man men|woman women|foot feet
tooth teeth|mouse mice|person people|wife wives|knife knives|half halves|leaf leaves|shelf shelves|bad worse worst
decide decision|describe description|die death dead|marry marriage|succeed success|analyze analysis analyse
advise advice suggestion|arrive arrival|believe belief|compare comparison|destroy destruction|divide division
explain explanation|produce production|reduce reduction|solve solution|high height|long length|strong strength
wide width|deep depth|warm warmth|young youth|movie film|mother mom mum|father dad|grandmother grandma
grandfather grandpa|picture photo photograph image pic|job work career|trip travel vacation journey holiday
big large huge|small little tiny|doctor physician|car vehicle|house home|happy glad|like love enjoy|baby infant
sick ill|clothes clothing|dog puppy pup|cat kitten|company firm business|meal dinner lunch breakfast food|store shop
gift present|city town|country nation|street road|error bug mistake|fix repair|finish complete end|help assist
need require|show display|own possess|scared afraid|smart clever intelligent|angry upset|recommend suggest
telephone phone|television tv|money cash|price cost|salary wage|boss manager|exercise workout|garden yard
class lesson course|college university|teacher instructor|friend buddy
""".replace("\n", "|").split("|")


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS:
        for word in (words := group.split()):
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


_TABLE: Final = _table()


def alike(query: str) -> tuple[tuple[str, str], ...]:
    """Return (word, others) for words of the query that have others, these apart by blanks. Plain endings are seen
    through: "kids" has those of "kid"."""
    found: dict[str, str] = {}
    for word in _WORD.findall(unicodedata.normalize("NFKC", clean(query)).lower()):
        for form in (word, word.removesuffix("s"), word.removesuffix("ed"), word.removesuffix("ing")):
            if others := _TABLE.get(form):
                found[word] = " ".join(others)
                break
    return tuple(found.items())[:MOST]
