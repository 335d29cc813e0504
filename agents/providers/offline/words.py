"""What the offline provider says, in English and Chinese."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.providers.offline import failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language. Fields with braces are formats. failures: by errors.ToolFailure."""

    notice: str  # said once in a conversation
    greeting: str
    thanks: str
    about_us: str
    no_files: str
    no_tool: str
    found: str
    found_in: str
    weak: str
    nothing: str
    summary: str
    summary_line: str
    note_name: str
    outline: str
    file_line: str
    page: str
    line: str
    character: str
    under: str
    read_up_to: str
    unreadable: str
    empty_file: str
    no_page: str
    files_are: str
    no_files_here: str
    not_listed: str
    saved: str
    not_saved: str
    nothing_to_save: str
    thinking_read: str
    thinking_on: str
    thinking_search: str
    thinking_plain: str
    thinking_save: str
    thinking_around: str
    thinking_list: str
    thinking_report: str
    documents_say: str
    not_said: str
    no_passage: str
    closest: str
    unread: str
    not_searched: str
    compared: str
    nothing_found: str
    named_in: str
    documents_are: str
    no_documents: str
    being_read: str
    not_readable: str
    pages_long: str
    report_title: str
    report_name: str
    report_intro: str
    report_overview: str
    report_rest: str
    sources_listed: str
    edit_what: str
    comma: str
    of_pages: str
    said_before: str
    closest_before: str
    not_said_before: str
    past_not_read: str
    thinking_past: str
    thinking_whole: str
    thinking_memory: str
    remembered: str
    remembered_all: str
    remembered_nothing: str
    memory_not_read: str
    understood: str
    understood_remembered: str
    understood_forget: str
    following: str
    thinking_skill: str
    thinking_steps: str
    failures: Mapping[str, str]

    def complaint(self, failure: str) -> str:
        return self.failures.get(failure, self.failures["tool_failed"])


ENGLISH = Words(
    notice=(
        "*I am the built-in offline assistant, not a language model: I find and quote passages by the words they share "
        "with your question, and understand nothing. To connect a model, set OPENAI_API_KEY or OPENAI_BASE_URL.*"
    ),
    greeting=(
        "Hello! Put documents into the library or attach a file, and ask about them; I find the passages that answer "
        "you and quote them."
    ),
    thanks="You're welcome.",
    about_us=(
        "Without a language model I can do a few things, all by rules:\n\n"
        "- search your documents and read the files you attach, and quote what answers your question, with its source\n"
        "- say so when they do not answer it\n"
        "- look up what was said before, here and in your other conversations\n"
        "- hold two things against each other, and list what the documents name\n"
        "- pick the sentences that say what a document is about\n"
        "- put together a report with its sources, save a note, replace words in a file\n\n"
        "I cannot write, reason, calculate or answer from general knowledge."
    ),
    no_files=(
        "I can't answer that: no language model is connected, and there is no document here to look it up in. Put one "
        "that says it into the library, or attach it, and I will find the passage."
    ),
    no_tool="I can't read files in this conversation: the tool for it is not available.",
    found="This is what {name} says:",
    found_in="This is what the files say:",
    weak="No passage in {name} clearly answers this. The closest:",
    nothing="I found nothing about this in {name}. Other words, as the file may put it, could help.",
    summary="The sentences of {name} that say most about it:",
    summary_line="- {text} ({place})",
    note_name="notes-on-{stem}.md",
    outline="Its headings: {headings}",
    file_line="{name}, {place}",
    page="page {n}",
    line="line {n}",
    character="character {n}",
    under='under "{heading}"',
    read_up_to="I read {name} up to {place}; what comes after it I have not looked at.",
    unreadable="I could not read {name}: {complaint}",
    empty_file="{name} holds no text.",
    no_page="{name} has no page {n} that I could read.",
    files_are="The files of this conversation:",
    no_files_here="This conversation has no files.",
    not_listed="I could not list the files: {complaint}",
    saved="Saved as {name}.",
    not_saved="It could not be saved: {complaint}",
    nothing_to_save='Tell me what to save, for instance: save a note: "call the printer on Monday".',
    thinking_read="The answer has to come from {names}; I read it first.",
    thinking_on="{name} goes on; I read further.",
    thinking_search="I look for passages about: {terms}.",
    thinking_plain="There is nothing to look up for this.",
    thinking_save="A note is to be saved as {name}.",
    thinking_around="The passages found do not settle it; I read on around the closest one.",
    thinking_list="I look which documents there are.",
    thinking_report="The report is made of {count} passages.",
    documents_say="This is what your documents say:",
    not_said="Your documents do not say this.",
    no_passage="I found no passage that says this.",
    closest="The closest passage is in {name}. It shares words with the question, and does not answer it:",
    unread="Not covered, because not read yet: {names}.",
    not_searched="I could not search your documents: {complaint}",
    compared="{first} and {second}, in the words of the documents:",
    nothing_found="nothing found",
    named_in="The documents name these:",
    documents_are="Your documents ({count}):",
    no_documents="There are no documents.",
    being_read="being read, not searchable yet",
    not_readable="cannot be read",
    pages_long="{n} pages",
    report_title="Report: {topic}",
    report_name="report-{stem}.md",
    report_intro="Put together by rules, without a language model: quotations with their sources. Documents: {count}.",
    report_overview="Overview",
    report_rest="General",
    sources_listed=" Sources listed in it: {count}.",
    edit_what="There is no file here that I could change. Name it: replace “this” with “that” in notes.md.",
    comma=", ",
    of_pages="{place} of {pages}",
    said_before="This was said before:",
    closest_before="I found no clear answer in what was said before. The closest:",
    not_said_before="I found nothing about this in what was said before.",
    past_not_read="I could not look up what was said before: {complaint}",
    thinking_past="This was said before; I look it up.",
    thinking_whole="The excerpt does not settle it; I read the whole message.",
    thinking_memory="This is about the person; I look at what is remembered.",
    remembered="This is remembered of what you said:",
    remembered_all="This is what I remember about you:",
    remembered_nothing="I remember nothing about you.",
    memory_not_read="I could not look up what is remembered: {complaint}",
    understood="Understood.",
    understood_remembered=(
        "Understood. What you say about yourself is remembered after this answer, unless you switched that off; you "
        "find it under Memories."
    ),
    understood_forget=(
        "Understood. What you want forgotten is looked for after this answer; under Memories you see what is left, and "
        "can delete it."
    ),
    following="Following the skill “{name}”, by rules, with quotations only:",
    thinking_skill="The skill {name} says how this is done; I read it.",
    thinking_steps="I follow the steps of the skill {name}.",
    failures=failures.ENGLISH,
)

CHINESE = Words(
    notice=(
        "我是内置的离线助手，不是语言模型：我只按词语与问题的重合程度查找并引用原文，并不理解内容。"
        "要连接模型，请设置 OPENAI_API_KEY 或 OPENAI_BASE_URL。"
    ),
    greeting="你好！把文档放进资料库，或附上文件，然后提问；我会找出能回答的原文并引用。",
    thanks="不客气。",
    about_us=(
        "没有语言模型时，我按规则能做这些事：\n\n"
        "- 查找你的文档、读取你附上的文件，引用能回答问题的原文，并注明来源\n"
        "- 文档没有回答时明确说明\n"
        "- 查找以前说过的话，包括你的其他对话\n"
        "- 对比两样东西，列出文档中提到的内容\n"
        "- 挑出最能说明文档内容的句子\n"
        "- 汇编带来源的报告，保存笔记，替换文件中的词句\n\n"
        "我不会写作、推理、计算，也不能凭常识回答。"
    ),
    no_files="这个问题我答不了：没有连接语言模型，这里也没有可查的文档。请把写有答案的文档放进资料库或附上，我来找出原文。",
    no_tool="本对话中没有读取文件的工具，我读不了文件。",
    found="{name} 中是这样写的：",
    found_in="文件中是这样写的：",
    weak="{name} 中没有明确回答这个问题的段落，最接近的是：",
    nothing="在 {name} 中没有找到相关内容。换成文件里可能用的词，也许能找到。",
    summary="{name} 中最能说明其内容的句子：",
    summary_line="- {text}（{place}）",
    note_name="{stem}-笔记.md",
    outline="标题：{headings}",
    file_line="{name}，{place}",
    page="第 {n} 页",
    line="第 {n} 行",
    character="第 {n} 个字符",
    under="“{heading}”一节",
    read_up_to="{name} 我只读到{place}，之后的内容没有看。",
    unreadable="{name} 读不了：{complaint}",
    empty_file="{name} 中没有文字。",
    no_page="{name} 中没有我能读到的第 {n} 页。",
    files_are="本对话中的文件：",
    no_files_here="本对话中没有文件。",
    not_listed="列不出文件：{complaint}",
    saved="已保存为 {name}。",
    not_saved="没能保存：{complaint}",
    nothing_to_save="请告诉我要保存什么，例如：保存笔记：“周一给印刷厂打电话”。",
    thinking_read="答案要从 {names} 里找，先读文件。",
    thinking_on="{name} 还没读完，继续读。",
    thinking_search="查找与这些词有关的段落：{terms}。",
    thinking_plain="这句话不需要查文件。",
    thinking_save="要把笔记保存为 {name}。",
    thinking_around="找到的段落还不够，继续读最接近的那一段前后。",
    thinking_list="先看看有哪些文档。",
    thinking_report="报告由 {count} 段原文组成。",
    documents_say="你的文档中是这样写的：",
    not_said="你的文档中没有说明这一点。",
    no_passage="没有找到说明这一点的段落。",
    closest="最接近的段落在 {name} 中。它与问题有相同的词语，但没有回答问题：",
    unread="以下文档尚未读完，不在查找范围内：{names}。",
    not_searched="查找不了你的文档：{complaint}",
    compared="{first}与{second}，文档中的原文如下：",
    nothing_found="没有找到",
    named_in="文档中提到的有：",
    documents_are="你有 {count} 份文档：",
    no_documents="没有文档。",
    being_read="正在读取，还不能查找",
    not_readable="读不了",
    pages_long="{n} 页",
    report_title="报告：{topic}",
    report_name="报告-{stem}.md",
    report_intro="本报告不经语言模型、按规则汇编：引自 {count} 份文档的原文，每句都注明来源。",
    report_overview="概要",
    report_rest="综合",
    sources_listed="其中列出 {count} 处来源。",
    edit_what="这里没有可以修改的文件。请写明文件名，例如：把 笔记.md 中的“这个”改成“那个”。",
    comma="、",
    of_pages="{place}（共 {pages} 页）",
    said_before="之前是这样说的：",
    closest_before="以前的消息中没有明确的回答，最接近的是：",
    not_said_before="在以前的消息中没有找到相关内容。",
    past_not_read="查找不了以前的消息：{complaint}",
    thinking_past="问的是以前说过的事，先查找以前的消息。",
    thinking_whole="摘录还不够，读一读整条消息。",
    thinking_memory="问的是关于你自己的事，看看记住了什么。",
    remembered="根据你以前说过的话，记住的有：",
    remembered_all="关于你，我记得这些：",
    remembered_nothing="我没有记住任何关于你的内容。",
    memory_not_read="查看不了记忆：{complaint}",
    understood="明白。",
    understood_remembered="明白。你关于自己所说的内容，会在这条回答之后记住（除非你关闭了记忆）；可以在“记忆”中查看。",
    understood_forget="明白。你想忘掉的内容，会在这条回答之后查找；剩下的可以在“记忆”中查看和删除。",
    following="按技能“{name}”的步骤，依规则摘引原文：",
    thinking_skill="技能 {name} 说明了这类任务怎么做，先读一读。",
    thinking_steps="按技能 {name} 的步骤进行。",
    failures=failures.CHINESE,
)


def words(*, wide: bool) -> Words:
    return CHINESE if wide else ENGLISH
