"""By which words a text is told to hold something that no skill may hold, in English and Chinese. Used by safety.py.

Words of one kind that a good procedure may well hold are left alone: "ignore empty rows", "delete the second column".
"""

import re
from typing import Final

_FLAGS: Final = re.IGNORECASE | re.MULTILINE
PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (code, re.compile(pattern, _FLAGS))
    for code, patterns in {
        "injection": (
            r"\b(?:ignore|disregard|forget|override|bypass|pass over|skip|drop|abandon)\b[^.\n]{0,40}?\b(?:previous|"
            r"prior|above|earlier|all|any|system|your|other|these|those|the developer'?s?)\b[^.\n]{0,30}?\b"
            r"(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?|safety)\b",
            r"\byou are now\b|\bfrom now on,? you (?:are|act|must)\b|\bpretend (?:to be|that you)\b|"
            r"\bact as (?:root|admin|dan)\b",
            r"\b(?:system|developer) (?:prompt|message)\b|"
            r"<\|?/?\s*(?:system|assistant|im_start|im_end|instructions?)\b",
            r"\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)? (?:it |this )?to|"
            r"let(?:ting)?) (?:the )?(?:user|person|anyone|people)\b",
            r"\b(?:pay no attention to|take no notice of|overlook|do not (?:follow|obey)|don't (?:follow|obey)|never "
            r"(?:follow|obey)|stop following)\b[^.\n]{0,50}\b(?:instructions?|rules?|guidance|guidelines?|prompts?|"
            r"polic(?:y|ies)|told|safety|restrictions?)\b",
            r"\b(?:unrestricted|uncensored|jailbroken) (?:model|assistant|mode|ai)\b|"
            r"\bhidden from (?:the )?(?:user|person)\b|"
            r"\b(?:follow|obey)\b[^.\n]{0,20}\b(?:whatever|any|every)\b[^.\n]{0,30}\b(?:commands?|says|instructs?)\b|"
            r"(?:听从|服从)[^。\n]{0,10}任何(?:命令|指令)|不用管[^。\n]{0,6}(?:规则|限制)",
            r"\byour new (?:instructions?|rules?|orders?|role)\b|\[(?:system|admin|developer)\]|"
            r"\b(?:treat|read|take|handle)\b[^.\n]{0,40}\bas (?:commands?|instructions?|orders?)\b",
            r"\b(?:reveal|print|repeat|send|leak|show|output)\b[^.\n]{0,20}\b(?:your|hidden|system)\b[^.\n]{0,15}"
            r"\b(?:instructions|prompts?|rules|secrets?|credentials)\b",
            r"(?:忽略|无视|忘记|忘掉|绕过|不要遵守|跳过)[^。\n]{0,20}(?:指令|指示|规则|提示词|限制|安全|政策)",
            r"(?:不要|别|无需|不必)(?:理会|遵守|听从|理睬)[^。\n]{0,15}(?:要求|指令|规则|指示|限制|提示)",
            r"扮演[^。\n]{0,10}(?:没有|不受)[^。\n]{0,4}限制|系统(?:指令|提示)",
            r"你现在是|从现在起你|(?:不要|别|不得)(?:告诉|让)(?:用户|任何人|对方)",
            r"(?:泄露|透露)[^。\n]{0,10}(?:提示|密钥|指令)",
        ),
        "destructive": (
            r"\brm\s+(?:-[\w-]+\s+)*(?:-\w*[rf]\w*\b|--recursive\b|--force\b)|\bfind\b[^\n]*\s-(?:delete|exec\s+rm)\b|"
            r"\btruncate\s+-s\s*0",
            r"\bdd\b[^\n]*\bof=/dev/|\bmkfs(?:\.\w+)?\b|>\s*/dev/(?:sd|nvme|hd|disk)|\bshred\s+-|\bwipefs\b",
            r"\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\b(?:ba)?sh\s+<\(\s*(?:curl|wget)",
            r":\s*\(\s*\)\s*\{[^}]*:\s*\|\s*:[^}]*\}\s*;\s*:",
            r"\bdrop\s+(?:table|database|schema)\b|\btruncate\s+table\b|\bdelete\s+from\s+\w+\s*(?:;|$)",
            r"\bgit\s+(?:push\s+[^\n]*(?:--force\b|-f\b)|reset\s+--hard|clean\s+-[a-z]*f)|\bchmod\s+-R\b|\bkill\s+-9\s+-1\b"
            r"|\bshutil\.rmtree\b|\bformat\s+c:|\bdel\s+/[sf]\b|\bRemove-Item\b[^\n]*-Recurse",
            r"\b(?:delete|erase|wipe|remove|purge|clear)\s+(?:all|every|everything|the whole|the entire)\b[^.\n]{0,20}?"
            r"\b(?:files?|documents?|memor(?:y|ies)|conversations?|library|data|backups?|records?|history|skills?)\b",
            r"\b(?:empty|destroy|wipe|erase)\s+(?:the|this|their|your)\s+(?:whole |entire )?(?:library|database|memory|"
            r"memories|documents?|files?|archive|history|skills?)\b",
            r"\boverwrite (?:all|every)\b[^.\n]{0,20}\b(?:files?|documents?|backups?|data)\b|\bmv\b[^\n]*\s/dev/null\b|"
            r"把(?:所有|全部|整个)[^。\n]{0,10}(?:删|清空|抹)",
            r"(?:删除|清空|抹掉|销毁)(?:掉)?(?:整个|这个|该)?[^。\n]{0,4}(?:资料库|文件库|数据库|记忆|对话记录|历史)",
            r"(?:删除|清空|抹掉|销毁)(?:掉)?(?:所有|全部|整个)[^。\n]{0,10}(?:文件|文档|记忆|对话|资料|数据|备份|记录|技能)",
        ),
        "escape": (
            r"(?:^|[\s\"'`(=])(?:\.\./){1,}|(?:\.\.[/\\]){2}",
            r"/etc/(?:passwd|shadow|sudoers|ssh|hosts)\b|/proc/(?:self|\d+)|/root(?:/|\b)|/var/run/|/dev/(?:mem|kmem)\b",
            r"~?/\.(?:ssh|aws|gnupg|kube|docker|netrc|bash_history|config/gcloud)\b|\bid_(?:rsa|ed25519|ecdsa)\b|"
            r"\bauthorized_keys\b",
            r"(?:^|[\s\"'`(=])/(?:home|Users|var|usr|opt|srv|mnt|boot|sys|etc)/\S",
            r"\b[A-Z]:\\(?:Windows|Users)\\|%(?:appdata|userprofile)%",
        ),
        "host": (
            r"\b(?:https?|ftps?|wss?|ssh|sftp|smb|file|data)://?[^\s)>\"'`]*[\w]",
            r"\b(?:curl|wget|nc|ncat|telnet|scp|rsync|ssh)\s+(?:-[\w-]+\s+)*[\w.@-]+\.[a-z]{2,}\b",
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?",
            r"\bwww\.[\w-]+\.[a-z]{2,}|(?<![@\w.])(?:[a-z0-9-]+\.)+(?:com|net|org|io|dev|xyz|app|ai|ru|top)\b(?!\.\w)",
            r"(?:发送|上传|转发)[^。\n]{0,20}(?:到|至)\s*(?:[\w-]+\.)+[a-z]{2,}",
        ),
        "permission": (
            r"\bwithout (?:asking (?:for\b|the (?:person|user)|anyone|anybody)|(?:any |further |prior )?(?:approval|"
            r"confirmation|permission|consent)\b)",
            r"\b(?:disable|turn off|switch off|deactivate|circumvent|escape)\b[^.\n]{0,30}\b(?:approvals?|"
            r"confirmations?|safety|sandbox|limits?|guards?|permissions?|security|logging|audit)\b",
            r"\b(?:grant|give|allow)\b[^.\n]{0,20}\b(?:yourself|the assistant|itself|all|full|root|admin)\b[^.\n]{0,20}"
            r"\b(?:access|permissions?|rights|privileges|tools)\b",
            r"\bsudo\b|\bas root\b|\bchmod\s+(?:-\w+\s+)?(?:0?777|\+s|u\+s)\b|\ballowed-tools\s*:|\bauto-?approve\b|"
            r"--no-verify\b|--dangerously\S*|--privileged\b|\bunrestricted (?:access|network|mode)\b",
            r"\b(?:approve|confirm|allow|accept)\b[^.\n]{0,30}\bby yourself\b|"
            r"\bas (?:an? )?(?:administrator|admin|superuser)\b",
            r"\b(?:skip|bypass|avoid|omit|(?:never|do not|don't) (?:ask|wait) for)\b[^.\n]{0,20}\b(?:approvals?|"
            r"confirmations?|permissions?|consent)\b",
            r"\bturn (?:the |all )?(?:approvals?|sandbox|safety|limits?|logging|confirmations?|guards?) off\b",
            r"(?:跳过|省略)[^。\n]{0,6}(?:确认|审批|批准|许可)",
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
            r"(?-i:\b[A-Z][a-z]+ (?:lives in|was born|is married|is allergic)\b)",
            r"(?:^|[\s\"'.:>-])i(?: am|'m) (?:called|named|allergic|married|from|a |an )|"
            r"\bi (?:live|work) (?:in|at|for|as)\b|\bcall me \w+",
            r"(?:我|用户|他|她)(?:的名字)?(?:叫|名叫|姓|是叫)|(?<![问知])(?:我|用户|他|她)(?:住在|生于|出生于|"
            r"在[^。\n]{1,10}工作|(?:喜欢|讨厌|偏爱)(?!哪|什么|怎|多|何)|对[^。\n]{1,8}过敏)",
            r"(?:用户|我)的(?:名字|生日|地址|电话|邮箱|妻子|丈夫|老板|工资|年龄|女儿|儿子)(?:是|为|：)",
        ),
    }.items()
    for pattern in patterns
)  # fmt: skip
