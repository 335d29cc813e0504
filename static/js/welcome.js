// The empty page: its starters, and the composer in the middle, which goes to the foot with the first message.

const MOVE = { duration: 160, easing: "ease-out" };

export function start(starter, composer) {
  composer.begin(starter.dataset.text, "file" in starter.dataset);
}

export function leave(main) {
  const dock = document.querySelector(".composer-dock");
  const before = dock.getBoundingClientRect().top;
  delete main.dataset.new;
  for (const id of ["welcome", "starters"]) document.getElementById(id).hidden = true;
  const by = before - dock.getBoundingClientRect().top;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  dock.firstElementChild.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], MOVE);
}
