// One WebSocket that comes back: at once, then with growing, jittered pauses up to 30 s, for ever.
// A ping every 25 s; an open socket that stays silent is dead. Knows frames, not what they mean.

const PING_MS = 25_000;
const ANSWER_MS = 10_000;
const CAP_MS = 30_000;
const SIGNED_OUT = 4401;

export class Socket {
  #url;
  #on;
  #socket = null;
  #tries = 0;
  #timer = 0;
  #ping = 0;
  #heardAt = 0;
  #waitMs = 0;
  #stopped = false;
  lostAt = Date.now();

  // on: { open(), frame(object), lost(), signedOut() }
  constructor(url, on) {
    this.#url = url;
    this.#on = on;
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", (e) => { if (e.persisted) this.wake(); });
    addEventListener("offline", () => this.#drop());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.wake(); });
    this.#connect();
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  send(frame) {
    if (!this.isOpen) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  // Somebody looks, or the network is back: connect now, or make sure that the open socket still lives.
  wake() {
    if (this.#stopped) return;
    if (this.isOpen) {
      if (Date.now() - this.#heardAt > 5_000) this.#probe();
    } else if (this.#socket?.readyState !== WebSocket.CONNECTING) {
      this.#tries = 0;
      this.#connect();
    }
  }

  #connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#url, "agui.v1");
    this.#socket = socket;
    socket.addEventListener("open", () => { if (socket === this.#socket) this.#opened(); });
    socket.addEventListener("message", (e) => { if (socket === this.#socket) this.#heard(e.data); });
    socket.addEventListener("close", (e) => { if (socket === this.#socket) this.#closed(e.code); });
    this.#timer = setTimeout(() => { if (socket.readyState === WebSocket.CONNECTING) this.#drop(); }, ANSWER_MS);
  }

  #opened() {
    clearTimeout(this.#timer);
    this.#tries = 0;
    this.lostAt = null;
    this.#heardAt = Date.now();
    this.#ping = setInterval(() => this.#probe(), PING_MS);
    this.#on.open();
  }

  #heard(data) {
    this.#heardAt = Date.now();
    const frame = JSON.parse(data);
    if (frame.type === "closing") this.#waitMs = frame.retryAfterMs ?? 0;
    this.#on.frame(frame);
  }

  #probe() {
    const asked = Date.now();
    const socket = this.#socket;
    this.send({ type: "ping" });
    setTimeout(() => { if (socket === this.#socket && this.isOpen && this.#heardAt < asked) this.#drop(); }, ANSWER_MS);
  }

  // Gives the socket up without waiting for its goodbye, which a dead network never brings.
  #drop() {
    const socket = this.#socket;
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    this.#closed(0);
    socket.close();
  }

  #closed(code) {
    clearInterval(this.#ping);
    clearTimeout(this.#timer);
    this.#socket = null;
    this.lostAt ??= Date.now();
    if (code === SIGNED_OUT) {
      this.#stopped = true;
      this.#on.signedOut();
      return;
    }
    this.#on.lost();
    const pause = this.#tries === 0 ? 0 : Math.min(CAP_MS, 500 * 2 ** this.#tries) * (0.5 + Math.random() / 2);
    this.#tries += 1;
    this.#timer = setTimeout(() => this.#connect(), Math.max(pause, this.#waitMs));
    this.#waitMs = 0;
  }
}
