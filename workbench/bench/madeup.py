"""Made-up conversations with tools, in English and Chinese: the same for the same seed.

A person works through the papers of a building project. Each exchange has one to three rounds of tools; results are
search hits, pages and tables, from some 80 to some 3,000 tokens, most of them short.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Final

from agents.runtime.model import ToolSpec
from workbench.bench.scripts import Call, Exchange, Step

THINGS: Final = (
    "the second cold store", "the pump room", "the roof survey", "the tender of March", "the insurance file",
    "the delivery schedule", "the ventilation plan", "the fire inspection", "the lease", "the soil report",
    "the wiring diagram", "the payroll table", "the compressor log", "the loading bay", "the water meter",
)  # fmt: skip
ABOUT: Final = (
    "costs more than was planned", "was moved to the autumn", "has to be checked again", "was approved by the board",
    "depends on the new contract", "was measured twice with different results", "is missing a signature",
    "loses nine percent a year", "was paid in two parts", "needs a permit from the town", "is late by three weeks",
)  # fmt: skip
THINGS_CHINESE: Final = (
    "第二冷库", "泵房", "屋顶检查", "三月的招标", "保险档案", "交货计划", "通风方案", "消防验收", "租约", "土壤报告",
    "电路图", "工资表", "压缩机日志", "装卸平台", "水表",
)  # fmt: skip
ABOUT_CHINESE: Final = (
    "比原计划的费用高", "推迟到秋天", "需要重新检查", "已由董事会批准", "取决于新合同", "两次测量结果不同",
    "缺少一个签名", "每年损失百分之九", "分两次付款", "需要市里的许可", "晚了三个星期",
)  # fmt: skip
TOOLS: Final = (
    ToolSpec(
        name="search_papers",
        description="Search the project's papers and return the passages that fit best.",
        parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    ),
    ToolSpec(
        name="read_page",
        description="Return one page of a paper as text.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string"}, "page": {"type": "integer"}},
            "required": ["name", "page"],
        },
    ),
    ToolSpec(
        name="query_table",
        description="Return rows of a table as JSON.",
        parameters={"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]},
    ),
)


class Talk:
    """An endless conversation. chinese: share of the exchanges that are in Chinese. memory_every: the preloaded
    memory gains a fact every so many exchanges, as facts are learned; 0 = no memory."""

    def __init__(self, seed: int, *, chinese: float = 0.3, memory_every: int = 0) -> None:
        self.random = random.Random(seed)
        self.chinese, self.memory_every = chinese, memory_every
        self.facts: list[str] = []

    def exchanges(self, count: int) -> Iterator[Exchange]:
        for number in range(count):
            say = self.say_chinese if self.random.random() < self.chinese else self.say
            if self.memory_every and number % self.memory_every == 0:
                self.facts.append(f"- {say()}")
            yield self.exchange(say, number)

    def exchange(self, say: Callable[[], str], number: int) -> Exchange:
        rounds = self.random.choices((1, 2, 3), weights=(5, 3, 2))[0]
        steps = [
            Step(
                text=say() if self.random.random() < 0.3 else "",
                calls=tuple(self.call(say) for _ in range(2 if self.random.random() < 0.2 else 1)),
            )
            for _ in range(rounds)
        ]
        answer = " ".join(say() for _ in range(self.random.randint(2, 9)))
        said = f"{number + 1}. " + " ".join(say() for _ in range(self.random.randint(1, 3)))
        memory = "What is known of the person:\n" + "\n".join(self.facts) if self.facts else ""
        return Exchange(said=(said,), steps=(*steps, Step(text=answer)), memory=memory)

    def call(self, say: Callable[[], str]) -> Call:
        sentences = min(240, int(self.random.lognormvariate(3.0, 0.9)) + 5)
        kind = self.random.choices(("search_papers", "read_page", "query_table"), weights=(4, 3, 3))[0]
        if kind == "search_papers":
            result = "\n".join(f"papers/{self.random.randrange(900)}.pdf: {say()}" for _ in range(sentences))
            return Call(name=kind, arguments=json.dumps({"query": say()}, ensure_ascii=False), result=result)
        if kind == "read_page":
            wanted = {"name": f"{self.random.randrange(900)}.pdf", "page": self.random.randint(1, 40)}
            return Call(name=kind, arguments=json.dumps(wanted), result=" ".join(say() for _ in range(sentences)))
        rows = [self.row(say) for _ in range(max(2, sentences // 3))]
        result = json.dumps(rows, ensure_ascii=False)
        return Call(name=kind, arguments=json.dumps({"where": f"id > {self.random.randrange(9000)}"}), result=result)

    def row(self, say: Callable[[], str]) -> dict[str, object]:
        amount = round(self.random.uniform(10, 90_000), 2)
        return {"id": self.random.randrange(100_000), "amount": amount, "paid": amount < 45_000, "note": say()}

    def say(self) -> str:
        number, page = self.random.randrange(10_000), self.random.randrange(400)
        return f"Note {number}: {self.random.choice(THINGS)} {self.random.choice(ABOUT)}, see page {page}."

    def say_chinese(self) -> str:
        number, page = self.random.randrange(10_000), self.random.randrange(400)
        thing, about = self.random.choice(THINGS_CHINESE), self.random.choice(ABOUT_CHINESE)
        return f"第{number}条:{thing}{about},见第{page}页。"
