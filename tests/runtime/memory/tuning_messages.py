"""Messages that the rules of extraction may be tuned on. None of them is in the set that they are measured on."""

from tests.runtime.memory.labels import FORGET_ALL, Case, case, episode, fact, forget, instead

ENGLISH: list[Case] = [
    case("I prefer reports in Chinese, tables first.", fact("reports in Chinese", "tables first")),
    case("My name is Ana Oliveira and I work at Embraer.", fact("Ana Oliveira"), fact("Embraer")),
    case("I'm a data engineer in Zurich. How do I rotate logs?", fact("data engineer")),
    case("Please always cite the page number.", fact("page number")),
    case("Never send anything without asking me first.", fact("without asking")),
    case("I moved from Rome to Oslo.", instead("Oslo")).knowing("I live in Rome."),
    case("I have 6 years of experience with Go.", instead("6 years")).knowing("I have 5 years of experience with Go."),
    case("The audit report is due next Friday.", episode("audit report", day="2026-03-20")),
    case("We signed the lease on 3 March 2026.", episode("lease", day="2026-03-03")),
    case("Keep in mind that our servers run Debian 12.", fact("Debian 12")),
    case("I'm allergic to peanuts.", fact("peanuts")),
    case("My wife's name is Ingrid.", fact("Ingrid")),
    case("Forget my address, please.", forget(1)).knowing("I like tea.", "My address is 5 Elm Street."),
    case("Forget everything you know about me.", FORGET_ALL).knowing("I like tea."),
    case("I don't like long introductions.", fact("long introductions")),
    case("No, I'm not called Jon; my name is Joan.", instead("Joan")).knowing("My name is Jon."),
    case("My team uses Jira, and I'm based in Nairobi.", fact("Jira"), fact("Nairobi")),
    case("In future, reply in British English.", fact("British English")),
    case("I have a flight to Tokyo on Monday.", episode("Tokyo", day="2026-03-16")),
    case("Please don't forget that I'm colour-blind.", fact("colour-blind")),
    case("Would you prefer Python or Go for this?"),
    case("Suppose I live in Paris and earn 3,000 a month. What do I pay in taxes?"),
    case('The customer said "I hate your product". Draft a reply.'),
    case("Write an email to my boss asking for Friday off."),
    case("I'm a bit confused by the second table."),
    case("Yeah right, I absolutely love merge conflicts."),
    case("They moved to Madrid last year."),
    case("I like this draft, but make it shorter."),
    case("Never mind, forget it."),
    case("I might switch to Linux some day."),
    case("Make the title bold, please."),
]

CHINESE: list[Case] = [
    case("以后请用中文回复。", fact("中文回复")),
    case("我叫李雷，是一名后端工程师。", fact("李雷"), fact("后端工程师")),
    case("我在招商银行上班。", fact("招商银行")),
    case("我更喜欢简短的回答，不要客套话。", fact("简短的回答")),
    case("记住：我们的客户都在欧洲。", fact("客户", "欧洲")),
    case("我住在杭州。", fact("杭州")),
    case("我从罗马搬到了奥斯陆。", instead("奥斯陆")).knowing("我住在罗马。"),
    case("我做产品经理六年了。", instead("六年")).knowing("我做产品经理五年了。"),
    case("报告要在下个月3号之前交。", episode("报告", day="2026-04-03")),
    case("上周五我们和客户开了启动会。", episode("启动会", day="2026-03-06")),
    case("我不吃辣。", fact("不吃辣")),
    case("请不要再用表情符号。", fact("表情符号")),
    case("我女儿叫小雨，今年五岁。", fact("小雨")),
    case("忘记我的手机号。", forget(0)).knowing("我的手机号是13800000000。", "我喜欢茶。"),
    case("把关于我的一切都忘掉。", FORGET_ALL).knowing("我喜欢茶。"),
    case("更正一下，我的名字是王芳，不是黄芳。", instead("王芳")).knowing("我的名字是黄芳。"),
    case("每次都要注明出处。", fact("注明出处")),
    case("明天下午三点我要面试。", episode("面试", day="2026-03-12")),
    case("我是做外贸的，主要市场在东南亚。", fact("外贸")),
    case("请叫我老周。", fact("老周")),
    case("我喜欢的颜色适合做标题吗？"),
    case("假设我住在东京，月薪五十万日元，要交多少税？"),
    case("客户写道：“我讨厌等待。”帮我回复。"),
    case("写一封给我老板的邮件，请假一天。"),
    case("她住在广州。"),
    case("我可能会换到上海。"),
    case("真是太好了，我最爱改第十版了。"),
    case("请把标题加粗。"),
    case("算了，忘了吧。"),
    case("我有点看不懂第二张表。"),
    case("以后再说。"),
]

MORE_ENGLISH: list[Case] = [
    case(
        "Hi there! I'm Priya, I run procurement at a hospital in Leeds. Could you look at the attached tender?",
        fact("Priya"),
        fact("procurement"),
    ),
    case("I prefer short answers with the conclusion up front.", fact("short answers")),
    case("From now on, always give prices in euros.", fact("euros")),
    case("We moved from Lisbon to Porto last month.", fact("Porto")),
    case("Remember that our fiscal year starts in July.", fact("fiscal year", "July")),
    case("The grant application is due on 14 April.", episode("grant application", day="2026-04-14")),
    case("I work as a physiotherapist, mostly with runners.", fact("physiotherapist")),
    case(
        "My sister Helen is allergic to penicillin, so keep that in mind when you suggest anything.",
        fact("Helen", "penicillin"),
    ),
    case("Please don't use emojis in your replies ever again.", fact("emojis")),
    case("I'm vegetarian.", fact("vegetarian")),
    case("Actually my name is spelled Catriona, not Katrina.", fact("Catriona")),
    case("Forget what I told you about the Berlin office.", forget(0)).knowing(
        "The Berlin office closes in June.", "I prefer tea."
    ),
    case("I have a dentist appointment tomorrow at 3pm.", episode("dentist", day="2026-03-12")),
    case("I've been using Rust professionally for 6 years.", instead("6 years")).knowing(
        "I've been using Rust professionally for 5 years."
    ),
    case("My manager is Tomasz Nowak and he signs off every budget.", fact("Tomasz Nowak")),
    case("I met Dr. Osei in Accra on 2 February 2026.", episode("Osei", day="2026-02-02")),
    case("I no longer work at Siemens; I joined Bosch in January.", instead("Bosch")).knowing("I work at Siemens."),
    case(
        "Can you call me Dr. Weber in these letters? I hate being addressed by first name.",
        fact("Dr. Weber"),
        fact("hate being addressed"),
    ),
    case("I live in Utrecht with two cats.", fact("Utrecht")),
    case("What's the capital of Mongolia?"),
    case("Write me a poem about my dog being late for dinner."),
    case("If I were a teacher, I would prefer mornings."),
    case('She wrote: "I prefer to be called Max and I live in Rome." Translate this into Spanish.'),
    case("Do I prefer tabs or spaces? You tell me."),
    case("He works at Google and loves sushi."),
    case("Oh great, I just LOVE waiting three hours for a build. Fix the pipeline."),
    case("Summarise the attached report in two paragraphs."),
    case("I don't know whether I should move to Spain."),
    case("Use a table for this one."),
    case("Thanks, that looks good. Now shorten the second section."),
]

MORE_CHINESE: list[Case] = [
    case("你好，我叫陈思远，在一家物流公司做调度。", fact("陈思远"), fact("调度")),
    case("以后回答我的时候请先给结论再讲理由。", fact("先给结论")),
    case("我比较喜欢用Markdown表格看数据。", fact("Markdown表格")),
    case("请记住，我们的财年从四月开始。", fact("财年", "四月")),
    case("我对海鲜过敏。", fact("海鲜过敏")),
    case("下周三要向董事会汇报。", episode("董事会", day="2026-03-18")),
    case("我去年从武汉搬到了成都。", fact("成都")),
    case("我不在华为工作了，现在在中兴。", instead("中兴")).knowing("我在华为工作。"),
    case("别再叫我小李，叫我李工就行。", fact("李工")),
    case("忘掉我之前说的预算上限吧。", forget(0)).knowing("预算上限是五十万。", "我喜欢喝茶。"),
    case("我的老板是周敏，她只看一页纸的报告。", fact("周敏")),
    case("论文的截止日期是4月20号。", episode("截止", day="2026-04-20")),
    case("我有六年的Java开发经验。", instead("六年")).knowing("我有五年的Java开发经验。"),
    case("今后所有邮件草稿都用英文写。", fact("英文")),
    case("我是素食者，推荐餐厅时注意一下。", fact("素食")),
    case("昨天我和王磊在深圳签了合同。", episode("王磊", day="2026-03-10")),
    case("我家住在青岛，孩子在上小学三年级。", fact("青岛"), fact("孩子")),
    case("不对，我的名字是张玮，玮是王字旁的玮。", fact("张玮")),
    case("我讨厌长篇大论，每次回答不要超过两百字。", fact("长篇大论"), fact("两百字")),
    case("蒙古的首都是哪里？"),
    case("帮我写一首关于秋天的诗。"),
    case("如果我是老师，我会更喜欢早上上课。"),
    case("他说：“我住在北京，喜欢喝咖啡。”请翻译成英文。"),
    case("他在腾讯工作，很喜欢打篮球。"),
    case("呵呵，我可真喜欢半夜加班。"),
    case("这次用表格就好。"),
    case("我应该搬去上海吗？"),
    case("把附件里的报告总结成两段。"),
    case("谢谢，写得不错，第二段再短一点。"),
    case("我不知道要不要换工作。"),
]

MOVES: list[Case] = [
    case("My daughter's name is Mia.", fact("Mia")).knowing("My daughter's name is Lucy."),
    case("We moved from MySQL to Postgres.", fact("Postgres")).knowing("I live in Rome."),
    case("I moved from Madrid to Oslo.", fact("Oslo")).knowing("I live in Rome."),
    case("I'm based in Milan now.", instead("Milan")).knowing("I live in Rome."),
    case("I have just joined Ericsson as a test lead.", instead("Ericsson")).knowing("I work at Acme."),
    case("我小孩叫小雪。", fact("小雪")).knowing("我小孩叫小雨"),
    case("我搬到奥斯陆了。", instead("奥斯陆")).knowing("我住在罗马。"),
    case("我现在在米兰工作。", instead("米兰")).knowing("我在华为工作"),
    case("我们要在6月底前上线新系统。", episode("新系统", day="2026-06-30")),
]

NOTHING: list[Case] = [
    case(line)
    for line in """
I need a summary of chapter 3 by tomorrow.
I have a question about the invoice from last week.
I want you to translate the attached file.
I think the second paragraph is too long.
I got an error when I ran the script yesterday.
I used the API last week and it returned 500.
I'm looking for a good restaurant in Lyon.
I'm working on a presentation about solar panels.
I'm trying to fix a bug in the parser.
My build is failing again.
My boss is angry about the delay.
I have two questions.
I'm not a lawyer, is this contract ok?
I am writing a novel about a nurse who lives in Prague.
Please always double-check this table.
When you write the summary, include the totals.
For each section, write one sentence.
Remember to save the file.
Remember when we talked about Norway?
I love it!
I like the blue one better.
Give me three examples of irony.
I moved the file to Downloads.
I moved the meeting to Friday.
I left the door open.
I worked on the draft yesterday.
I had lunch yesterday.
We met yesterday to discuss it.
I will send you the rest tomorrow.
I am a little tired today.
Do not use tables in this answer.
I live in hope.
Call me when you're done.
call me crazy but this works
This is John's report, summarise it.
I'm Happy with that.
I'm OK with that.
I'm sure that's wrong.
My question is about taxes.
My name is not important.
The company is losing money.
The team has finished the sprint.
The database is slow.
The server runs out of memory every night.
In all of these examples, the verb comes last.
By default, Python uses UTF-8.
Every time I run it, it crashes.
I never said that.
I always get this error.
I have been waiting for two years for this.
I have 3 files to merge.
Explain how I can stop my dog from barking again.
Stop. Don't do that again.
I'm from accounting, where is the form?
Delete the third row and all the rest.
Don't save the file yet.
Remove the memory leak in this function.
I forgot my password, how do I reset it?
I hate to bother you, but the chart is wrong.
I prefer option B.
I work in the evenings as a rule.
Can I work with you on this?
I am going to ask you some questions.
I'm going to bed.
我需要明天之前拿到总结。
我有一个问题。
我觉得第二段太长了。
昨天我运行脚本时报错了。
我正在写一份关于太阳能的报告。
我想要一个简短的版本。
我喜欢第二个方案。
我用了三年前的数据。
他叫王强，是一名律师。
请用中文回答。
请记得保存文件。
你还记得我们上次聊的吗？
不要忘了加标题。
请总结一下去年的销售数据。
我明天再发给你。
以后再看。
每次运行都会崩溃。
每次我打开文件都报错。
总是报错怎么办
默认使用UTF-8编码。
所有的数字加起来是100。
所有代码都跑不通。
我在写代码。
我在做一个项目。
我在想怎么改。
我在看第三章。
我是说第二张图。
我是不是应该换工作
我是想问一下怎么导出。
我叫了外卖。
我做了一个表格。
我不喜欢这个颜色。
我爱你。
我忘记密码了。
我忘了保存。
删除第三行。
帮我删除这段记忆体测试代码。
别忘了附上图表。
我的问题是怎么写摘要。
我的电脑是不是坏了
我的报告是去年写的。
我们公司亏损了。
我们团队完成了冲刺。
我们用这个模板。
把我们的产品介绍翻译成英文。
我生活得很好。
我从文件夹里搬到了桌面。
我把文件搬到了D盘。
我来自我介绍一下。
我有三个文件。
我昨天吃了火锅。
我刚才说了，改第二段。
我们昨天讨论过了。
我下周要的报告写好了吗？
小说里的主人公说我叫阿明，住在上海。
我不用表格也行。
我不用了，谢谢。
我习惯了。
我们明天见。
Please compare the two contracts and keep the table short.
In the report, always put the totals last.
Can you check whether I used the right tone?
I'd love a version with fewer adjectives.
I want to know when my visa expires.
I wrote this essay last year, please grade it.
As a teacher, I need a lesson plan on volcanoes.
We use Scrum, don't we?
I never eat breakfast, is that bad?
Remember, the answer must be in JSON.
Note: the second sheet contains last year's data.
Please note that the file has three tabs.
The word "always" appears twice; never use it in this text.
I'm 5 minutes late.
I'm at the airport.
Send it to my email: ana@example.org
Answer in Dutch.
I'm your biggest fan.
I'm a big fan of your work.
I'm the author of this paper.
I am an idiot.
比较一下两份合同，表格要短。
报告里的合计请放在最后。
帮我看看语气对不对。
这篇文章是我去年写的，请打分。
作为老师，我需要一份火山的教案。
请注意，文件有三个标签页。
注意字数。
我迟到五分钟。
我在机场。
发到我的邮箱。
用荷兰语回答。
我是你的粉丝。
我是这篇论文的作者。
以后的章节怎么安排？
以后我会注意的。
将来的趋势是什么
所有人都同意了。
我叫他明天来。
我觉得我应该是对的。
我可不喜欢这样。
我喜欢你写的开头。
我的车坏了。
我老板很忙。
我妈叫我回家吃饭。
我老婆让我买菜。
""".strip().splitlines()
]
