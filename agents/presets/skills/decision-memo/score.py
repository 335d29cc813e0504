"""Weigh options by criteria, say how firm the order is, and check the form of a memo. Needs quotes.py."""

import re

FORMS = (
    ("Decision", "Why now", "Options", "Comparison", "Risks", "What would change"),
    ("决定", "为何现在", "方案", "比较", "风险", "什么会改变"),
)
NOTHING = (
    r"(?i)do nothing|stay as|keep (?:the )?(?:current|things|what)|no change|status quo|维持现状|保持现状|不做|暂不"
)
WORDS = {
    "en": {
        "option": "Option",
        "sum": "Sum",
        "first": "**{}** leads **{}** by {} of {} points.",
        "tie": "{} are level.",
        "beaten": "**{}** is nowhere better than **{}** and somewhere worse: it can go.",
        "turns": "The order turns if `{}` weighs {}% instead of {}% (the others in proportion): then **{}** leads.",
        "firm": "No weight of one criterion alone turns the order.",
    },
    "zh": {
        "option": "方案",
        "sum": "总分",
        "first": "**{}** 领先 **{}** {} 分（满分 {}）。",
        "tie": "{} 得分相同。",
        "beaten": "**{}** 没有一项优于 **{}**，且至少一项更差：可以排除。",
        "turns": "如果 `{}` 的权重为 {}%（现为 {}%，其余按比例），顺序改变：**{}** 领先。",
        "firm": "只改变任何一项标准的权重，都不会改变顺序。",
    },
}


def sums(weights: dict[str, float], options: dict[str, dict[str, float]]) -> dict[str, float]:
    return {name: sum(weights[c] * marks[c] for c in weights) for name, marks in options.items()}


def leader(weights: dict[str, float], options: dict[str, dict[str, float]]) -> str:
    """Return the option with the highest sum; of level ones the first."""
    found = sums(weights, options)
    return max(options, key=lambda name: round(found[name], 9))


def shifted(weights: dict[str, float], name: str, share: float) -> dict[str, float]:
    """Return weights in which one has a given share and the others keep their proportions."""
    rest = 1 - weights[name]
    return {
        c: share if c == name else (w / rest if rest else 1 / (len(weights) - 1)) * (1 - share)
        for c, w in weights.items()
    }


def turning(weights: dict[str, float], options: dict[str, dict[str, float]], name: str) -> tuple[int, str] | None:
    """Return the share in percent nearest to the present one at which another option leads, and which option."""
    now = leader(weights, options)
    present = round(weights[name] * 100)
    for distance in range(1, 101):
        for share in (present - distance, present + distance):
            if 0 <= share <= 100:
                other = leader(shifted(weights, name, share / 100), options)
                if other != now:
                    return share, other
    return None


def score(weights: dict[str, float], options: dict[str, dict[str, float]], lang: str = "en", top: int = 5) -> str:
    """Return the comparison in Markdown. weights: by criterion, in any unit. options: marks by criterion, 0 to top."""
    words = WORDS["zh" if lang == "zh" else "en"]
    if len(options) < 2 or len(weights) < 2 or sum(weights.values()) <= 0 or min(weights.values()) < 0:
        raise ValueError("two options and two criteria at least, and weights that are not negative")
    for name, marks in options.items():
        wrong = [c for c in weights if c not in marks or not 0 <= marks[c] <= top]
        if wrong:
            raise ValueError(f"{name}: no mark from 0 to {top} for {', '.join(wrong)}")
    whole = sum(weights.values())
    shares = {c: w / whole for c, w in weights.items()}
    found = sums(shares, options)
    order = sorted(options, key=lambda name: -found[name])
    lines = [
        f"| {words['option']} | " + " | ".join(f"{c} ({w:.0%})" for c, w in shares.items()) + f" | {words['sum']} |"
    ]
    lines.append("|---|" + "---:|" * (len(shares) + 1))
    for name in order:
        lines.append(f"| {name} | " + " | ".join(f"{options[name][c]:g}" for c in shares) + f" | {found[name]:.2f} |")
    lines.append("")
    level = [name for name in order if round(found[order[0]] - found[name], 6) == 0]
    if len(level) > 1:
        lines.append("- " + words["tie"].format(", ".join(f"**{name}**" for name in level)))
        return "\n".join(lines)
    lines.append("- " + words["first"].format(order[0], order[1], f"{found[order[0]] - found[order[1]]:.2f}", top))
    for name in order[1:]:
        better = first([o for o in order if o != name and dominates(options[o], options[name], list(shares))])
        if better:
            lines.append("- " + words["beaten"].format(name, better))
    turns = [(c, turning(shares, options, c)) for c in shares]
    for criterion, turn in turns:
        if turn:
            lines.append("- " + words["turns"].format(criterion, turn[0], round(shares[criterion] * 100), turn[1]))
    if not any(turn for _, turn in turns):
        lines.append("- " + words["firm"])
    return "\n".join(lines)


def dominates(one: dict[str, float], other: dict[str, float], criteria: list[str]) -> bool:
    return all(one[c] >= other[c] for c in criteria) and any(one[c] > other[c] for c in criteria)


def check(memo: str, source: str = "", lang: str = "en") -> str:
    """Return the problems of a memo: sections, options, risks, length, and (with a source) its figures."""
    zh = lang == "zh"
    problems = [f"缺少部分：{name}" if zh else f"section missing: {name}" for name in missing_sections(memo, FORMS)]
    parts = sections(memo)
    headings = [heading for heading in parts if heading]
    if headings and not re.search(r"(?i)decision|决定", headings[0]):
        problems.append("第一部分不是决定" if zh else "the decision does not come first")
    options = first([text for h, text in parts.items() if re.search(r"(?i)^options|^方案", h)])
    listed = re.findall(r"(?m)^\s*(?:[-*]|\d+[.)、])\s+\S", options) or table_rows(options)
    if len(listed) < 2:
        problems.append("方案少于两个" if zh else "fewer than two options")
    if not re.search(NOTHING, options):
        problems.append("没有“维持现状”的方案" if zh else "no option of doing nothing")
    risks = first([text for h, text in parts.items() if re.search(r"(?i)^risks|^风险", h)])
    for row in table_rows(risks):
        if len(row) < 3 or not row[2]:
            problems.append(f"风险没有应对：{row[0]}" if zh else f"risk without an answer: {row[0]}")
    size = len(re.findall(r"[A-Za-z]+", memo)) + len(re.findall(r"[\u4e00-\u9fff]", memo)) // 2
    if size > 900:
        problems.append("超过两页" if zh else "longer than two pages")
    if source:
        problems += [
            f"材料中没有这个数字：{n}" if zh else f"figure not in the material: {n}"
            for n in not_in_source(memo, source)
        ]
        problems += [
            f"引文与材料不符：“{q}”" if zh else f"not word for word in the material: “{q}”"
            for q in not_word_for_word(memo, source)
        ]
    return problem_list(problems, lang)
