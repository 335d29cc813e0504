"""What must not stand in a skill: credentials, instructions against the house, commands that destroy, ways out.

Looked for in all that a model would read of it, with what cannot be seen made visible first. Each finding says what
kind of thing it is and in which line, never what stood there.
"""

import re
import unicodedata
from typing import Final

from agents.runtime.evolution.redacting import MARKS, Redactor

_CODES: Final[dict[str, str]] = {
    "secret": "it holds what looks like a credential",
    "personal": "it holds an address, a number or a name of somebody",
    "user_fact": "it says something about a person, which is for memory",
    "injection": "it tells the assistant to pass over its instructions",
    "invisible": "it holds characters that cannot be seen",
    "destructive": "it holds a command that destroys",
    "escape": "it names a place outside the workspace",
    "host": "it names another host",
    "permission": "it widens what the assistant may do",
}
_FLAGS: Final = re.IGNORECASE | re.MULTILINE
_PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (code, re.compile(pattern, _FLAGS))
    for code, patterns in {
        "injection": (
            r"\b(?:ignore|disregard|forget|override|bypass|pass over|skip)\b[^.\n]{0,40}?\b(?:previous|prior|above|"
            r"earlier|all|any|system|your|other|these|those|the developer'?s?)\b[^.\n]{0,30}?\b(?:instructions?|rules?|"
            r"prompts?|guidelines?|polic(?:y|ies)|restrictions?|safety)\b",
            r"\byou are now\b|\bfrom now on,? you (?:are|act|must)\b|\bpretend (?:to be|that you)\b|"
            r"\bact as (?:root|admin|dan)\b",
            r"\b(?:system|developer) (?:prompt|message)\b|"
            r"<\|?/?\s*(?:system|assistant|im_start|im_end|instructions?)\b",
            r"\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)? (?:it |this )?to|"
            r"let(?:ting)?) (?:the )?(?:user|person|anyone|people)\b",
            r"\b(?:reveal|print|repeat|send|leak)\b[^.\n]{0,30}\b(?:instructions|hidden|prompt|secrets?|credentials)\b",
            r"(?:忽略|无视|忘记|忘掉|绕过|不要遵守|跳过)[^。\n]{0,20}(?:指令|指示|规则|提示词|限制|安全|政策)",
            r"你现在是|从现在起你|系统提示词|(?:不要|别|不得)(?:告诉|让)(?:用户|任何人|对方)",
            r"(?:泄露|透露)[^。\n]{0,10}(?:提示|密钥|指令)",
        ),
        "destructive": (
            r"\brm\s+(?:-[a-z-]+\s+)*-[a-z]*(?:r[a-z]*f|f[a-z]*r)[a-z]*\b|\brm\s+(?:-\w+\s+)*(?:--recursive|--force)\b"
            r"|\brm\s+-r\s+(?:/|~|\*|\.)",
            r"\bdd\b[^\n]*\bof=/dev/|\bmkfs(?:\.\w+)?\b|>\s*/dev/(?:sd|nvme|hd|disk)|\bshred\s+-|\bwipefs\b",
            r"\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\b(?:ba)?sh\s+<\(\s*(?:curl|wget)",
            r":\s*\(\s*\)\s*\{[^}]*:\s*\|\s*:[^}]*\}\s*;\s*:",
            r"\bdrop\s+(?:table|database|schema)\b|\btruncate\s+table\b|\bdelete\s+from\s+\w+\s*(?:;|$)",
            r"\bgit\s+(?:push\s+[^\n]*(?:--force\b|-f\b)|reset\s+--hard|clean\s+-[a-z]*f)|\bchmod\s+-R\b|\bkill\s+-9\s+-1\b"
            r"|\bshutil\.rmtree\b|\bformat\s+c:|\bdel\s+/[sf]\b|\bRemove-Item\b[^\n]*-Recurse",
            r"\b(?:delete|erase|wipe|remove|purge|clear)\s+(?:all|every|everything|the whole|the entire)\b[^.\n]{0,20}?"
            r"\b(?:files?|documents?|memor(?:y|ies)|conversations?|library|data|backups?|records?|history|skills?)\b",
            r"(?:删除|清空|抹掉|销毁)(?:掉)?(?:所有|全部|整个)[^。\n]{0,10}(?:文件|文档|记忆|对话|资料|数据|备份|记录|技能)",
        ),
        "escape": (
            r"(?:^|[\s\"'`(=])(?:\.\./){1,}|(?:\.\.[/\\]){2}",
            r"/etc/(?:passwd|shadow|sudoers|ssh|hosts)\b|/proc/(?:self|\d+)|/root(?:/|\b)|/var/run/|/dev/(?:mem|kmem)\b",
            r"~?/\.(?:ssh|aws|gnupg|kube|docker|netrc|bash_history|config/gcloud)\b|\bid_(?:rsa|ed25519|ecdsa)\b|"
            r"\bauthorized_keys\b",
            r"\b[A-Z]:\\(?:Windows|Users)\\|%(?:appdata|userprofile)%",
        ),
        "host": (
            r"\b(?:https?|ftps?|wss?|ssh|sftp|smb|file|data)://?[^\s)>\"'`]*[\w]",
            r"\b(?:curl|wget|nc|ncat|telnet|scp|rsync|ssh)\s+(?:-[\w-]+\s+)*[\w.@-]+\.[a-z]{2,}\b",
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?",
            r"\b(?:send|post|upload|forward|report|e-?mail)\b[^.\n]{0,50}?\bto\s+(?:[\w-]+\.)+"
            r"(?:com|net|org|io|dev|cn|ru|xyz|app|ai|co)\b",
            r"(?:发送|上传|转发)[^。\n]{0,20}(?:到|至)\s*(?:[\w-]+\.)+[a-z]{2,}",
        ),
        "permission": (
            r"\bwithout (?:asking|approval|confirmation|permission|consent|waiting)\b",
            r"\b(?:disable|turn off|switch off|deactivate|circumvent|escape)\b[^.\n]{0,30}\b(?:approvals?|"
            r"confirmations?|safety|sandbox|limits?|guards?|permissions?|security|logging|audit)\b",
            r"\b(?:grant|give|allow)\b[^.\n]{0,20}\b(?:yourself|the assistant|itself|all|full|root|admin)\b[^.\n]{0,20}"
            r"\b(?:access|permissions?|rights|privileges|tools)\b",
            r"\bsudo\b|\bas root\b|\bchmod\s+(?:-\w+\s+)?(?:0?777|\+s|u\+s)\b|\ballowed-tools\s*:|\bauto-?approve\b|"
            r"--no-verify\b|--dangerously\S*|--privileged\b|\bunrestricted (?:access|network|mode)\b",
            r"(?:无需|不用|不必|不经)(?:用户|本人|任何)?(?:确认|批准|同意|许可|询问)",
            r"(?:关闭|禁用|绕开|绕过)[^。\n]{0,10}(?:审批|确认|沙箱|限制|权限|审计|日志)",
            r"(?:授予|给予|赋予)[^。\n]{0,10}(?:全部|所有|管理员|最高)[^。\n]{0,6}权限",
        ),
        "user_fact": (
            r"\b(?:my|the (?:user|person)'s|(?:his|her|their)) (?:full )?(?:name|birthday|address|phone(?: number)?|"
            r"e-?mail|wife|husband|partner|daughter|son|boss|employer|salary|age|home|doctor|allerg(?:y|ies))\b"
            r"[^.\n]{0,10}\b(?:is|are|was)\b",
            # a statement, not a question such as "ask which format the person prefers"
            r"(?:^|[.:;!*-]\s+|\d\.\s)(?:remember that )?the (?:user|person) (?:is (?:called|named|a|an|from|allergic|"
            r"married|born|based)\b|lives|works (?:at|for|as|in)\b|was born|prefers|likes|loves|hates|dislikes|has "
            r"(?:a|an|two|three|\d+) (?:wife|husband|son|daughter|child|children|dog|cat|kids?)\b|drives|earns|speaks|"
            r"studied|owns|moved to)",
            r"(?:^|[\s\"'.:>-])i(?: am|'m) (?:called|named|allergic|married|from|a |an )|"
            r"\bi (?:live|work) (?:in|at|for|as)\b|\bcall me \w+",
            r"(?:我|用户|他|她)(?:的名字)?(?:叫|名叫|姓|是叫)|(?:我|用户|他|她)(?:住在|生于|出生于|在[^。\n]{1,10}工作|喜欢|"
            r"讨厌|偏爱|对[^。\n]{1,8}过敏)",
            r"(?:用户|我)的(?:名字|生日|地址|电话|邮箱|妻子|丈夫|老板|工资|年龄|女儿|儿子)(?:是|为|：)",
        ),
    }.items()
    for pattern in patterns
)  # fmt: skip


def findings(text: str, redactor: Redactor) -> tuple[tuple[str, str], ...]:
    """Return (code, words) of each kind of thing that was found, with the first line it stands in, from 1."""
    found: dict[str, int] = {}
    plain = unicodedata.normalize("NFKC", "".join(char for char in text if not _invisible(char)))
    lines, shown = plain.split("\n"), text.split("\n")
    for number, line in enumerate(shown, 1):
        if any(map(_invisible, line)):
            found.setdefault("invisible", number)
    clean = redactor.text(plain)
    if clean != plain:
        for number, line in enumerate(lines, 1):
            kept = redactor.text(line)
            if kept != line:
                found.setdefault("secret" if kept.count(MARKS[0]) > line.count(MARKS[0]) else "personal", number)
        if not {"secret", "personal"} & found.keys():
            found["secret"] = 1  # one that takes several lines
    if any(mark in plain for mark in MARKS):  # what was taken out on the way to the reviewer came back as a hole
        found.setdefault("personal", _line(plain, plain.index(next(mark for mark in MARKS if mark in plain))))
    for code, pattern in _PATTERNS:
        if code not in found and (match := pattern.search(plain)):
            found[code] = _line(plain, match.start())
    return tuple((code, f"{words} (line {found[code]})") for code, words in _CODES.items() if code in found)


def _invisible(char: str) -> bool:
    """Return whether nobody sees the character: no procedure needs one, and it hides words from this very search."""
    return (unicodedata.category(char) in ("Cf", "Cc", "Co", "Cn") and char not in "\n\t") or (
        char in "\u115f\u1160\u3164"
    )


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
