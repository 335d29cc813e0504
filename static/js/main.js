// The conversation page: makes the parts, connects them, and routes what is pressed in the transcript.
import { Announcer } from "announce";
import { Composer } from "composer";
import { Drafts, newThreadId, newThreadUsed } from "drafts";
import { edit } from "edit";
import { Feedback } from "feedback";
import { Gone } from "gone";
import { hints } from "hints";
import { watchKeys } from "keys";
import { watchLanding } from "landing";
import { answerMarkdown } from "markdown";
import { MemoryFoot } from "memoryfoot";
import { Panel } from "panel";
import { Pill } from "pill";
import { Queue } from "queue";
import { isOver } from "reduce";
import { renameHere, showTitle } from "rename";
import { Scroll } from "scroll";
import { adoptThread } from "sidebar";
import { Socket } from "socket";
import { Thread } from "thread";
import { Transcript } from "transcript";
import { Upkeep } from "upkeep";
import { Uploads } from "uploads";
import { Versions } from "versions";
import { View } from "view";
import * as welcome from "welcome";
import { say, slot } from "words";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const csrf = document.body.dataset.csrf;
const isNew = "new" in main.dataset;
const id = isNew ? newThreadId(main.dataset.thread) : main.dataset.thread;

const announcer = new Announcer();
const pill = new Pill(byId("pill"), (words) => announcer.shout(words));
const drafts = new Drafts(id);
const scroll = new Scroll({
  box: byId("scroller"), thread: byId("thread"), dock: document.querySelector(".composer-dock"), reserve: byId("reserve"),
  button: byId("to-new"), say,
});
const view = new View(byId("live"));
let composer = null;
let thread = null;
let socket = null;

const uploads = new Uploads({
  list: byId("chips"), threadId: id, url: main.dataset.upload, max: Number(main.dataset.maxFiles), csrf,
  changed: () => composer?.changed(),
});
composer = new Composer({
  form: byId("composer"), uploads, drafts,
  on: { send: (message) => thread.send(message), editLast: () => editLast() },
});
const queue = new Queue({ csrf, on: { now: sendNow, edit: (message) => composer.restore(message) } });
const gone = new Gone({ node: byId("gone"), composer, shout: (words) => announcer.shout(words) });
const transcript = new Transcript({
  main, id, exists: !isNew, scroll, csrf,
  on: {
    run: () => (thread.state.phase === "sending" ? null : thread.state.runId),
    replaced: (known) => thread.replaced(known),
    unfinished: (message) => composer.restore(message),
    gone: () => gone.show(),
  },
});
const versions = new Versions({ transcript, csrf });
const feedback = new Feedback({ csrf, address: () => transcript.address });
const memoryFoot = new MemoryFoot({ csrf, on: { address: () => transcript.address, told: () => transcript.marks() } });
const upkeep = new Upkeep({ csrf, on: { address: () => transcript.address, told: () => transcript.marks() } });

thread = new Thread(id, transcript.known, {
  view, scroll, composer, queue, announcer, drafts, transcript, started,
  hint: hints({ id, queue, transcript, gone, upkeep, idle: () => isOver(thread.state) }),
  send: (frame) => socket?.send(frame) ?? false,
  isOpen: () => socket?.isOpen ?? false,
  wake: () => socket?.wake(),
});
const panel = new Panel(byId("panel"), { csrf, hold: (change) => scroll.hold(change) });
document.addEventListener("workbench:artifact", (e) => panel.artifact(e.detail.ref, e.detail.runId));
scroll.open(`scroll:${id}`);
const landed = watchLanding({ main, show: (node) => scroll.show(node), address: () => transcript.address });
socket = new Socket(`${location.origin.replace(/^http/, "ws")}/ws/agui/`, {
  open: () => { pill.back(); thread.opened(); },
  frame: (frame) => thread.frame(frame),
  lost: () => { pill.lost(socket?.lostAt ?? Date.now()); thread.delivery.lost(); },
  signedOut: () => pill.signedOut(),
});
transcript.seen();
if (!landed && !matchMedia("(pointer: coarse)").matches) composer.focus(); // on a phone the keyboard would cover the page
watchKeys({ stop: () => thread.stop(), focusComposer: () => composer.focus(), copyLast });
document.addEventListener("workbench:title", (e) => showTitle(e.detail));
document.addEventListener("click", pressed);
const wish = isNew && new URLSearchParams(location.search).get("ask"); // the search leads here with what it did not find
if (wish) {
  composer.begin(wish, false);
  history.replaceState(null, "", location.pathname);
}
main.dataset.ready = "";

// A new conversation gets its address with its first message.
function started(text) {
  if (!("new" in main.dataset)) return;
  welcome.leave(main);
  newThreadUsed();
  transcript.exists();
  history.replaceState(null, "", transcript.address);
  byId("actions").hidden = false;
  byId("title").disabled = false;
  byId("delete-here").action = `${transcript.address}delete/`;
  byId("inspect-here").href = byId("inspect-here").href.replace(main.dataset.thread, id);
  queue.node.dataset.address = `${transcript.address}queue/`;
  adoptThread(id);
  showTitle(text.split("\n")[0].slice(0, 60));
}

function sendNow(message) {
  thread.send({ ...message, steer: !isOver(thread.state) });
}

function pressed(e) {
  const button = e.target.closest("[data-act]");
  const act = button?.dataset.act;
  const article = e.target.closest("#thread article");
  const acts = {
    stop: () => { thread.stop(); composer.focus(); },
    follow: () => { scroll.followNow(); composer.focus(); },
    "go-latest": () => goLatest(e),
    "rename-here": () => renameHere(`${transcript.address}rename/`, csrf),
    "stop-step": () => { thread.stopStep(button.dataset.call); button.disabled = true; composer.focus(); },
    line: () => versions.go(button),
    memory: () => memoryFoot.act(button),
    thumb: () => feedback.act(button),
    "why-close": () => feedback.close(button.form),
    starter: () => welcome.start(button, composer),
    undelete: () => gone.undo(transcript.address, csrf),
    "start-anew": () => gone.takeAlong(),
    "leave-landed": () => { byId("landed").remove(); composer.focus(); },
    retry: () => again("retry", article),
    continue: () => again("continue", article),
    edit: () => change(article),
    "edit-asked": () => change(view.said(article.dataset.asked)),
    resend: () => thread.delivery.again(article.dataset.message),
    unsend: () => { const entry = thread.delivery.unsend(article.dataset.message); if (entry) composer.restore(entry); },
    discard: () => { thread.delivery.unsend(article.dataset.message); composer.focus(); },
    "copy-answer": () => copy(answerMarkdown(article)),
    "copy-said": () => copy(slot(article, "text").textContent),
    "copy-code": () => copy(e.target.closest(".code").querySelector("pre").textContent),
    "copy-reference": () => copy(e.target.closest("button").textContent),
  };
  if (Object.hasOwn(acts, act ?? "")) acts[act]();
}

function again(action, article) {
  if (action === "continue") return thread.again("continue", article.dataset.message);
  const asked = view.said(article.dataset.asked) ?? [...document.querySelectorAll("#thread .msg-user")].at(-1);
  if (!asked) return undefined;
  view.cutFrom(asked, { itself: false });
  thread.again("retry", asked.dataset.message);
  composer.focus();
  return undefined;
}

function change(article) {
  if (!article || !isOver(thread.state)) return false;
  edit(article, (message) => {
    view.cutFrom(article, { itself: true });
    thread.again("edit", article.dataset.message, message);
    composer.focus();
  });
  return true;
}

function editLast() {
  return change([...document.querySelectorAll("#thread .msg-user")].findLast((a) => !a.querySelector("[data-act=edit]").hidden));
}

function goLatest(e) {
  e.preventDefault();
  const last = [...document.querySelectorAll("#thread .msg-assistant")].at(-1);
  if (!last) return;
  last.tabIndex = -1;
  last.focus();
}

function copyLast() {
  const last = [...document.querySelectorAll("#thread .msg-assistant")].at(-1);
  return last ? copy(answerMarkdown(last)) : false;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  announcer.say(say("copied"));
}
