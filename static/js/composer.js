// The field a message is written in: keys, size, Send and Stop, drop and paste. What is sent, thread.js decides.
import { Gauge } from "gauge";
import { imeOf } from "ime";
import { Sources } from "sources";
import { say } from "words";

const TOUCH = matchMedia("(pointer: coarse)");

export class Composer {
  #form;
  #text;
  #uploads;
  #drafts;
  #on;
  #ime;
  #phase = "idle";
  #sources;
  #gauge;
  #begun = ""; // a starter's text

  // on: { send({ text, files, steer }), stop(), editLast() }
  constructor({ form, uploads, drafts, on }) {
    this.#form = form;
    this.#text = form.querySelector("textarea");
    this.#uploads = uploads;
    this.#drafts = drafts;
    this.#on = on;
    this.#ime = imeOf(this.#text);
    form.addEventListener("submit", (e) => { e.preventDefault(); this.#send(false); });
    this.#text.addEventListener("keydown", (e) => this.#key(e));
    this.#text.addEventListener("input", () => this.changed());
    this.#text.addEventListener("paste", (e) => { if (uploads.paste(e.clipboardData)) e.preventDefault(); });
    this.#drop();
    const picker = form.querySelector("#files");
    form.querySelector("#attach").addEventListener("click", () => picker.click());
    const pick = () => {
      uploads.add([...picker.files]);
      picker.value = "";
      this.focus();
    };
    picker.addEventListener("change", pick);
    if (picker.files.length) pick(); // chosen before this script ran
    this.#chooseModel(form.querySelector("#model"));
    this.#sources = new Sources(form.querySelector("#scope"), document.getElementById("scope-dialog"), drafts);
    this.#gauge = new Gauge(form.querySelector("#gauge"), JSON.parse(document.getElementById("window").textContent));
    const { text, files } = drafts.load();
    if (text && !this.#text.value) this.#text.value = text;
    if (files.length) uploads.restore(files);
    this.changed();
  }

  get isEmpty() {
    return !this.#text.value.trim() && !this.#uploads.ready.length;
  }

  get text() {
    return this.#text.value.trim();
  }

  // What the person chose for the next answer: { model: "" for the default, sources: null for all documents, or ids }.
  get choices() {
    return { model: this.#form.querySelector("#model") ? this.#drafts.model : "", sources: this.#sources.chosen };
  }

  // Puts a starter's text into the field; one that was put there before and not touched makes room for it.
  begin(text, attach) {
    if (this.#text.value === this.#begun) this.#text.value = "";
    this.#begun = text;
    this.restore({ text, files: [] });
    if (attach && !this.#uploads.ready.length) this.#form.querySelector("#files").click();
  }

  focus() {
    this.#text.focus({ preventScroll: true });
  }

  // Puts a message back that did not get through, or was taken out of the queue. What stands there already stays.
  restore({ text, files }) {
    this.#text.value = [text, this.#text.value].filter(Boolean).join("\n\n");
    this.#uploads.restore(files);
    this.changed();
    this.focus();
  }

  // phase, window: of the run, as in reduce.js. While one goes on, Stop stands where Send was and Enter queues.
  show({ phase, window: used }) {
    this.#gauge.show(used);
    document.getElementById("main").dataset.phase = phase;
    if (phase === this.#phase) return;
    this.#phase = phase;
    const running = ["sending", "running", "stopping"].includes(phase);
    const stop = this.#form.querySelector("#stop");
    const stopping = phase === "stopping";
    this.#form.dataset.state = running ? "running" : "";
    stop.hidden = !running;
    stop.toggleAttribute("aria-busy", stopping);
    stop.setAttribute("aria-label", stopping ? stop.dataset.stopping : stop.dataset.stop);
    stop.querySelector(".icon").toggleAttribute("hidden", stopping);
    stop.querySelector(".ring").hidden = !stopping;
    const hint = this.#form.querySelector("#hint");
    hint.textContent = stopping ? stop.dataset.stopping : running ? hint.dataset.running : "";
    this.#form.querySelector("#send").hidden = running;
    this.#text.placeholder = say(running ? "placeholderRunning" : "placeholder");
    this.changed();
  }

  changed() {
    if (!this.#ime.composing) this.#drafts.save(this.#text.value, this.#uploads.ready);
    const can = !this.isEmpty && !this.#uploads.busy;
    this.#form.querySelector("#send").disabled = !can;
    const queue = this.#form.querySelector("#queue-send");
    queue.hidden = !can || this.#form.dataset.state !== "running";
    if (!CSS.supports("field-sizing", "content")) this.#grow();
  }

  #chooseModel(select) {
    if (!select) return;
    const known = [...select.options].some((option) => option.value === this.#drafts.model);
    if (known) select.value = this.#drafts.model;
    else this.#drafts.model = "";
    select.addEventListener("change", () => { this.#drafts.model = select.selectedIndex ? select.value : ""; });
  }

  #key(e) {
    if (this.#ime.owns(e)) return;
    const command = e.ctrlKey || e.metaKey;
    if (e.key === "Enter") {
      if (e.altKey || (e.shiftKey && !command) || (!command && TOUCH.matches)) return;
      e.preventDefault();
      if (!e.repeat) this.#send(command && e.shiftKey);
    } else if (e.key === "ArrowUp" && !command && !e.altKey && !e.shiftKey && !this.#text.value) {
      if (this.#on.editLast()) e.preventDefault();
    }
  }

  #send(steer) {
    if (this.isEmpty || this.#uploads.busy) return;
    const text = this.#text.value.trim();
    this.#text.value = "";
    const files = this.#uploads.take();
    this.#on.send({ text, files, steer });
    this.changed();
    this.focus();
  }

  #drop() {
    const main = document.getElementById("main");
    const hasFiles = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
    main.addEventListener("dragover", (e) => {
      if (!hasFiles(e)) return;
      e.preventDefault();
      this.#form.dataset.drop = "";
    });
    main.addEventListener("dragleave", (e) => { if (!main.contains(e.relatedTarget)) delete this.#form.dataset.drop; });
    main.addEventListener("drop", (e) => {
      delete this.#form.dataset.drop;
      if (!hasFiles(e)) return;
      e.preventDefault();
      this.#uploads.add([...e.dataTransfer.files]);
      this.focus();
    });
  }

  #grow() {
    this.#text.style.blockSize = "auto";
    this.#text.style.blockSize = `${this.#text.scrollHeight}px`;
  }
}
