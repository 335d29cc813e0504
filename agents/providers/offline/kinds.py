"""What sort of thing a question asks for, and whether a text holds one: amounts, dates, durations, people."""

import re
from enum import StrEnum

from agents.providers.offline.terms import stem


class Kind(StrEnum):
    OFTEN = "often"
    DURATION = "duration"
    MONEY = "money"
    DATE = "date"
    TIME = "time"
    PLACE = "place"
    NUMBER = "number"
    PERSON = "person"


_ASKS = (  # the first that fits; the more special first
    (
        Kind.OFTEN,
        r"\bhow often\b|\bhow (?:many times|frequently)\b|多[久长]时?间?[^。？?]{0,8}一次"
        r"|几[天周月年][^。？?]{0,6}一次",
    ),
    (
        Kind.DURATION,
        r"\bhow long\b|\b(?:how many|number of) (?:\w+ ){0,2}(?:seconds|minutes|hours|days|weeks|months|years)\b"
        r"|多久|多长时间|多长(?![度宽])|[多几]少?个?(?:秒|分钟|小时|天|周|星期|月|年)(?!级|份)",
    ),
    (
        Kind.MONEY,
        r"\bhow (?:much|expensive)\b[^.?!]*\b(?:cost|charge|pay|paid|price|fee|fare|rent|money|sell|sold|earn"
        r"|spend|spent|worth)"
        r"|\bwhat\b[^.?!]*\b(?:cost|costs|charge|charges|price|fee|fare|salary|wage|sell for|sells for)\b"
        r"|多少钱|多贵|[价费金款额薪租资][^。？?]{0,4}多少|多少[^。？?]{0,3}[钱元费款金]|什么价",
    ),
    (Kind.DATE, r"\bwhen (?:did|was|were)\b|\b(?:which|what) (?:date|year)\b|哪[一]?[天年日]|何年|日期"),
    (
        Kind.TIME,
        r"\bwhen\b|\bwhat time\b|\b(?:which|what) (?:day|date|month|year|hour)\b|\bdeadline\b"
        r"|什么时[候间]|何[时日年月]|哪[一]?[天年月日]|几[点号月]|日期",
    ),
    (
        Kind.NUMBER,
        r"\bhow (?:much|many|big|large|high|tall|heavy|far|old|fast|deep|wide|strong|hot|cold)\b"
        r"|\bwhat (?:percentage|share|number|proportion)\b"
        r"|多少|多大|多高|多远|多重|多深|多宽|多快|几[个名位人台张份件倍次层页]|百分之几|比例",
    ),
    (Kind.PLACE, r"\bwhere\b|哪里|哪儿|什么地方|什么位置|在哪"),
    (Kind.PERSON, r"\bwho(?:m|se)?\b|谁|哪[一]?位|何人"),
)
_KINDS = [(kind, re.compile(words, re.IGNORECASE)) for kind, words in _ASKS]

_EN_NUMBER = (
    r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh"
    r"|nine)teen"
    r"|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?|half|several|(?:a |one )?(?:hundred"
    r"|thousand|million|dozen)"
    r"|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)"
)
_ZH_NUMBER = r"(?:\d[\d.,]*|[零〇一二两三四五六七八九十百千万亿半]+)\s?"
_UNIT = r"(?:seconds?|minutes?|mins?|hours?|days?|weeks?|months?|quarters?|years?|decades?)"
_MONTHS = (
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sep(?:tember)?"
    r"|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|winter"
    r"|midnight|noon|today|tomorrow)\b"
)
_NUMBERS = rf"\d|\b{_EN_NUMBER}\b|{_ZH_NUMBER}|[四三]分之"
_PARTS = r"per ?cent|%|％|[百千万]分之|[一二三四五六七八九]分之|折"
_MONEY = (
    rf"[$€£¥￥]\s?\d|{_EN_NUMBER}\s?(?:k |million |billion |m )?(?:eur|usd|gbp|chf|rmb|cny|dollars?|euros?|pounds?"
    rf"|pence|cents?|yuan|yen|won|francs?|crowns?|kron(?:a|or|er?)|rupees?|pesos?|kr)\b"
    rf"|{_ZH_NUMBER}(?:万|亿)?[余多]?(?:元|块|角|欧元|美元|英镑|日元|港币)|\b(?:free of charge|at no cost|free)\b"
    rf"|免费|{_PARTS}"
    # so many times another amount: three months' rent, 两个月租金
    rf"|{_EN_NUMBER} {_UNIT}['’]? (?:rent|salary|wages|pay|fees?|dues)\b"
    rf"|{_ZH_NUMBER}个?[周月季年]度?的?[\u3400-\u9fff]{{0,3}}[租资薪费金]"
)
_MONEY_COLUMN = (
    r"(?:[(（](?:eur|usd|gbp|rmb|[$€£¥]|[百千万]*元)[^)）]*[)）]|price|cost|fare|fee|价|费|金额|额)[^:;]*: ?\d"
)
_DURATION = (
    rf"{_EN_NUMBER}[\s-]{_UNIT}\b|{_ZH_NUMBER}(?:个)?(?:工作日|秒|分钟|小时|天|日|周|星期|月|季度|年)"
    rf"|\([^)]*{_UNIT}\)[^:;]*: ?\d"
    r"|[(（][^)）]*(?:天|小时|分钟|年|月)[)）][^:;]*: ?\d"
)
_DATE = rf"{_MONTHS}|\b(?:19|20)\d\d\b|\d{{4}}[-/.年]\d|{_ZH_NUMBER}[月日号]|[周星期]+[一二三四五六日天]"
_TIME = (
    rf"{_DATE}|\d{{1,2}}[:：]\d\d|\b(?:19|20)\d\d\b|\b\d{{1,2}} ?(?:am|pm|o'clock)\b|{_DURATION}|\b(?:daily|weekly"
    rf"|monthly|annually)\b"
    rf"|{_ZH_NUMBER}[月日号点时]|[周星期]+[一二三四五六日天]|每[天日周月年]|[上下]午|凌晨|当[天日]|随时"
)
_PERSON = r"[A-Z][\w'’-]+ (?:[a-z]{2,3} )?[A-Z]\w+|\b(?:Dr|Mr|Mrs|Ms|Prof)\b|[\u3400-\u9fff]"
_OFTEN = (
    rf"\b(?:every|each|once|twice|times|daily|weekly|monthly|yearly|annually|per|{_UNIT})\b|每|[一两二三]次"
    r"|\ba (?:day|week|month|year)\b"
)
_HOLDS = {
    Kind.OFTEN: re.compile(_OFTEN, re.IGNORECASE),
    Kind.DURATION: re.compile(_DURATION, re.IGNORECASE),
    Kind.MONEY: re.compile(f"{_MONEY}|{_MONEY_COLUMN}", re.IGNORECASE),
    Kind.DATE: re.compile(_DATE, re.IGNORECASE),
    Kind.PLACE: re.compile(r"[\w\u3400-\u9fff]"),
    Kind.TIME: re.compile(_TIME, re.IGNORECASE),
    Kind.NUMBER: re.compile(f"{_NUMBERS}|{_PARTS}", re.IGNORECASE),
    Kind.PERSON: re.compile(_PERSON),
}


def kind_of(question: str) -> Kind | None:
    """Return what the question asks for; None = a text of any sort answers it."""
    return next((kind for kind, asks in _KINDS if asks.search(question)), None)


def holds(text: str, kind: Kind | None) -> bool:
    """Return whether the text holds something of the kind."""
    return kind is None or bool(_HOLDS[kind].search(text))


_ATTRIBUTE = re.compile(
    r"\bwhat(?:'s|’s| is| are| was| were) (?:the )?(?P<of>[\w -]+?) (?:of|for|in|at|on)\b"
    r"|\b(?:what|which) (?P<which>\w+) (?!of\b)|(?P<wide>[\u3400-\u9fff]{2,4})[是为](?:多少|什么|几|谁|哪)"
    r"|的(?P<whose>[\u3400-\u9fff]{2,5}?)(?=[是有为在怎如多几谁哪什？?]|$)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow many (?:more |other |different )?(?P<latin>[a-z]+)"
    # behind 几 always stands a measure, behind 多少 also what is measured: 多少吨, 多少制冷剂
    r"|(?:几|多少(?=[个名位人户家台张份件倍次层页度条块只辆箱吨升米间套种项座艘棵根瓶把批笔段岁股斤亩]))"
    r"(?P<wide>[\u3400-\u9fff])",
    re.IGNORECASE,
)
_QUANTITY = re.compile(  # a column that counts what its row names
    r"(?:数[量目]|件数|总数|\b(?:quantity|qty|count|number|amount)\b(?: of \w+)?)[^:;]*: ?\d", re.IGNORECASE
)
_NO_MEASURE = "钱是的了吗呢以在"
_OF_ANY = "个名位人户家"  # one stands for the other


def attribute_of(question: str) -> str:
    """Return what is asked of something: "deposit" in "what is the deposit for the hall"; "" if it is not put so."""
    found = _ATTRIBUTE.search(question)
    return "" if found is None else next(filter(None, found.groups()), "")


def counts(question: str, text: str) -> bool:
    """Return whether the text has a number of what the question counts: "how many seats", "64 seats"."""
    asked = _COUNTED.search(question)
    if asked is None or (asked["wide"] and asked["wide"] in _NO_MEASURE):
        return True
    if _QUANTITY.search(text):
        return True
    if asked["wide"]:
        measure = f"[{_OF_ANY}]" if asked["wide"] in _OF_ANY else asked["wide"]
        return bool(re.search(rf"{_ZH_NUMBER}[余多]?{measure}|{measure}[^:;]*: ?\d", text))
    word = re.escape(stem(asked["latin"].lower()))
    number = rf"\b{_EN_NUMBER}(?:\W+\w+){{0,2}}?\W+{word}|\b{word}[^:;]*: ?\d"
    return bool(re.search(number, text, re.IGNORECASE))
