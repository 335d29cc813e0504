"""Texts of four scripts to count tokens in, written for this: English and Chinese prose, code, JSON results.

Each script has eight texts or more that differ in subject and manner, so that some may be learnt from and others asked.
"""

import json
import random
from typing import Any, Final

ENGLISH: Final = (
    """The cold store was built in 1974, when the valley still sent most of its apples to the coast by rail. Two of its
four chambers have been relined since, but the third was never touched, and on warm afternoons you can watch the frost
line creep down the north wall. Nobody who works there is surprised by the bills. What surprised the surveyor was how
little it would take: a new door seal, a sheet of insulation above the corridor, and somebody to look at the defrost
timer, which has been set to a winter schedule for at least six years. She wrote as much in her report, and added, in
pencil, that the fan bearings would not see another harvest.""",
    """Dear Priya,

Thanks for sending the revised budget. I went through it line by line yesterday evening and I only have three
questions. First, the travel costs for the second workshop look low; did you include the two speakers from Lisbon?
Second, we agreed in April that printing would move to the library's account, but it is still listed under ours. Third,
and this is the one that worries me, the contingency has shrunk to four percent. The board will ask about it, and I'd
rather we had an answer before the meeting than during it.

Could we talk on Thursday, any time after ten? If not, just write back and I'll pass the numbers on as they are.

Best wishes,
Tom""",
    """Memory is not a recording. Each time we call up an event we put it together again from fragments, and what we put
together depends on what we know now, on whom we are talking to, and on what we would like to have happened. Experiments
have shown this for more than ninety years. Participants who read an unfamiliar folk tale and retold it weeks later left
out what made no sense to them, replaced strange objects by familiar ones, and were confident throughout. Confidence, it
turns out, says very little about accuracy. The practical consequence is uncomfortable: a witness who has told a story
ten times is not ten times as reliable, and an organisation that relies on recollection instead of notes will slowly
come to believe its own summaries.""",
    """To restart the service, log in to the gateway and stop the two workers first; they hold locks on the queue, and
the scheduler refuses to start while a lock is older than itself. Wait until the dashboard shows zero active jobs. Then
restart the scheduler, check its log for the words "ready to accept", and bring the workers back one at a time. If the
second worker reports a version mismatch, it has been upgraded without the first: do not force it. Roll it back, start
it again, and open a ticket with the exact message. Never delete the state directory. It takes eleven hours to rebuild,
and during that time no invoices go out.""",
    """"You said it was a shortcut," said Marta, and sat down on the wet stone. The path had stopped being a path some
time ago. Below them the lake lay flat and grey, and on the far side, very small, somebody was lighting a lamp in the
hut they had left that morning. Anselm turned the map around, then around again. "It was," he said. "It was a shortcut
when my father drew it." She laughed at that, not kindly, and took the last of the bread out of her coat. They ate
without speaking. When the wind dropped they could hear water, not far away, and under the sound of the water,
unmistakably, bells.""",
    """The committee considered three options for the pedestrian bridge. Option A keeps the existing abutments and
replaces the deck; it is the cheapest, but limits the load to maintenance vehicles below 3.5 tonnes. Option B moves the
crossing forty metres upstream, where the bank is higher, and avoids the flood plain altogether. Option C is a
cable-stayed structure that several residents had asked for. Members noted that the environmental assessment for B
would take at least nine months, and that the subsidy expires at the end of the next financial year. After some
discussion it was resolved, by seven votes to two, to pursue Option A and to commission a feasibility study of B in
parallel.""",
    """Photosynthesis in C4 plants separates the initial fixation of carbon dioxide from the Calvin cycle. Mesophyll
cells capture the gas with phosphoenolpyruvate carboxylase, an enzyme that ignores oxygen, and the resulting
four-carbon acid diffuses into bundle-sheath cells, where it is decarboxylated. The concentration of carbon dioxide
around the second enzyme rises roughly tenfold, which suppresses photorespiration. The price is two additional
molecules of adenosine triphosphate per fixed carbon. In hot, bright environments the bargain pays; in temperate shade
it does not, and there the older pathway still dominates.""",
    """Release notes. Exports no longer time out when a workspace holds more than fifty thousand items. Dates in the
activity feed follow the reader's time zone rather than the author's. We fixed an error that made the search box lose
its focus after the second keystroke, and one that hid the keyboard shortcuts on narrow screens. Attachments can be
renamed in place. Administrators may now require a second factor for everybody, for guests only, or for nobody, and the
audit log says who changed that and when. Known issue: pictures in the old format are shown without their captions until
the page has been reloaded once.""",
)

CHINESE: Final = (
    """这座冷库建于一九七四年，那时山谷里的苹果大多靠铁路运往沿海。四个库房里有两个后来重做了内衬，第三个却从来没有动过，
天热的下午，可以看见北墙上的霜线慢慢往下退。在那里上班的人对电费单并不觉得奇怪。让检查员吃惊的是，要改善其实花不了多少钱：
换一条门封，在走廊上方加一层保温板，再找个人看看除霜定时器，它至少六年来一直停留在冬季的设置上。她把这些写进了报告，
还用铅笔补了一句：风机轴承撑不过下一个收获季。""",
    """李老师，您好！上周您发来的预算我昨晚逐行看过了，只有三个问题想请教。第一，第二次研讨会的差旅费似乎偏低，
是不是没有把从里斯本来的两位讲者算进去？第二，四月份我们说好印刷费改由图书馆承担，可是表里还列在我们名下。第三，也是我最担心的，
预备金只剩百分之四了。理事会一定会问，与其在会上临时解释，不如事先准备好说法。星期四上午十点以后您方便通个电话吗？
如果不方便，回信告诉我一声，我就把数字原样交上去。谢谢，祝工作顺利。""",
    """记忆并不是录音。每次回想一件事，我们都是用碎片重新把它拼起来，而拼成什么样子，取决于我们现在知道什么、在跟谁说话，
以及希望当时发生过什么。九十多年来的实验一再说明了这一点：受试者读了一个陌生的民间故事，几个星期以后复述，总会漏掉自己觉得没有道理的地方，
把奇怪的东西换成熟悉的东西，而且始终信心十足。可见信心与准确几乎没有关系。由此得出的结论让人不太舒服：讲过十遍的证词并不比讲过一遍的可靠，
一个只靠回忆而不做记录的机构，迟早会相信自己编出来的摘要。""",
    """重启服务之前，请先登录网关，停掉两个工作进程，因为它们占着队列的锁，只要锁的时间早于调度器自身，调度器就拒绝启动。
等监控面板显示没有正在执行的任务之后，再重启调度器，在日志里确认出现“准备就绪”字样，然后把工作进程逐个拉起来。
如果第二个进程提示版本不一致，说明有人只升级了它而没有升级第一个：不要强行启动，先回退版本，再重新启动，并把完整的报错信息写进工单。
千万不要删除状态目录，重建它需要十一个小时，这期间一张发票也开不出去。""",
    """“你不是说这是近路吗？”马小兰说着，一屁股坐在湿漉漉的石头上。路早就不成其为路了。湖面在脚下铺开，又平又灰，对岸很小很小的一点，
有人正在他们早上离开的小屋里点灯。安生把地图转了一圈，又转了一圈。“本来是的，”他说，“我爹画这张图的时候，还真是近路。”她笑了，
笑得不怎么客气，从大衣里掏出最后一块馒头。两个人默默地吃。风停下来的时候，听得见不远处有水声，而在水声底下，分明还有铃铛在响。""",
    """委员会就人行桥讨论了三个方案。方案一保留原有桥台，只更换桥面，造价最低，但限行三点五吨以下的养护车辆。方案二把桥址上移四十米，
那里岸坡较高，可以完全避开行洪区。方案三是部分居民提出的斜拉桥。委员们指出，方案二的环境影响评价至少需要九个月，而补助资金到下一财政年度末即告失效。
经过讨论，会议以七票赞成、两票反对通过决议：先行实施方案一，同时委托有关单位对方案二开展可行性研究，并于明年三月底以前提交报告。""",
    """碳四植物把二氧化碳的初次固定与卡尔文循环分开进行。叶肉细胞利用磷酸烯醇式丙酮酸羧化酶捕获气体，这种酶不与氧发生反应，
生成的四碳酸扩散到维管束鞘细胞，在那里脱羧。第二种酶周围的二氧化碳浓度因此升高约十倍，光呼吸受到抑制，代价是每固定一个碳要多消耗两分子三磷酸腺苷。
在炎热而光照充足的环境里，这笔买卖是划算的；在温带的林荫下则不然，古老的途径至今仍占优势。""",
    """更新说明：工作区超过五万条内容时，导出不再超时；动态里的日期按照读者所在的时区显示，而不是作者的时区。修复了搜索框在输入第二个字符后失去焦点的问题，
以及窄屏幕上看不到快捷键的问题。附件可以直接改名。管理员现在可以要求所有人、仅限访客或者不要求任何人使用两步验证，审计日志会记下是谁在什么时候改的。
已知问题：旧格式的图片在页面重新加载一次之前不显示标题。如有疑问，请联系客服，我们会在两个工作日内答复。""",
    """上个月我们走访了六个村的合作社。最大的一家有两百多户社员，机器是共用的，账目每个季度贴在门口，谁都可以看。最小的一家只有十一户，
连会计都没有，社长把收据装在饼干盒里，问起哪一笔他都说得出来龙去脉。规模大小似乎不是关键，关键在于大家相不相信数字。相信了，
分歧就只是分歧；不相信，再小的事情也会变成面子问题。我们建议先帮助那些想把账算清楚的人，其余的可以慢慢来。""",
    """租赁合同第八条规定，承租人应当于每月五日以前支付当月租金，逾期超过十五日的，出租人有权解除合同，并要求承租人按照未付金额的百分之二支付违约金。
房屋及其附属设施的自然损耗由出租人负责维修，因承租人使用不当造成的损坏由承租人承担。未经书面同意，承租人不得转租、分租或者改变房屋用途。
合同期满前三十日内，任何一方均可书面提出续签，同等条件下承租人享有优先权。""",
    """红烧茄子想做得好吃，有两个地方不能偷懒。一是茄子切好以后要撒盐腌十分钟，再把水挤干，这样炸的时候才不会吸太多油；二是料汁要提前调好，
两勺生抽、一勺醋、半勺糖，加一点淀粉和清水搅匀。锅烧热，先下蒜末和姜末，闻到香味就放茄子，翻两下倒料汁，等汤变得又浓又亮就关火。
喜欢吃辣的可以加几段干辣椒，出锅以前撒一把葱花。""",
    """这次升级主要解决三个问题。首先是查询慢：原来每打开一个页面都要向数据库发送几十条语句，现在合并成四条，平均响应时间从一点二秒降到零点三秒。
其次是缓存不一致：不同服务器各存一份数据，更新以后要等五分钟才能看到，现在通过消息通知立即失效。最后是日志太多，磁盘每周都要清理一次，
现在只保留错误和统计信息。升级过程中用户不会感觉到中断，如果出现异常，可以在十分钟内回到旧版本。""",
    """小时候住在外婆家，院子里有一棵很老的枣树。每到秋天，外婆就搬来梯子，让舅舅上去打枣，我和表妹在下面拿着床单接。枣子落下来打在头上，
又疼又好笑。外婆总是把最红的挑出来，一半送给邻居，一半晒干了留着过年做年糕。后来院子拆了，盖起了楼房，枣树也不知道去了哪里。
前几天路过那条街，忽然闻到一阵甜味，原来是路边有人在卖枣，我买了两斤，吃起来却总觉得少了点什么。""",
    """问：报销的时候发票丢了怎么办？答：可以请开票单位提供存根联复印件并加盖公章，同时由本人写一份情况说明，经部门负责人签字后一并提交财务。
问：出差期间的市内交通费怎么算？答：按照实际天数每人每天补贴八十元，不再另外凭票报销；使用公司车辆的不享受补贴。
问：多久可以到账？答：材料齐全的情况下，一般五个工作日，遇到月底结账会顺延两到三天。其他问题请拨打内线电话咨询。""",
    """研究人员在三个城市随机抽取了一千二百名中学生，连续两年记录他们的睡眠时间和学习成绩。结果显示，每天睡眠不足七小时的学生，数学成绩平均低四分，
而语文成绩没有明显差别。控制了家庭收入和父母学历以后，这种关系仍然存在，但是变得比较弱。作者提醒，这是一项观察性研究，不能证明睡得少就会考得差，
也有可能是功课吃力的学生不得不熬夜。他们建议进一步开展实验，比如把上课时间推迟半个小时，再看看变化。""",
    """各位同事：根据公司安排，办公楼将于下周六上午八点至下午六点停电检修，届时电梯、空调和网络均无法使用，请大家提前关闭电脑和其他电器，
冰箱里的食物也请带走。需要加班的同事可以到二号楼三层的临时工位，那里的网络不受影响，座位有限，请在星期四下班以前向行政部登记。
检修结束以后，值班人员会逐层检查，如发现设备无法启动，请拨打服务热线，不要自行拆开机箱。给您带来不便，敬请谅解。""",
)

CODE: Final = (
    '''"""Read meters over a serial line and keep the last value of each."""

import struct
from collections import deque
from dataclasses import dataclass, field


class MeterError(Exception):
    """The meter answered with something that is not a frame."""


@dataclass
class Meter:
    address: int
    unit: str = "kWh"
    history: deque[float] = field(default_factory=lambda: deque(maxlen=96))

    def accept(self, frame: bytes) -> float:
        if len(frame) < 8 or frame[0] != 0x68:
            raise MeterError(f"bad frame from {self.address:#04x}: {frame[:4].hex()}")
        size, status, raw = struct.unpack_from("<BBI", frame, 1)
        if status & 0x80:
            raise MeterError("meter reports a fault")
        value = raw / 10 ** (status & 0x07)
        self.history.append(value)
        return value

    @property
    def average(self) -> float | None:
        return sum(self.history) / len(self.history) if self.history else None
''',
    """import { openDatabase, keyRange } from "./storage.js";

const PAGE_SIZE = 50;

/** Load one page of notes, newest first. */
export async function loadNotes(userId, { before = Infinity, tag = null } = {}) {
  const db = await openDatabase(`notes-${userId}`);
  const notes = [];
  let cursor = await db.transaction("notes").store.index("changedAt").openCursor(keyRange(before), "prev");
  while (cursor && notes.length < PAGE_SIZE) {
    if (tag === null || cursor.value.tags.includes(tag)) {
      notes.push({ ...cursor.value, id: cursor.primaryKey });
    }
    cursor = await cursor.continue();
  }
  return { notes, next: notes.length === PAGE_SIZE ? notes.at(-1).changedAt : undefined };
}

export function debounce(callback, delayMs) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), delayMs);
  };
}
""",
    """from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from bookings.forms import BookingForm
from bookings.models import Booking, Room


def room_list(request: HttpRequest) -> HttpResponse:
    rooms = Room.objects.filter(archived=False).select_related("building").order_by("building__name", "number")
    query = request.GET.get("q", "").strip()
    if query:
        rooms = rooms.filter(name__icontains=query)
    page = Paginator(rooms, per_page=25).get_page(request.GET.get("page"))
    return render(request, "bookings/room_list.html", {"page": page, "query": query})


@require_http_methods(["GET", "POST"])
def book(request: HttpRequest, room_id: int) -> HttpResponse:
    room = get_object_or_404(Room, pk=room_id)
    if room.archived and not request.user.is_staff:
        raise Http404("This room can no longer be booked.")
    form = BookingForm(request.POST or None, instance=Booking(room=room, owner=request.user))
    if request.method == "POST" and form.is_valid():
        booking = form.save()
        return redirect("bookings:detail", pk=booking.pk)
    return render(request, "bookings/book.html", {"form": form, "room": room}, status=422 if form.errors else 200)
""",
    """#!/usr/bin/env python3
import argparse
import csv
import sys
from pathlib import Path


def moving_average(values, width):
    total = 0.0
    for i, value in enumerate(values):
        total += value
        if i >= width:
            total -= values[i - width]
        yield total / min(i + 1, width)


def main(argv=None):
    parser = argparse.ArgumentParser(description="Smooth the second column of CSV files.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--width", type=int, default=7, help="number of rows (default: %(default)s)")
    args = parser.parse_args(argv)
    writer = csv.writer(sys.stdout)
    for path in args.files:
        with path.open(newline="") as handle:
            rows = [row for row in csv.reader(handle) if len(row) > 1 and not row[0].startswith("#")]
        smooth = moving_average([float(row[1]) for row in rows], args.width)
        for row, value in zip(rows, smooth):
            writer.writerow([path.stem, row[0], f"{value:.3f}"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
""",
    """type Listener<T> = (value: T, previous: T | undefined) => void;

export class Observable<T> {
  #value: T;
  #listeners = new Set<Listener<T>>();

  constructor(initial: T, private readonly equals: (a: T, b: T) => boolean = Object.is) {
    this.#value = initial;
  }

  get value(): T {
    return this.#value;
  }

  set value(next: T) {
    if (this.equals(this.#value, next)) return;
    const previous = this.#value;
    this.#value = next;
    for (const listener of [...this.#listeners]) listener(next, previous);
  }

  subscribe(listener: Listener<T>, options: { immediate?: boolean; signal?: AbortSignal } = {}): () => void {
    this.#listeners.add(listener);
    options.signal?.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
    if (options.immediate) listener(this.#value, undefined);
    return () => void this.#listeners.delete(listener);
  }
}
""",
    '''class Shelf:
    """Boxes on a shelf, first in, first out; heavy ones go to the bottom."""

    LIMIT_KG = 120

    def __init__(self, levels=5):
        self._levels = [[] for _ in range(levels)]
        self._weights = [0] * levels

    def put(self, box):
        wanted = range(len(self._levels)) if box.kg > 20 else reversed(range(len(self._levels)))
        for level in wanted:
            if self._weights[level] + box.kg <= self.LIMIT_KG:
                self._levels[level].append(box)
                self._weights[level] += box.kg
                return level
        raise OverflowError("the shelf is full")

    def take(self, level):
        try:
            box = self._levels[level].pop(0)
        except IndexError:
            return None
        self._weights[level] -= box.kg
        return box

    def __len__(self):
        return sum(map(len, self._levels))

    def __repr__(self):
        return f"<{type(self).__name__} {len(self)} boxes, {sum(self._weights)} kg>"
''',
    """async function refresh(table, url, { retries = 3 } = {}) {
  for (let attempt = 0; attempt <= retries; attempt += 1) {
    const response = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
    if (response.status === 429 || response.status >= 500) {
      const seconds = Number(response.headers.get("Retry-After")) || 2 ** attempt;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      continue;
    }
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    const { rows, total } = await response.json();
    table.querySelector("tbody").replaceChildren(
      ...rows.map((row) => {
        const line = document.createElement("tr");
        for (const key of ["name", "owner", "size"]) {
          line.append(Object.assign(document.createElement("td"), { textContent: row[key] ?? "" }));
        }
        return line;
      }),
    );
    table.dataset.total = String(total);
    return;
  }
  throw new Error("gave up");
}
""",
    """def parse_duration(text):
    '''Return seconds for "1h30m", "45s" or "2d"; raises ValueError.'''
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    total, number = 0, ""
    for char in text.strip().lower():
        if char.isdigit():
            number += char
        elif char in units and number:
            total += int(number) * units[char]
            number = ""
        else:
            raise ValueError(f"cannot read {text!r} as a duration")
    if number:
        raise ValueError(f"{text!r} ends without a unit")
    return total


def test_parse_duration():
    assert parse_duration("1h30m") == 5400
    assert parse_duration(" 2D ") == 172800
    for wrong in ("", "h", "10", "5x", "-3m"):
        try:
            result = parse_duration(wrong)
        except ValueError as error:
            assert repr(wrong.strip()) in str(error) or "ends" in str(error)
        else:
            assert wrong == "" and result == 0
""",
)

_NAMES = ("intake", "ledger", "north gate", "pump house", "archive", "greenhouse", "loading bay", "workshop")
_WORDS = "door seal report budget fan harvest lake timer bridge queue lock note paper value late early new open".split()
_HAN = ("冷库报告", "预算说明", "第三季度", "桥面更换", "除霜定时器", "会议纪要", "供应商名单", "验收记录")


def json_result(seed: int) -> str:
    """Return what a tool might answer: eight shapes in turn, filled anew for each seed."""
    chance = random.Random(seed)
    shape = (_hits, _rows, _weather, _log, _config, _compact, _files, _chinese)[seed % 8]
    return shape(chance)


def _sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randint(8, 22))).capitalize() + "."


def _day(chance: random.Random) -> str:
    return f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def _hits(chance: random.Random) -> str:
    hits = [
        {"id": f"doc_{chance.randrange(10**6)}", "title": chance.choice(_NAMES), "score": round(chance.random(), 4)}
        | {"snippet": _sentence(chance), "page": chance.randint(1, 80)}
        for _ in range(9)
    ]
    return json.dumps({"query": chance.choice(_NAMES), "total": chance.randint(9, 400), "hits": hits})


def _rows(chance: random.Random) -> str:
    rows = [[_day(chance), chance.choice(_NAMES), round(chance.uniform(1, 9000), 2)] for _ in range(40)]
    return json.dumps({"columns": ["date", "place", "amount"], "rows": rows, "truncated": False})


def _weather(chance: random.Random) -> str:
    hours = [
        {"time": f"{_day(chance)}T{h:02}:00:00Z", "temperature": round(chance.gauss(9, 6), 1), "humidity": h * 2 + 40}
        for h in range(14)
    ]
    return json.dumps({"station": "LSZH", "latitude": 47.4647, "longitude": 8.5492, "hours": hours}, indent=2)


def _log(chance: random.Random) -> str:
    lines = [
        json.dumps(
            {"ts": f"{_day(chance)}T{chance.randint(10, 23)}:{chance.randint(10, 59)}:07.{chance.randint(100, 999)}Z"}
            | {"level": chance.choice(("INFO", "WARNING", "ERROR")), "worker": chance.randint(1, 16)}
            | {"message": _sentence(chance), "duration_ms": chance.randint(1, 90_000)}
        )
        for _ in range(14)
    ]
    return "\n".join(lines)


def _config(chance: random.Random) -> str:
    parts: dict[str, Any] = {
        name.replace(" ", "_"): {
            "enabled": chance.random() < 0.7,
            "retries": chance.randint(0, 9),
            "timeoutSeconds": chance.choice((5, 30, 120)),
            "labels": chance.sample(_WORDS, 3),
            "endpoint": f"https://{name.split()[0]}.example.org/api/v{chance.randint(1, 3)}",
        }
        for name in _NAMES
    }
    return json.dumps({"version": 3, "services": parts}, indent=4)


def _compact(chance: random.Random) -> str:
    points = [
        {"x": chance.randint(0, 4000), "y": chance.randint(0, 4000), "w": chance.random() > 0.5} for _ in range(60)
    ]
    return json.dumps({"points": points, "bbox": None}, separators=(",", ":"))


def _files(chance: random.Random) -> str:
    files = [
        {"path": f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}_{chance.choice(_WORDS)}.py"}
        | {"size": chance.randint(100, 99_999), "sha256": f"{chance.getrandbits(128):032x}", "modified": _day(chance)}
        for _ in range(16)
    ]
    return json.dumps({"root": "/srv/project", "files": files}, indent=2)


def _chinese(chance: random.Random) -> str:
    items = [
        {"编号": chance.randint(1000, 9999), "标题": chance.choice(_HAN), "日期": _day(chance), "状态": "已完成"}
        | {"name": chance.choice(_NAMES), "amount": round(chance.uniform(10, 900), 1)}
        for _ in range(20)
    ]
    return json.dumps({"结果": items, "total": 20}, ensure_ascii=False)


SCRIPTS: Final = {
    "English": ENGLISH,
    "Chinese": CHINESE,
    "code": CODE,
    "JSON": tuple(json_result(seed) for seed in range(16)),
}
