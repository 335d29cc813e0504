"""The form by which staff change an agent's context policy: one field per value, empty = as the agent comes with it.

What may be saved is what agents.runtime.policy.ContextPolicy takes. The names behind the words are its fields.
"""

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_lazy, pgettext, pgettext_lazy

from agents.models.agent_policy import AgentPolicy
from agents.runtime import policy as policies
from agents.runtime.policy import ContextPolicy, PolicyInvalid
from agents.stores.policies import own

OFF: Final = "off"
NONE: Final = "-"
OPTIONAL: Final = ("summary_events", "summary_tokens", "summary_idle_s", "summary_ratio")
LISTS: Final = ("allow", "compact_force", "compact_keep", "memory_tools")
CHOICES: Final = {
    "summary_join": policies.TRIGGER_JOINS,
    "template": policies.TEMPLATES,
    "placement": policies.PLACEMENTS,
    "preload_placement": policies.PRELOAD_PLACEMENTS,
    "summarise_in": policies.SUMMARISE_IN,
    "fork": policies.FORKS,
    "tailoring": policies.TAILORINGS,
    "timeline": policies.TIMELINES,
    "branch": policies.BRANCHES,
    "skill_mode": policies.SKILL_MODES,
}
NAMES: Final = tuple(field.name for field in fields(ContextPolicy))
_RANGE = re.compile(r"must be a (whole )?number from (\S+) to (\S+)\.$")

# What each value is called, and what it means.
WORDS: Final[dict[str, tuple[Any, Any]]] = {
    "summarise": (
        pgettext_lazy("policy", "Summarise"),
        gettext_lazy("Older messages are summarised, and the model reads the summary in their place."),
    ),
    "summary_events": (
        pgettext_lazy("policy", "After events"),
        gettext_lazy("Summarise after more than so many new events. “off” = not by events."),
    ),
    "summary_tokens": (
        pgettext_lazy("policy", "After tokens"),
        gettext_lazy("Summarise when a request has more than so many tokens. “off” = not by tokens."),
    ),
    "summary_idle_s": (
        pgettext_lazy("policy", "After a pause"),
        gettext_lazy("Summarise after a longer pause before a question, in seconds. “off” = not by pauses."),
    ),
    "summary_ratio": (
        pgettext_lazy("policy", "Share of the window"),
        gettext_lazy("Summarise when a request takes more of the window than this, 0 to 1. “off” = not by share."),
    ),
    "summary_floor": (
        pgettext_lazy("policy", "Never below"),
        gettext_lazy("The share of the window counts only above so many tokens."),
    ),
    "summary_join": (
        pgettext_lazy("policy", "Conditions"),
        gettext_lazy("any: one of the conditions above is enough. all: every one must hold."),
    ),
    "summary_words": (
        pgettext_lazy("policy", "Words"),
        gettext_lazy("How many words a summary is asked to have at most; it is never cut. 0 = no limit."),
    ),
    "summary_least": (
        pgettext_lazy("policy", "Least worth a call"),
        gettext_lazy("New events of fewer tokens are not summarised, since that would not pay."),
    ),
    "summary_timeout_s": (
        pgettext_lazy("policy", "Time for one summary"),
        gettext_lazy("In seconds. After it the summary is given up and the earlier one holds."),
    ),
    "summary_wait_s": (
        pgettext_lazy("policy", "Wait of a run"),
        gettext_lazy("In seconds. A run that waits longer for a summary goes on without it; a job makes it then."),
    ),
    "summary_model": (
        pgettext_lazy("policy", "Model for summaries"),
        gettext_lazy("Name of a configured model. “-” = the model that answers."),
    ),
    "keep_rounds": (
        pgettext_lazy("policy", "Rounds kept"),
        gettext_lazy("So many complete rounds at the end are not summarised."),
    ),
    "keep_tokens": (
        pgettext_lazy("policy", "Tokens kept"),
        gettext_lazy("As far as the kept rounds together have no more tokens than this."),
    ),
    "template": (
        pgettext_lazy("policy", "Template"),
        gettext_lazy("brief: a short text. materials: headings for knowledge work. worksite: for work on files."),
    ),
    "summarise_in": (
        pgettext_lazy("policy", "When"),
        gettext_lazy("background: by a job. run: also between the steps of a run, which waits for it."),
    ),
    "placement": (
        pgettext_lazy("policy", "Place of the summary"),
        gettext_lazy("system: in the system message. user: before the first message of the person."),
    ),
    "preload_placement": (
        pgettext_lazy("policy", "Place of what is preloaded"),
        gettext_lazy(
            "Where memories and recalled conversations go. system: the system message. user: before the first message "
            "of the person. turn: before the message that is answered, so that the provider’s cache holds longest."
        ),
    ),
    "fork": (
        pgettext_lazy("policy", "Reuse of the cached request"),
        gettext_lazy("The summary is asked for behind the run’s own request: off, on, or auto = where cheaper."),
    ),
    "cascade": (
        pgettext_lazy("policy", "Whole conversation too"),
        gettext_lazy("Bring the summary of the whole conversation up to date with that of a branch."),
    ),
    "allow": (
        pgettext_lazy("policy", "Branches with a summary"),
        gettext_lazy("Names, separated by commas. “-” = no branch, “off” = all of them."),
    ),
    "presummary_ratio": (
        pgettext_lazy("policy", "Summarise before sending"),
        gettext_lazy("A request that takes this share of the window is summarised before it is sent. 0 = never."),
    ),
    "compact": (
        pgettext_lazy("policy", "Shorten results"),
        gettext_lazy("Large results of earlier requests are shown to the model as placeholders; nothing is deleted."),
    ),
    "compact_over": (
        pgettext_lazy("policy", "Large from"),
        gettext_lazy("Results with more tokens than this are replaced."),
    ),
    "compact_keep_requests": (
        pgettext_lazy("policy", "Requests kept"),
        gettext_lazy("Results of the last so many completed requests stay whole."),
    ),
    "compact_oversized": (
        pgettext_lazy("policy", "Cut from"),
        gettext_lazy("Any result with more tokens is cut to its beginning and end. 0 = never."),
    ),
    "compact_force": (
        pgettext_lazy("policy", "Always replaced"),
        gettext_lazy("Names of tools, separated by commas, whose earlier results are always replaced. “-” = none."),
    ),
    "compact_keep": (
        pgettext_lazy("policy", "Never replaced"),
        gettext_lazy("Names of tools, separated by commas, whose results always stay whole. “-” = none."),
    ),
    "compact_step": (
        pgettext_lazy("policy", "Step"),
        gettext_lazy("Results are replaced only when this share of the request would go, 0 to 1."),
    ),
    "tailor": (
        pgettext_lazy("policy", "Leave rounds out"),
        gettext_lazy("As the last resort whole rounds are left out of a request that does not fit."),
    ),
    "tailoring": (
        pgettext_lazy("policy", "Which rounds"),
        gettext_lazy("middle: those between the first and the last. head: the oldest first. tail: the newest first."),
    ),
    "max_input_tokens": (
        pgettext_lazy("policy", "Most tokens of a request"),
        gettext_lazy("0 = what the model’s window allows."),
    ),
    "margin": (
        pgettext_lazy("policy", "Safety margin"),
        gettext_lazy("Share of the window that stays free because tokens are estimated, 0 to 0.9."),
    ),
    "output_reserve": (
        pgettext_lazy("policy", "Room for the answer"),
        gettext_lazy("Tokens that are kept free for the answer."),
    ),
    "protocol_overhead": (
        pgettext_lazy("policy", "Room for the protocol"),
        gettext_lazy("Tokens that are kept free for what the provider adds."),
    ),
    "input_floor": (
        pgettext_lazy("policy", "Least tokens of a request"),
        gettext_lazy("The budget of a request is never smaller, as far as the window has them."),
    ),
    "input_ratio": (
        pgettext_lazy("policy", "Most of the window"),
        gettext_lazy("A request takes at most this share of the window, 0 to 1."),
    ),
    "history_runs": (
        pgettext_lazy("policy", "Runs without a summary"),
        gettext_lazy("Without a summary, only the last so many runs are shown to the model. 0 = all."),
    ),
    "timeline": (
        pgettext_lazy("policy", "Which time"),
        gettext_lazy("all: the whole conversation. request: this request only. invocation: this agent’s turn only."),
    ),
    "branch": (
        pgettext_lazy("policy", "Which branches"),
        gettext_lazy("prefix: its own line up and down. subtree: itself and below. exact: itself. all: everything."),
    ),
    "session_tools": (
        pgettext_lazy("policy", "Search of the past"),
        gettext_lazy("The agent may search and load earlier messages and the person’s other conversations."),
    ),
    "preload_recall": (
        pgettext_lazy("policy", "Recall unasked"),
        gettext_lazy("For a question that plainly refers back, what is found is put before the model at once."),
    ),
    "preload_memory": (
        pgettext_lazy("policy", "Memories shown"),
        gettext_lazy(
            "So many of the person’s memories are put before the model: all if there are no more, else those that fit "
            "the question. 0 = none, -1 = all."
        ),
    ),
    "memory_tools": (
        pgettext_lazy("policy", "Memory tools"),
        gettext_lazy("Names of the memory tools that the model may call, separated by commas. “-” = none."),
    ),
    "remember": (
        pgettext_lazy("policy", "Remember"),
        gettext_lazy("After an answer, what the person said is read for what is worth remembering."),
    ),
    "memory_messages": (
        pgettext_lazy("policy", "Remember after messages"),
        gettext_lazy("Messages are read for memories once more than so many wait."),
    ),
    "memory_pause_s": (
        pgettext_lazy("policy", "Remember after seconds"),
        gettext_lazy("Messages of a conversation are read for memories no more often than this."),
    ),
    "memory_model": (
        pgettext_lazy("policy", "Model for memories"),
        gettext_lazy("Name of a configured model. “-” = the model that answers."),
    ),
    "skills": (
        pgettext_lazy("policy", "Skills"),
        gettext_lazy("The agent is told which skills the person has, and may load them."),
    ),
    "skill_mode": (
        pgettext_lazy("policy", "How long loaded"),
        gettext_lazy(
            "turn: a skill stays loaded until the answer is complete. once: for the next request to the model. "
            "session: for the whole conversation."
        ),
    ),
    "skills_loaded": (
        pgettext_lazy("policy", "Skills loaded at once"),
        gettext_lazy("At most so many stay loaded, those used last. 0 = no limit."),
    ),
    "skills_overview": (
        pgettext_lazy("policy", "Skills described"),
        gettext_lazy("So many skills are described to the model; of the others it gets the names."),
    ),
    "review": (
        pgettext_lazy("policy", "Learn"),
        gettext_lazy(
            "After an answer, what was done is looked at for a way of working worth keeping. It is only suggested."
        ),
    ),
    "review_calls": (
        pgettext_lazy("policy", "Learn from calls"),
        gettext_lazy(
            "So many calls of tools are worth a look. -1 = only corrections, and tools that worked after they failed."
        ),
    ),
    "review_model": (
        pgettext_lazy("policy", "Model for learning"),
        gettext_lazy("Name of a configured model. “-” = the model that answers."),
    ),
}


def shown(value: Any) -> str:
    """Return a value as the form takes it."""
    if value is None:
        return OFF
    if isinstance(value, bool):
        return pgettext("policy", "yes") if value else pgettext("policy", "no")
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or NONE  # a row may hold anything, and must still open to be mended
    return str(value) or NONE


def _help(name: str, agent: str) -> str:
    return gettext("%(meaning)s Comes with: %(value)s. Empty = as it comes.") % {
        "meaning": WORDS[name][1],
        "value": shown(getattr(own(agent), name)),
    }


def _field(name: str, agent: str) -> forms.Field:
    more: dict[str, Any] = {"required": False, "label": WORDS[name][0], "help_text": lazy(_help, str)(name, agent)}
    default = getattr(ContextPolicy(), name)
    if isinstance(default, bool):
        answers = (("", "—"), ("true", pgettext_lazy("policy", "yes")), ("false", pgettext_lazy("policy", "no")))
        return forms.ChoiceField(choices=answers, **more)
    if name in CHOICES:
        return forms.ChoiceField(choices=(("", "—"), *((choice, choice) for choice in CHOICES[name])), **more)
    return forms.CharField(max_length=2_000, strip=True, **more)


def _given(name: str, text: str) -> Any:
    """Return what was typed as the policy takes it; what is no number stays text, which the policy refuses."""
    default = getattr(ContextPolicy(), name)
    if isinstance(default, bool):
        return text == "true"
    if name in LISTS:
        names = [word for word in re.split(r"[,，\s]+", text) if word]
        return None if name == "allow" and text == OFF else [] if text == NONE else names
    if isinstance(default, str):
        return "" if text == NONE else text
    if text == OFF and name in OPTIONAL:
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _reason(error: PolicyInvalid) -> str:
    found = _RANGE.search(str(error))
    if found is None:
        return gettext("This value is not possible.")
    words = (
        gettext("A whole number from %(least)s to %(most)s, please.")
        if found[1]
        else gettext("A number from %(least)s to %(most)s, please.")
    )
    return words % {"least": found[2], "most": found[3]}


def known_agents() -> list[str]:
    """Return the names of the agents of this installation."""
    from agents import wiring  # noqa: PLC0415  # most of a second, which no other command need wait

    return [agent.name for agent in wiring.agents()]


if TYPE_CHECKING:
    Base = forms.ModelForm[AgentPolicy]
else:
    Base = forms.ModelForm  # takes no parameter when it runs


class PolicyForm(Base):
    """One agent's values. An agent that no process knows may be named, so that a policy can be ready before it is."""

    class Meta:
        model = AgentPolicy
        fields = ("agent",)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        agent = self.instance.agent
        self.fields["agent"].label = pgettext("admin", "agent")
        self.fields["agent"].help_text = gettext("Name of the agent: %(names)s.") % {"names": ", ".join(known_agents())}
        values = self.instance.values if isinstance(self.instance.values, dict) else {}
        for name in NAMES:
            self.fields[name] = _field(name, agent)
            if name in values:
                default = getattr(ContextPolicy(), name)
                value = values[name]
                self.initial[name] = str(value).lower() if isinstance(default, bool) else shown(value)

    def clean(self) -> dict[str, Any]:
        cleaned = dict(super().clean() or self.cleaned_data)
        agent = cleaned.get("agent", "")
        values: dict[str, Any] = {}
        for name in NAMES:
            if text := cleaned.get(name, ""):
                values[name] = _given(name, text)
        for name, value in values.items():
            try:
                ContextPolicy.of({name: value}, own(agent))
            except PolicyInvalid as error:
                self.add_error(name, _reason(error))
        self.instance.values = values
        return cleaned
