// Where the reader looks. One scroll owner; `follow` sticks to the end, `anchor` is the message put at the top.
// Whoever moves up lets go of the end: the page hears of it before the browser scrolls, and does not scroll over it.

const NEAR_PX = 32;
const MOVED_PX = 5;
const TOP_PX = 16;
const CLAMP_EM = 12; // what stays visible of a long message
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);

export class Scroll {
  #box;
  #thread;
  #dock;
  #reserve;
  #button;
  #anchor = null;
  #last = 0;
  #seenBlocks = 0;
  #blocks = 0;
  #held = false; // a finger lies on the text
  #say;
  follow = false;

  constructor({ box, thread, dock, reserve, button, say }) {
    this.#box = box;
    this.#thread = thread;
    this.#dock = dock;
    this.#reserve = reserve;
    this.#button = button;
    this.#say = say;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#hearReader();
    box.addEventListener("toggle", () => { this.follow = false; this.settle(); }, true);
    document.addEventListener("selectionchange", () => {
      const selection = getSelection();
      if (!selection.isCollapsed && thread.contains(selection.anchorNode)) this.follow = false;
    });
    new ResizeObserver(() => this.settle()).observe(dock);
  }

  // Puts a message just sent under the top edge; of a long one its last lines stay visible.
  place(node) {
    this.#anchor = node;
    this.follow = false;
    this.#seenBlocks = this.#blocks = 0;
    this.settle();
    this.#box.scrollTop = this.#topOf(node) + above(node) - TOP_PX;
    this.#last = this.#box.scrollTop;
    this.#show();
  }

  // After the transcript grew. blocks: finished blocks of this run so far, for the button.
  settle(blocks = this.#blocks) {
    this.#blocks = blocks;
    this.#makeRoom();
    if (this.follow && !this.#held) this.#toEnd();
    this.#show();
  }

  followNow() {
    this.follow = true;
    this.#toEnd();
    this.#show();
  }

  // Opens a thread at what the address names, else where the reader left it, else with the person's last message at
  // the top.
  open(key) {
    const kept = sessionStorage.getItem(key);
    const named = document.getElementById(location.hash.slice(1));
    const saids = this.#thread.querySelectorAll(".msg-user");
    const last = saids[saids.length - 1];
    if (named && this.#thread.contains(named)) {
      if (named.closest("details")) named.closest("details").open = true;
      this.#box.scrollTop = this.#topOf(named.closest("article, details")) - TOP_PX;
    } else if (kept !== null) this.#box.scrollTop = Number(kept);
    else if (last) this.#box.scrollTop = this.#topOf(last) - TOP_PX;
    this.#last = this.#box.scrollTop;
    addEventListener("pagehide", () => sessionStorage.setItem(key, String(this.#box.scrollTop)));
    this.#show();
  }

  // Puts what was asked for into the upper third.
  show(node) {
    this.follow = false;
    this.#box.scrollTop = this.#topOf(node) - Math.max(TOP_PX, (this.#box.clientHeight - this.#dock.offsetHeight - node.offsetHeight) / 3);
    this.#last = this.#box.scrollTop;
    this.#show();
  }

  // Runs a change above the viewport without moving what is read, also if it is fetched anew meanwhile.
  hold(change) {
    const edge = this.#box.getBoundingClientRect().top;
    const pin = [...this.#thread.querySelectorAll("article")].find((a) => a.getBoundingClientRect().bottom > edge);
    const before = pin?.getBoundingClientRect().top ?? 0;
    const heading = pin?.getAttribute("aria-labelledby");
    change();
    const now = pin?.isConnected ? pin : document.getElementById(heading)?.closest("article");
    if (now) this.#box.scrollTop += now.getBoundingClientRect().top - before;
    this.#last = this.#box.scrollTop;
  }

  #hearReader() {
    // Not passive: else the browser scrolls first, and the next text scrolls over it before the wheel is heard of.
    this.#box.addEventListener("wheel", (e) => { if (e.deltaY < 0) this.#letGo(); }, { passive: false });
    this.#box.addEventListener("keydown", (e) => {
      const up = UP_KEYS.has(e.key) || (e.key === " " && e.shiftKey);
      if (up && !e.target.closest("input, textarea, select")) this.#letGo();
    });
    this.#box.addEventListener("pointerdown", (e) => {
      if (e.target === this.#box && e.offsetX >= this.#box.clientWidth) this.#letGo(); // the scrollbar
    });
    const touch = (e) => {
      this.#held = e.touches.length > 0;
      this.settle();
    };
    for (const kind of ["touchstart", "touchend", "touchcancel"]) {
      this.#box.addEventListener(kind, touch, { passive: true });
    }
  }

  #letGo() {
    this.follow = false;
    this.#show();
  }

  #scrolled() {
    const now = this.#box.scrollTop;
    if (now < this.#last - MOVED_PX) this.follow = false;
    else if (now > this.#last && Math.abs(this.#hidden()) <= NEAR_PX) this.follow = true;
    this.#last = now;
    this.#show();
  }

  // Space below the text, so that the placed message can stand at the top from its first moment.
  #makeRoom() {
    if (!this.#anchor?.isConnected) {
      this.#reserve.style.blockSize = "0px";
      return;
    }
    const seen = this.#box.clientHeight - this.#dock.offsetHeight;
    const below = this.#endOfText() - this.#topOf(this.#anchor);
    const padding = parseFloat(getComputedStyle(this.#thread).paddingBlockEnd);
    this.#reserve.style.blockSize = `${Math.max(0, seen - below - TOP_PX - padding + above(this.#anchor))}px`;
  }

  #topOf(node) {
    return node.getBoundingClientRect().top - this.#box.getBoundingClientRect().top + this.#box.scrollTop;
  }

  #endOfText() {
    return this.#topOf(this.#reserve);
  }

  // Pixels of text below what can be seen over the composer.
  #hidden() {
    return this.#endOfText() - this.#box.scrollTop - (this.#box.clientHeight - this.#dock.offsetHeight);
  }

  #toEnd() {
    this.#box.scrollTop += Math.max(0, this.#hidden() + TOP_PX);
    this.#last = this.#box.scrollTop;
    this.#seenBlocks = this.#blocks;
  }

  #show() {
    const away = !this.follow && this.#hidden() > NEAR_PX;
    this.#button.hidden = !away;
    if (!away) {
      this.#seenBlocks = this.#blocks;
      return;
    }
    const fresh = this.#blocks - this.#seenBlocks;
    const text = fresh > 1 ? this.#say("newBlocks", { n: fresh }) : this.#say(fresh ? "newText" : "toEnd");
    const node = this.#button.querySelector("[data-slot=text]");
    if (node.textContent !== text) node.textContent = text;
  }
}

// Pixels of a placed message that stand above the edge.
function above(node) {
  return Math.max(0, node.offsetHeight - parseFloat(getComputedStyle(node).fontSize) * CLAMP_EM);
}
