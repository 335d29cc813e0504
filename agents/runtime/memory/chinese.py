"""What a Chinese sentence says of the person who typed it, by rules. In doubt, nothing."""

import re
from dataclasses import replace
from typing import Final

from agents.runtime.memory.memories import Kind
from agents.runtime.memory.statements import Rule, Statement, first

_N: Final = r"(?:\d{1,2}|[一二两三四五六七八九十]{1,3})"
# Sentences that say nothing of the person, whatever stands in them.
_IDLE = re.compile(
    r"如果|假如|假设|假定|要是|倘若|设想|想象一下|比如说?|例如|譬如|扮演|假装|万一|好像|仿佛|也许|可能|或许|大概|"
    r"不确定|不知道|不清楚|"
    r"拿不定|在考虑|犹豫|打算要不要|要不要|该不该|是不是该|应不应该|想不想|呵呵|可真(?!的)|真是太|真会|我谢谢你|"
    r"太棒了吧|密码|口令|密钥|验证码|身份证号|银行卡|信用卡"
)
_ONCE = re.compile(r"这[次回份个篇张段版封页](?!月|星期|周|礼拜|季度|学期)|本次|这里|暂时|先这样|这一[次份个篇张段版]")
_QUESTION = re.compile(
    r"[吗呢么]$|什么|怎么|怎样|如何|哪[里儿个些种位天]|是否|能不能|可不可以|有没有|是不是|为何|几[点号个]|多少|"
    r"谁(?:是|会|能)|好不好|行不行"
)
_END = re.compile(r"([。！？!?；;\n]+)")
_CLAUSE = re.compile(r"[，,]|：(?=我)")
_LEAD = re.compile(
    r"^(?:(?:你好|您好|大家好|嗨|哈喽|早上好|下午好|好的|嗯|对了|另外|还有|其实|不对|不是|更正一下|纠正一下|说明一下|"
    r"补充一下|顺便说一下|顺便一提|"
    r"自我介绍一下|先介绍一下|抱歉|那个|首先|而且|但是|不过|因为|由于|所以|顺带一提|背景是?)[，,：:、 ]*)+"
)
_REQUEST = re.compile(
    r"^(?:请|麻烦|帮|给我|替我|把|写|翻译|总结|生成|做一|画|列出|整理|修改|润色|查|找|搜|解释|分析|推荐|告诉|让|继续|"
    r"能|可以|可否|想请|希望你)"
)
_OFTEN: Final = (
    r"(?:个人|本人|自己|一般|通常|平时|一直|从来|都|也|还是|还|就|比较|更加?|最|特别|非常|很|十分|真的|其实|一向|"
    r"确实|尤其|只|总是)*"
)
_NOT_THIS: Final = r"(?!这|那|第|上面|前面|方案|版本|选项|你|您|他|她|它|的(?!.+(?:是|为)))"
_LINKED: Final = (
    r"(?:妻子|老婆|太太|丈夫|老公|爱人|女朋友|男朋友|未婚[妻夫]|儿子|女儿|孩子|小孩|爸爸|妈妈|父亲|母亲|父母|爷爷|"
    r"奶奶|外公|外婆|哥哥|姐姐|弟弟|妹妹|"
    r"老板|上司|领导|经理|主管|导师|老师|同事|助理|秘书|搭档|合伙人|室友|家人|医生|律师|狗|猫|公司|团队|部门|学校|"
    r"实验室|客户)"
)
_TRAITS: Final = (
    r"(?:生日|电话|电话号码|手机|手机号码?|邮箱|邮件地址|电子邮箱|地址|住址|时区|微信|工号|专业|职位|职务|职业|岗位|"
    r"头衔|母语|血型|身高|体重|年龄|预算|学校|"
    r"老家|家乡|国籍|昵称|英文名|用户名|星座|工作时间|爱好|财年|公司|单位)"
)
_TOPIC: Final = (
    r"(?:公司|团队|部门|小组|项目组|学校|实验室|财年|财政年度|客户|产品|服务器|数据库|网站|办公室|总部|店|工厂|"
    r"供应商|用户|系统|技术栈|预算|品牌|代码库)"
)
_JOB: Final = (
    r"(?:工程师|程序员|设计师|架构师|分析师|会计师?|律师|医生|护士|老师|教师|教授|讲师|学生|研究生|博士生?|硕士生?|"
    r"本科生|大学生|高中生|实习生|经理|主管|总监|总裁|顾问|"
    r"编辑|记者|作家|作者|翻译|销售|采购|运营|助理|秘书|司机|厨师|导演|演员|摄影师|画家|艺术家|音乐人|研究员|科学家|"
    r"站长|创始人|合伙人|老板|店主|个体户|自由职业者?|公务员|警察|"
    r"军人|农民|工人|技师|药剂师|营养师|心理咨询师|咨询师|教练|产品|开发|测试|运维|财务|法务|人事|行政|客服|培训师|"
    r"策划|负责人|队长|组长|班主任|校长|院长|主任|志愿者|新手|初学者)"
)
_HOW_I_AM: Final = (
    r"(?:素食者?|素食主义者|纯素|左撇子|色盲|色弱|单亲|独生|回族|穆斯林|佛教徒|基督徒|过敏体质|糖尿病患者|"
    r"乳糖不耐受?|已婚|未婚|单身|退休)"
)


def _rule(pattern: str, slot: str = "", *, ended: bool = False) -> Rule:
    return Rule(re.compile(pattern), slot, ended)


_ENDED: Final = (
    _rule(r"我(?:已经|现在)?(?:不|没)(?:再)?在(?P<v>.+?)(?:工作|上班|任职|干|做)了?$", "employer", ended=True),
    _rule(r"我(?:已经|刚|刚刚)?从(?P<v>.+?)(?:离职|辞职)", "employer", ended=True),
    _rule(r"我(?:已经|现在)?不(?:再)?住(?:在)?(?P<v>.+?)了?$", "home", ended=True),
)
_NOW: Final = {
    "employer": _rule(r"(?:我)?(?:现在|目前|如今)(?:就?在|去了|到了|是)(?P<v>.+?)(?:工作|上班|任职)?了?$", "employer"),
    "home": _rule(r"(?:我)?(?:现在|目前|如今)(?:住在?|在|搬到了?)(?P<v>.+?)了?$", "home"),
}
_RULES: Final = (
    _rule(r"我(?:的名字|的?姓名|的?全名|的?真名|的?中文名)(?:是|叫做?)(?P<v>[^是的]{1,12})$", "name"),
    _rule(
        r"我(?:名)?叫(?!你|您|他|她|人|车|外卖|了|做|的|不)(?P<v>[\u4e00-\u9fff·]{2,6}|[A-Za-z][\w .'-]{1,30})$", "name"
    ),
    _rule(r"我姓(?P<v>[\u4e00-\u9fff]{1,2})$", "surname"),
    _rule(
        r"(?:请|你?可以|你?就|以后|直接|都)*(?:叫|称呼|喊)我(?P<v>[\u4e00-\u9fff·]{2,6}?|"
        r"[A-Za-z][\w .'-]{1,30}?)(?:就行|就好|就可以|即可|吧|好了)*(?:了)?$",
        "form of address",
    ),
    _rule(
        r"我(?:们)?(?:全家|一家|家)?(?!把|将)(?:(?!把).){0,8}?(?:从(?!文件|桌面|目录)(?P<was>.{1,10}?))?(?:搬家?到|"
        r"搬来|搬去|"
        r"搬回)了?(?P<v>(?!桌面|.*(?:盘|文件夹|目录|页|里|上)$)[^了的]{2,12})了?$",
        "home",
    ),
    _rule(
        r"我(?:们)?(?:家|一家|全家)?(?:现在|目前|一直|常年|平时)?(?:就)?(?:住|居住|定居|生活)(?:在|于)?(?P<v>(?!的|"
        r"了|得|不|过|一)[^的]{2,20})$",
        "home",
    ),
    _rule(r"我(?:是|来自)(?P<v>(?!我)[^的，]{2,8})人$", "origin"),
    _rule(r"我来自(?P<v>(?!我)[^的，]{2,10})$", "origin"),
    _rule(
        r"我(?:们)?(?:现在|目前|刚|刚刚|已经)?(?:加入|入职|跳槽到|跳槽去|去了|任职于|就职于|"
        r"供职于)了?(?P<v>[^的，]{2,20})$",
        "employer",
    ),
    _rule(r"我(?:现在|目前|一直|平时)?在(?P<v>[^的，]{2,20}?)(?:工作|上班|任职|就职|供职)$", "employer"),
    _rule(
        r"我(?:现在|目前|一直)?在(?:一家|一个|一所)?(?P<v>[^，]{2,20}?)(?:做|当|担任|任|从事|负责|教|读|学|念)(?!完|"
        r"了|好|不|这|那|个)[^，]{2,}$"
    ),
    _rule(r"我(?:现在|目前|以前)?(?:是|当|做)(?:一?[名个位])?(?!这|那|说|想|要|指|问|不是)[^，吗]{0,16}?" + _JOB + "$"),
    _rule(
        r"我(?:现在|目前|主要)?(?:是(?:做|搞|从事|学|教|研究|负责|管)|从事|专门做|主要做|负责|主管|研究|专攻|主修|"
        r"攻读|经营|创办了?)(?!这|那|的|什么)[^，]{2,}$"
    ),
    _rule(r"我(?:也|现在)?是(?:一?[名个位])?" + _HOW_I_AM),
    _rule(r"我(?:也)?对[^，]{1,12}过敏"),
    _rule(
        r"我(?:也)?(?:有|患有|得了|患了)(?:轻度|严重的?)?(?:糖尿病|高血压|哮喘|过敏|鼻炎|色盲|胃病|痛风|抑郁症|"
        r"焦虑症|乳糖不耐受?)"
    ),
    _rule(
        r"我(?:已经)?(?:有|具有|具备)(?:了)?(?:大约|将近|超过)?"
        + _N
        + r"年(?:多)?的?[^，]{0,20}(?:经验|经历|工龄|教龄|驾龄)"
    ),
    _rule(
        r"我(?:做|用|写|学|教|从事|当|搞|干|练|在)(?!了一|的|这|那)[^，]{1,20}?(?:已经|快|都|有)?"
        + _N
        + r"年(?:多)?了?$"
    ),
    _rule(r"我(?:今年)?(?P<v>\d{1,2}|[一二三四五六七八九十]{1,3})岁$", "age"),
    _rule(
        r"我(?:家)?(?:有|养了?)(?:[一两二三四五]|\d)(?:个|只|条|位)(?:[^，]{0,6})(?:孩子|小孩|儿子|女儿|猫|狗|哥哥|"
        r"姐姐|弟弟|妹妹)"
    ),
    _rule(
        r"我(?:们)?家?的?(?P<noun>" + _LINKED + r")(?:的名字)?(?:叫做?|是)(?P<v>(?!不|在|个|很|一个|说)[^，]{2,8})$",
        "我的{noun}",
    ),
    _rule(
        r"我(?:们)?家?的?(?P<noun>"
        + _LINKED
        + r")(?:们)?(?:今年|现在|也|都|一般|只|很|最|特别|非常|从来|在)*(?:对|不喜欢|喜欢|讨厌|爱|怕|不吃|只吃|吃素|"
        r"住在?|用|使用|上小学|上初中|上高中|上大学|读|工作|做|是|有|\d{1,2}岁|" + _N + r"岁)(?!什么|不是)"
    ),
    _rule(
        r"我(?:们)?的?(?P<noun>"
        + _TRAITS
        + r")(?:改成|换成|现在)?(?:是|为|在|从|改为|改成了?|换成了?)(?P<v>(?!不|什么|多少)[^，]+)$",
        "我的{noun}",
    ),
    _rule(
        r"我们的?"
        + _TOPIC
        + r"(?:们)?(?:目前|现在|主要|一般|都|全部|也|只|通常|统一)*(?:用|使用|采用|有|在|是|做|位于|"
        r"从|卖|生产|服务|面向|跑在|运行|部署|支持|开始|叫)(?!问题|点|没有)"
    ),
    _rule(r"我们(?:目前|现在|主要|一般|都|统一)+(?:用|使用|采用|做|卖|生产|面向)(?!这|那)[^，]{2,}"),
    _rule(
        r"我" + _OFTEN + r"(?:喜欢|喜爱|偏好|偏爱|热爱|习惯(?!了)|倾向于?|讨厌|厌恶|反感|受不了|"
        r"不喜欢|不太喜欢|不爱|不习惯|不吃|不喝|不抽|不碰|吃素|爱(?:吃|喝|看|听|玩|用))" + _NOT_THIS
    ),
    _rule(r"我最?(?:喜欢|爱|讨厌|常用|擅长)的[^，]{1,12}(?:是|为)(?!什么|不是)"),
    _rule(r"我(?:会说|会讲|精通|擅长|只会|主要用|只用|平时用|一直用|常用|主要写)(?!这|那|的)[^，]{2,}$"),
    _rule(
        r"我(?:家)?(?:只|从不|从来不|一向|总是|每天都?|每周都?)(?:吃|喝|用|看|读|写|要|坐|开|跑步?|健身|锻炼|加班|上班)"
    ),
)
_OF_LINKED: Final = _rule(
    r"(?P<noun>"
    + _LINKED
    + r")(?:今年|现在|也|都|在)*(?:叫|是|上|读|"
    + _N
    + r"岁|对|喜欢|不吃|住|工作|学|做)(?!不是|什么)"
)
_GOES_ON = re.compile(
    r"^(?:在|是|住在?|从事|负责|担任|主要|喜欢|讨厌|不吃|来自|做|当|有|对|也|不喜欢|更喜欢|今年|平时|擅长|习惯|爱)"
)
_REMEMBER = re.compile(
    r"^(?:请|麻烦|帮我|你要|你|一定要?|千万)*(?:记住了?|记一下|记下来?|牢记|记好|备注一下|(?:请注意|"
    r"注意)(?=[：:，, ]*我)|(?:别|"
    r"不要)忘[了记](?=我|[：:，,]我)|记得(?=我|[：:，,]我))(?:这一?点|一下|了)?[：:，, ]*(?P<what>.+)$"
)
_NOT_TOLD = re.compile(
    r"^(?:这|那|它|要|去|把|帮|在.*[加写改]|给|一下|了|吗|我(?:刚才|上面|之前)说|上面|前面|以上|加|写|保存|检查)"
)
_STANDING = re.compile(
    r"^(?:请|麻烦)?(?:你|您)?(?:"
    r"(?:以后|今后|往后|从今(?:以后|往后|天起|天开始)?|从现在(?:开始|起)|将来)(?!再说|再聊|再看|再谈|我(?!的|们的|问|"
    r"说|发|让|叫|给|提|上传|需要|要)|他|她|会|的话|可以再)"
    r"|每次(?=.*(?:要|请|别|必须|注明|附上|先))(?!.*(?:报错|出错|失败|崩溃))|每[当逢](?=.*(?:要|请|先))"
    r"|(?:总是|始终|永远|凡是?|无论如何)(?=.{0,12}(?:用|请|要|保持|不要|别))(?!.*(?:报错|出错|失败))|一律|默认(?:请|"
    r"都|给我|按|以)"
    r"|(?:所有|全部|任何)的?(?:邮件|报告|回答|回复|代码|文档|表格|图表|数字|金额|日期|引用|总结|文章|草稿|标题|"
    r"注释).{0,8}?(?:都[要用按写以加附请]|一律|统一|请|必须|不要|别)"
    r"|(?:给我)?(?:回答|回复|写报告|写邮件|写代码|引用|报价|翻译)(?:我的?(?:问题|消息)?)?(?:时|的时候|"
    r"时候)[，,]?(?=.*(?:请|要|不要|别|都|用|先))"
    r"|(?:再也|永远|以后都|绝对)?(?:不要再|别再|不许再|不准再|勿再|千万(?:别|不要)))[，,]?(?P<what>.{2,})$"
)
_NAMES_ME = re.compile(r"(?:别|不要)(?:再)?(?:叫|称呼|喊)我|再?(?:说|聊|看|谈|联系)吧?$")
_DUE = re.compile(
    r"截止|截稿|到期|交稿|最后期限|死线|deadline|ddl|之前?(?:要|必须|得)?(?:提?交|完成|上线|发布|寄出|付清|缴)|"
    r"前(?:要|必须|得)?(?:提?交|完成|上线|发布|寄出|付清|缴)|开学|放假",
    re.IGNORECASE,
)
_EVENT: Final = (
    r"(?:面试|开会|会议|出差|汇报|述职|考试|答辩|手术|体检|搬家|结婚|婚礼|飞|出发|上线|发布|演讲|入职|离职|看牙|看病|"
    r"复诊|签约|签合同|培训|讲课|上课|休假|请假|旅行|旅游|回家|"
    r"见客户|见面|聚餐|评审|路演|直播|比赛|开庭|展会|参展|毕业|生日|航班|去|参加|拜访|陪)"
)
_AHEAD = re.compile(
    rf"^(?:我(?:们)?)?.{{0,16}}?(?:要|会|得|将|需要|准备|约了|有)(?:(?!什么).){{0,16}}?{_EVENT}|"
    rf"^我(?:们)?(?:的)?.{{0,12}}{_EVENT}(?:在|是|定在|安排在)"
)
_OTHERS = re.compile(r"^(?:他|她|它|他们|她们|你|您|对方|客户|公司|老板|同事|朋友|有人|大家)")
_BEHIND = re.compile(
    r"我(?:们)?.*(?:签了|签署|签约|签下|签完|见了|见到|见过|拜访|认识了|搬|结婚|结了婚|毕业|入职|离职|辞职|退休|加入|"
    r"升职|参加了|去了|飞[到往了]|出生|生了|买了.{0,6}[房车]|卖了|"
    r"开了.*[会店]|开了家|开业|上线|发布|成立|获得了|获奖|拿到了|赢|完成了.*(?:融资|迁移|手术|答辩|考试|马拉松)|"
    r"做了.{0,6}手术|考[上过完]|举[行办]|启动|谈[成妥]|收养|领养|去世)"
)
_PAST = re.compile(r"了|过|以来")
_YEARS = re.compile(rf"({_N})(?=年)")


def statements(text: str) -> list[Statement]:
    """Return what the text says of who typed it, in order. text: own words only, quotations marked."""
    found: list[Statement] = []
    pieces = _END.split(text)
    for sentence, end in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        bare = _LEAD.sub("", sentence.strip()).strip()
        if bare and not _IDLE.search(bare):
            found += _of_sentence(bare, "?" in end or "？" in end)
    return found


def _of_sentence(sentence: str, asks: bool) -> list[Statement]:
    if (told := _REMEMBER.match(sentence)) and not asks and not _NOT_TOLD.match(told["what"]):
        inner = told["what"].strip(" ，,")
        return [replace(_stated(inner) or Statement(text=inner), text=inner)] if len(inner) > 3 else []
    found: list[Statement] = []
    clauses = [clause.strip(" ：:") for clause in _CLAUSE.split(sentence)]
    mine = False  # the clause before was about the person
    for number, clause in enumerate(clauses):
        clause = _LEAD.sub("", clause)
        if not clause or _QUESTION.search(clause) or (asks and number == len(clauses) - 1):
            mine = False
            continue
        before = found[-1] if found and mine else None
        if before is not None and before.ended and (now := _NOW[before.slot].taken(clause, f"{before.text}，{clause}")):
            found.append(now)
            continue
        statement = _stated(clause)
        of_others = before is not None and before.others
        if statement is None and mine and not of_others and _GOES_ON.match(clause):
            statement = _stated(f"我{clause}")
        if statement is None and mine and not of_others and _OF_LINKED.taken(clause, clause):
            statement = Statement(text=f"我{clause}")
        if statement is None and before is not None and _belongs(before, clause):
            found[-1] = replace(before, text=f"{before.text}，{clause}")
            continue
        mine = statement is not None
        if statement is not None:
            found.append(statement)
    return found


def _belongs(before: Statement, clause: str) -> bool:
    """Return whether the clause goes on with a statement and says nothing of its own."""
    if _ONCE.search(clause) or _REQUEST.match(clause) or re.match(r"我|咱|谢|多谢|辛苦|拜托|好吧|现在", clause):
        return False
    return not before.slot or before.others


def _stated(clause: str) -> Statement | None:
    if ended := first(_ENDED, clause, clause):
        return ended
    if _ONCE.search(clause):
        return None
    if _STANDING.match(clause) and not _NAMES_ME.search(clause):
        return Statement(text=clause)
    if found := first(_RULES, clause, clause):
        if not found.slot and (years := _YEARS.search(clause)) and not re.match(r"\d{4}", clause[years.start() :]):
            slot = f"{clause[: years.start()]}#{clause[years.end() :]}".casefold()
            return replace(found, slot=slot, value=years[0])
        return replace(found, past=bool(_PAST.search(clause)))
    if _REQUEST.match(clause):
        return None
    if _DUE.search(clause):
        return Statement(text=clause, kind=Kind.EPISODE)
    if _AHEAD.match(clause) and not _OTHERS.match(clause) and "了" not in clause.replace("约了", ""):
        return Statement(text=clause, kind=Kind.EPISODE)
    if _BEHIND.search(clause):
        return Statement(text=clause, kind=Kind.EPISODE, past=True)
    return None
