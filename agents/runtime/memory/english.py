"""What an English sentence says of the person who typed it, by rules. In doubt, nothing."""

import re
from dataclasses import replace
from typing import Final

from agents.runtime.memory.memories import Kind
from agents.runtime.memory.statements import Rule, Statement, first

_CAPITAL: Final = r"(?:(?-i:[A-Z])[\w'’.-]*)"
_NAME: Final = rf"{_CAPITAL}(?: (?:(?:de|da|van|von|der|bin|al|la) )*{_CAPITAL}){{0,3}}"
# Sentences that say nothing of the person, whatever stands in them.
_IDLE = re.compile(
    r"\b(?:if|suppose|supposing|imagine|assum(?:e|ing)|pretend|let['’]?s say|what if|hypothetically|for example|e\.g\."
    r"|for instance|act as|role-?play|as if|as though|would|might|maybe|perhaps|possibly|not sure|unsure|don['’]?t know"
    r"|do not know|wonder(?:ing)?|consider(?:ing)?|thinking (?:of|about)|used to|wish|could have|should have)\b"
    r"|(?:^|\s)/s\b|\byeah,? right\b|\b(?:oh|how|just|so|absolutely) (?:great|wonderful|fantastic|lovely|brilliant)\b"
    r"|\bjust love\b|(?-i:\b(?:LOVE|HATE|ADORE)\b)|🙄|\bthanks a lot for\b"
    r"|\b(?:password|passcode|api key|secret key|pin code|cvv|credit card|social security)\b",
    re.IGNORECASE,
)
_ONCE = re.compile(
    r"\b(?:this (?:time|once|one|draft|version|answer|document|email|paragraph|section|table|chart|text|sentence|file|"
    r"page|slide|plot|paper|essay|article|thesis|book|project|report|contract|question|task|figure|code|function)|"
    r"these|for now|right now|for once|just now|here)\b",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bProf)(?<!\bSt)(?<!\be\.g)(?<!\bi\.e)(?<!\bNo)(?<!\b[A-Z])"
    r"([.!?]+)[\"”')\]]*(?=\s+|$)|\s*;\s*|\n+"
)
_CLAUSE = re.compile(
    r",?\s+(?:and|but|so|because|since|as)\s+(?=(?:I|I['’]\w+|my|we|our|can|could|please|he|she|they|you|keep|it|let|"
    r"don['’]t)\b)"
    r"|,\s+(?=(?:I|I['’]\w+|my|we|our|can|could|will|please|he|she|they|you|how|what|which|who|where|when|why|let)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| all| everyone| team)?\b[,!.]?\s*|(?:ok|okay|"
    r"well|so|also|and|but|"
    r"actually|no|nope|sorry|correction|btw|by the way|fyi|just so you know|for (?:context|your information|"
    r"the record)|"
    r"as (?:background|context)|by the way|oh|one more thing|to be clear|to clarify)\b[,:!.]*\s+)+",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^(?:do|does|did|am|are|is|was|were|can|could|will|shall|should|have|has|had|what|which|who|whom|whose|where|"
    r"when|why|how)\b",
    re.IGNORECASE,
)
_NOT_THIS: Final = (
    r"(?!(?:this|that|it|its|these|those|the|your|you|him|her|them|his|their|how|what|to (?:know|see|ask|hear|get|"
    r"have)|"
    r"where|when|both|all of|neither|option|version|variant|choice|draft|number|to (?:bother|say|tell|admit|"
    r"interrupt|be)|all the|to$)\b)"
)
_OFTEN: Final = (
    r"(?:(?:really|strongly|generally|usually|also|always|still|only|much|personally|normally|absolutely|definitely) )*"
)
_PEOPLE: Final = (
    r"(?:(?:older|younger|elder|little|big|eldest|youngest|twin|late|new|line|co-?) ?)?(?:sister|brother|wife|husband|"
    r"partner|spouse|fianc[eé]e?|girlfriend|boyfriend|son|daughter|mother|father|mum|mom|dad|parents|kids?|children|"
    r"child|grandmother|grandfather|grandson|granddaughter|uncle|aunt|cousin|nephew|niece|boss|manager|supervisor|"
    r"colleague|assistant|founder|doctor|dentist|therapist|lawyer|accountant|teacher|advisor|adviser|mentor|flatmate|"
    r"roommate|neighbou?r|best friend|dog|cat|horse|team|company|employer|department|lab|university|school|client|"
    r"customers?|clients)"
)
_TRAITS: Final = (
    r"(?:(?:first|last|full|middle|user|nick) ?name|name|birthday|date of birth|e-?mail(?: address)?|"
    r"phone(?: number)?|(?:home |postal |work )?address|"
    r"time ?zone|job(?: title)?|title|role|position|profession|native language|mother tongue|first language|pronouns|"
    r"nationality|age|height|weight|blood type|budget|office|hometown|home town|major|handle|username|working hours|"
    r"shirt size|shoe size|company|employer|fiscal year|preferred [\w ]{2,30}|favou?rite (?!one\b)[\w ]{2,30})"
)
_STATE: Final = (
    r"(?!(?:\w+ing|late|sick|ill|angry|upset|mad|tired|busy|here|there|away|out|off|back|gone|not|broken|down|slow|"
    r"full|"
    r"empty|about|ready|right|wrong|fine|ok|okay|happy|due|too|so|very|just|still|now|today|like|been|really|super|"
    r"always|"
    r"seen|grown|made|become|done|got|had|won|lost|to)\b)"
)
_TOPIC: Final = (
    r"(?:company|team|department|office|offices|servers?|clients?|customers?|products?|fiscal year|financial year|"
    r"business|shop|store|school|lab|stack|database|website|budget|suppliers?|brand|style guide|house style|"
    r"headquarters)"
)
_ROLE: Final = (
    r"(?!(?:bit|little|lot|huge|big|fan|few|couple|moment|later|matter|number|member of the public)\b)(?:[\w-]+ ){0,3}?"
    r"(?:[\w-]{2,}(?:er|or|ist|ian|ant|yst|rch|ect|ive)|nurse|chef|student|graduate|intern|lead|head|surgeon|pilot|"
    r"scientist|freelance|barista|clerk|judge|mechanic|coach|postdoc|undergrad|vet|CEO|CTO|CFO|COO|VP|parent|mum|dad|"
    r"entrepreneur|professional|volunteer|widow|vegan|vegetarian|diabetic|pescatarian|muslim|hindu|buddhist)\b"
)
_HOW_I_AM: Final = (
    r"(?:(?:a |an )?(?:strict |lifelong )?(?:vegetarian|vegan|pescatarian|coeliac|celiac|diabetic|asthmatic|"
    r"colou?r-?\s?blind|dyslexic|"
    r"left-handed|right-handed|lactose[- ]intolerant|gluten[- ]intolerant|teetotal|deaf|blind|pregnant|married|"
    r"divorced|"
    r"retired|self-employed|bilingual)|allergic to|intolerant to|hard of hearing|fluent in|"
    r"(?:originally )?from (?=(?-i:[A-Z]))|"
    r"\d{2} years old|in (?:the )?[\w ]{2,30} time ?zone)(?:\b|(?<=\s))"
)
_TECHNICAL: Final = (
    r"(?:linux|ubuntu|debian|fedora|mac|macos|windows|ios|android|python|rust|go|java|kotlin|typescript|react|vue|"
    r"django|postgres\w*|mysql|mongo\w*|kubernetes|docker|aws|azure|gcp|github|gitlab|jira|notion|slack|teams|"
    r"excel|vs ?code|vim|emacs|chrome|firefox|drafts|done|page|line|step|chapter|section|slide|row|column)\b"
)
_IAM: Final = r"I(?:['’]m| am)"
_IHAVE: Final = r"I(?:['’]ve| have)"


def _rule(pattern: str, slot: str = "", *, ended: bool = False) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), slot, ended)


_ENDED: Final = (
    _rule(
        r"I(?:['’]m| am)? (?:no longer|not) (?:work(?:ing)?|employed) (?:at|for|"
        r"with) (?P<v>[\w&. -]+?) ?(?:any ?more)?$",
        "employer",
        ended=True,
    ),
    _rule(r"I (?:do not|don['’]t) work (?:at|for|with) (?P<v>[\w&. -]+?) any ?more", "employer", ended=True),
    _rule(r"I(?:['’]ve| have)? (?:left|quit) (?P<v>(?-i:[A-Z])[\w&. -]+)", "employer", ended=True),
    _rule(r"I (?:no longer live|don['’]t live|do not live) in (?P<v>[\w. -]+?) ?(?:any ?more)?$", "home", ended=True),
)
_RULES: Final = (
    _rule(rf"my name(?:['’]s| is)(?: now| actually)?(?: spelled| spelt)? (?P<v>{_NAME})", "name"),
    _rule(rf"(?:please |can you |could you |you can |just )?call me (?P<v>{_NAME})", "form of address"),
    _rule(rf"I go by (?P<v>{_NAME})", "form of address"),
    _rule(
        rf"(?:{_IAM}|this is) (?P<v>(?-i:(?!A\b|An\b|The\b)[A-Z][a-zé'’-]+(?: [A-Z][\w'’-]+)?))(?=$|,| from\b| at\b|"
        rf" and\b| \()",
        "name",
    ),
    _rule(
        rf"(?:I|we)(?:['’]ve| have|['’]m| am| are|['’]re)?(?: just| recently)? (?:moved|relocated|moving|"
        rf"relocating) from (?P<was>[\w. '’-]+?) to (?P<v>{_NAME})",
        "home",
    ),
    _rule(
        rf"I(?:['’]ve| have|['’]m| am)?(?: just| recently)? (?:moved|relocated|moving|relocating) to "
        rf"(?!{_TECHNICAL})(?P<v>{_NAME})",
        "home",
    ),
    _rule(
        r"(?:I|we)(?:['’]m| am|['’]re| are|['’]ve| have)?(?: now| currently)? (?:live|living|lived|been living|"
        r"based|reside|located)(?: now)? (?:in|near|at) (?P<v>(?!hope\b|fear\b|(?:a|the) (?:moment|past|"
        r"dream))[\w. '’-]+?)(?: (?:with|and|since|for|now)\b.*)?(?:,.*)?$",
        "home",
    ),
    _rule(
        r"I(?:['’]m| am)?(?: now| currently)? (?:work|working)(?: now)? (?:at|for) (?P<v>(?:the |a |an )?(?!you\b|"
        r"me\b|hours\b|it\b|this\b|that\b|home\b|night\b|\d)[\w&. '’-]+?)(?: (?:as|since|in|and)\b.*)?(?:,.*)?$",
        "employer",
    ),
    _rule(
        r"I(?:['’]ve| have)?(?: just| recently)? joined (?P<v>(?-i:[A-Z])[\w&.'’-]*(?: (?-i:[A-Z])[\w&.'’-]*)*)",
        "employer",
    ),
    _rule(r"I(?:['’]m| am)?(?: now| currently)? (?:work|working)(?: now)? as (?:an? |the )?(?P<v>[\w &/-]+)", "role"),
    _rule(
        r"I(?:['’]m| am)?(?: now| currently)? (?:work|working) (?:in|on|with) (?!progress\b|it\b|this\b|that\b|the\b|"
        r"an?\b|you\b|them\b|my\b|your\b)\w+"
    ),
    _rule(
        rf"{_IAM}(?: currently)? (?:learning|studying) (?!a ton\b|a lot\b|so\b|more\b|new\b|hard\b|for\b|how\b|the\b|"
        rf"this\b|that\b|it\b)\w+"
    ),
    _rule(rf"{_IAM}(?: now| currently| also)? (?:an? |the )(?P<v>{_ROLE})", ""),
    _rule(
        r"I (?:lead|head|manage|supervise|teach|study|studied(?! hard| for| it| all)|own|founded|run|direct|"
        r"coordinate) (?!it\b|this\b|that\b|these\b|into\b|the (?:test|script|command|build|code|query)s?\b)[\w-]+"
    ),
    _rule(rf"{_IAM}(?: also| now)? {_HOW_I_AM}"),
    _rule(
        rf"{_IHAVE}(?: got)? (?:(?:over|about|more than|almost|nearly|around|some|at least) )?(?P<v>\d{{1,2}}|"
        rf"\w+) years(?:['’])? (?:of )?"
    ),
    _rule(
        rf"{_IHAVE} (?:been )?(?:us(?:ing|ed)|work(?:ing|ed)|teaching|taught|writing|written|program(?:ming|med)|"
        rf"cod(?:ing|ed)|running|run|practi[sc](?:ing|ed)|play(?:ing|ed)|stud(?:ying|ied)|learn(?:ing|ed|t)|"
        rf"manag(?:ing|ed)|lead(?:ing)?|led|sell(?:ing)?|sold|design(?:ing|ed)|build(?:ing)?|built|doing|done|"
        rf"speaking|spoken) (?!this\b|that\b|it\b)[^,]*? for (?:over |about |almost |nearly )?(?:\d{{1,2}}|\w+) years"
    ),
    _rule(
        rf"{_IHAVE}(?: got)? (?:(?:two|three|four|five|\d|an?) (?:[\w-]+ )?(?:kids?|children|sons?|daughters?|dogs?|"
        rf"cats?|sisters?|brothers?)|diabetes|asthma|dyslexia|ADHD|coeliac disease|celiac disease|"
        rf"high blood pressure)\b"
    ),
    _rule(rf"my (?P<noun>{_PEOPLE})(?:['’]s name)? (?:is|are) (?:called |named )?(?P<v>{_NAME})", "my {noun}"),
    _rule(
        rf"my (?P<noun>{_PEOPLE}),? (?:{_CAPITAL},? )?(?:is|are|has|have|lives?|works?|uses?|loves?|hates?|likes?|"
        rf"prefers?|speaks?|was born|were born|signs?|reads?|needs?|wants?) {_STATE}"
    ),
    _rule(rf"my (?P<noun>{_TRAITS}) (?:is|are|starts?|begins?|ends?)(?: now)? {_STATE}(?P<v>.+)", "my {noun}"),
    _rule(
        rf"our {_TOPIC} (?:is|are|uses?|runs?|(?:has|have)(?! \w+ed\b| been\b| to\b| just\b| had\b)|starts?|begins?|"
        rf"ends?|ships?|sells?|works?|closes?|opens?|speaks?|lives?) {_STATE}"
    ),
    _rule(
        r"we(?:['’]re| are)? (?:use|work with|sell|manufacture|run on|ship to|operate|report in|invoice in|based in|"
        r"deploy (?:on|to)) (?!it\b|this\b|that\b)\w+"
    ),
    _rule(
        rf"I {_OFTEN}(?:prefer|like|love|hate|dislike|enjoy|detest|favou?r|adore|can['’]?t stand|cannot stand|"
        rf"can['’]t bear|don['’]t (?:really |particularly )?(?:like|enjoy|eat|drink|smoke)|do not (?:like|enjoy|eat|"
        rf"drink)) {_NOT_THIS}(?!.*\b(?:them|these|those|this|here)\b)\w+"
    ),
    _rule(
        r"I (?:always|usually|only|never|normally|mostly|mainly) (?:use|work|write|eat|drink|code|read|speak|buy|fly|"
        r"travel|pay|report|present) (?!this\b|that\b|it\b)\w+"
    ),
    _rule(r"I (?:speak|code in|program in|write in) (?:only |mostly |mainly |fluent |native )?(?-i:[A-Z])\w+"),
)
_REMEMBER = re.compile(
    r"^(?:(?:please|can you|could you|also) )*(?:remember|note(?=(?: that|:)? (?:I|we|my|our)\b)|don['’]t forget|"
    r"do not forget|never forget|"
    r"keep in mind|bear in mind|"
    r"for (?:future|your) reference|make a note|take note)(?: that|:)?\s+(?!to\b|when\b|how\b|me\b|what\b|where\b|"
    r"this\b|that\b|it\b|the (?:last|previous)\b)"
    r"(?P<what>(?:I|we|my|our|the|all|every|no|a|an|(?-i:[A-Z])[\w-]*|\w+s)\b.*)$",
    re.IGNORECASE,
)
_TRAILING = re.compile(r",?\s*(?:please )?(?:remember|keep|note|bear) (?:that|this|it)(?: in mind)?\.?$", re.IGNORECASE)
_FROM_NOW = re.compile(
    r"\b(?:from now on(?:wards)?|going forward|in (?:the )?future|from here on(?: out)?|from today(?: on)?|"
    r"henceforth|by default|every time|each time|"
    r"at all times|in (?:all|any|each|every)(?: of)? (?:your|my|our|the)? ?(?:replies|answers|responses|reports|"
    r"emails|e-mails|documents|summaries|letters|drafts|messages)|"
    r"for (?:all|every|any) (?:of )?(?:my|our|future) [\w -]{2,30}|whenever you|when(?:ever)? you (?:write|reply|"
    r"answer|respond|quote|cite|draft|send|summari[sz]e|format|translate))\b",
    re.IGNORECASE,
)
_DO: Final = (
    r"(?:use|write|answer|reply|respond|give(?! up)|keep|put|cite|quote|include|show|format|call|address|start|begin|"
    r"end|send|"
    r"ask|make|translate|provide|list|sign|add|skip|leave|spell|present|report|round|convert|explain|mention|check|"
    r"stick|"
    r"speak|assume|summari[sz]e|draft|prefer|state|name|mark|attach|follow|be (?:brief|concise|formal|polite|direct|"
    r"precise)|"
    r"set|limit|remove|omit|tell|warn|suggest|recommend|apologi[sz]e|repeat|guess|invent|delete|share|schedule|book)\b"
)
_ALWAYS = re.compile(
    rf"^(?:please )?(?:you (?:should|must) )?(?:always|never) {_DO}|^(?:please )?(?:don['’]t|do not|stop|avoid|"
    rf"no more) "
    r"(?!(?:\w+ )?(?:that|this|it)\b).*\b(?:ever again|any ?more|again|(?:in|with) (?:your|my|any|all|"
    r"our) (?:replies|answers|"
    r"responses|reports|emails|messages|documents|drafts|code))\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    rf"(?:^|,\s*)(?:please )?(?:you (?:should|must|can) )?(?:(?:always|never|don['’]t|do not|stop|avoid|no more|"
    rf"only)\b|{_DO})",
    re.IGNORECASE,
)
_DUE = re.compile(
    r"\b(?:due|deadline|expires?|expiring|closes|must be (?:\w+ed|in|done|sent)|needs? to be (?:\w+ed|in|done|sent))\b",
    re.IGNORECASE,
)
_EVENT: Final = (
    r"(?:appointment|meeting|interview|exam|flight|train|deadline|surgery|operation|wedding|trip|holiday|vacation|"
    r"conference|"
    r"presentation|call|review|defen[cs]e|viva|hearing|audit|launch|workshop|demo|party|visit|class|lecture|test|"
    r"check-?up|"
    r"reservation|booking|birthday|anniversary|concert|marathon|race|retreat|move|move-in|delivery|inspection|trial)\b"
)
_AHEAD = re.compile(
    rf"^(?:on [^,]+, |tomorrow,? |next \w+,? )?(?:(?:I|we)(?:['’]ve| have)(?: got)? (?:an? |my |our |"
    rf"the )(?:[\w'’.-]+ ){{0,4}}{_EVENT}"
    r"|(?:I|we)(?:['’]m| am|['’]re| are) (?:flying|travel\w+|moving|presenting|starting|leaving|visiting|"
    r"getting married|having (?:surgery|an operation)|"
    r"launching|hosting|on (?:holiday|leave|vacation)|away|attending|retiring|going on (?:holiday|leave|vacation)|"
    r"meeting (?-i:[A-Z])\w+)\b"
    r"|(?:I|we)(?:['’]ll| will) (?:start|move|leave|retire|fly|travel|present|launch|graduate|visit|attend|be (?:in|"
    r"on|away|at|out))\b"
    rf"|(?:my|our) (?:[\w'’-]+ ){{0,4}}{_EVENT} (?:is|are|starts?|begins?|ends?|takes? place)\b)",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"^(?:(?:on|in) [^,]+, |yesterday,? |last [\w ]+?,? )?(?:I|we) (?:(?:just|finally|already|also|"
    r"recently) )?(?:(?:met|interviewed|hired)(?: with| up with)? (?-i:[A-Z])\w+|visited (?-i:[A-Z])\w+|"
    r"signed|launched|graduated|got (?:married|engaged|promoted|divorced|a (?:new )?(?:job|dog|cat|car|house|flat))|"
    r"married|divorced|started (?:an?|my|at|as|working)\b|began (?:an?|my)\b|"
    r"joined (?-i:[A-Z])\w+|left (?-i:[A-Z])\w+|bought (?:an?|our|my) (?:[\w-]+ ){0,2}(?:house|flat|apartment|car|"
    r"boat|company|home|piano|bike)|sold (?:our|my|the)|founded|opened (?:an?|our|my|the) (?!file|document|link|"
    r"page)|"
    r"won|gave birth|adopted|retired|flew to|travell?ed to|went to (?-i:[A-Z])\w+|attended|presented (?:at|to)|"
    r"was born|had (?:surgery|an operation|a baby|our)|completed (?:my|our)|finished (?:my|our)|"
    r"defended|migrated|moved (?:from|to|into|house)|quit|resigned|closed (?:the|our) (?:deal|round|office)|shipped|"
    r"released)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:\w+ed|met|went|had|got|flew|began|bought|was|were|since|left|won)\b", re.IGNORECASE)
_YEARS = re.compile(
    r"\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty)(?= years\b)",
    re.IGNORECASE,
)


def statements(text: str) -> list[Statement]:
    """Return what the text says of who typed it, in order. text: own words only, quotations marked."""
    found: list[Statement] = []
    for sentence, asks in _sentences(text):
        if not _IDLE.search(sentence):
            found += _of_sentence(sentence, asks)
    return found


def _sentences(text: str) -> list[tuple[str, bool]]:
    """Return the sentences without their ends, and whether each is a question."""
    out, at = [], 0
    for end in _END.finditer(text):
        out.append((text[at : end.start()].strip(), "?" in (end[1] or "")))
        at = end.end()
    out.append((text[at:].strip(), False))
    return [(sentence, asks) for sentence, asks in out if sentence]


def _of_sentence(sentence: str, asks: bool) -> list[Statement]:
    bare = _LEAD.sub("", sentence).strip()
    if (told := _REMEMBER.match(bare)) and not asks and not _ONCE.search(bare):
        inner = told["what"].rstrip(" .!,")
        return [replace(_stated(inner) or Statement(text=inner), text=inner)] if len(inner) > 6 else []
    clauses = [clause for clause in _CLAUSE.split(bare) if clause.strip()]
    found = []
    for number, clause in enumerate(clauses):
        clause = _TRAILING.sub("", _LEAD.sub("", clause)).strip(" ,.!:")
        asked = asks and number == len(clauses) - 1
        if asked and not re.match(r"(?:can|could) you (?:please )?call me ", clause, re.IGNORECASE):
            continue
        if (statement := _stated(clause)) is not None:
            found.append(statement)
    return found


def _stated(clause: str) -> Statement | None:
    if ended := first(_ENDED, clause, clause):
        return ended
    if _is_standing(clause):
        return Statement(text=clause)
    if _QUESTION.match(clause) and not re.match(r"(?:can|could) you (?:please )?call me ", clause, re.IGNORECASE):
        return None
    if (found := first(_RULES, clause, clause)) and not _ONCE.search(clause):
        if not found.slot and (years := _YEARS.search(clause)):
            slot = f"{clause[: years.start()]}#{clause[years.end() :]}".casefold().strip(" .")
            return replace(found, slot=slot, value=years[0].casefold())
        return replace(found, past=bool(_PAST.search(clause)))
    if _DUE.search(clause) or _AHEAD.match(clause):
        return Statement(text=clause, kind=Kind.EPISODE)
    if _BEHIND.match(clause):
        return Statement(text=clause, kind=Kind.EPISODE, past=True)
    return None


def _is_standing(clause: str) -> bool:
    if (
        _ONCE.search(clause)
        or not _IMPERATIVE.search(_FROM_NOW.sub("", clause, count=1).lstrip(" ,"))
        or _QUESTION.match(clause)
    ):
        return False
    return bool(_ALWAYS.match(clause) or (_FROM_NOW.search(clause) and len(clause.split()) > 3))
