// What every page has: theme, time zone, menus, sidebar, toasts, IME-safe fields.
import { toggleFind, watchFind } from "find";
import { guard } from "ime";
import { showShortcuts, watchKeys } from "keys";
import { restoreSidebar, toggleSidebar, watchSidebar } from "sidebar";
import { watchToasts } from "toast";

const YEAR_S = 365 * 24 * 3600;

function keep(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=${value ? YEAR_S : 0}; samesite=lax${secure}`;
}

function theme(choice) {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
  }
  keep("theme", choice);
}

function showPassword(button) {
  const field = document.getElementById(button.getAttribute("aria-controls"));
  const show = field.type === "password";
  field.type = show ? "text" : "password";
  button.setAttribute("aria-pressed", String(show));
}

// Only one menu is open; a press outside or Esc closes it and gives the focus back.
function menus() {
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll(".menu-of[open]")) {
      if (!menu.contains(e.target) || e.target.closest(".menu-item")) menu.open = false;
    }
  });
  document.addEventListener("keydown", (e) => {
    const menu = document.querySelector(".menu-of[open]");
    if (!menu) return;
    if (e.key === "Escape") {
      e.preventDefault();
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      const all = [...menu.querySelectorAll("summary, .menu :is(a, button):not([hidden])")];
      const at = all.indexOf(document.activeElement);
      if (at < 0) return;
      e.preventDefault();
      all[(at + (e.key === "ArrowDown" ? 1 : all.length - 1)) % all.length].focus();
    }
  });
}

// Whoever signs out in one tab is signed out in all of them, and sees it there.
function leaving() {
  document.addEventListener("submit", (e) => { if (e.target.id === "sign-out") sessionStorage.setItem("leaving", "1"); });
  if (sessionStorage.getItem("leaving") && document.querySelector(".signin")) localStorage.setItem("left", String(Date.now()));
  sessionStorage.removeItem("leaving");
  addEventListener("storage", (e) => { if (e.key === "left") location.reload(); });
}

keep("tz", Intl.DateTimeFormat().resolvedOptions().timeZone);
guard();
menus();
leaving();
restoreSidebar();
watchSidebar();
watchFind();
watchToasts(document.getElementById("toasts"));
if (!document.getElementById("composer")) watchKeys();
document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-act], [data-theme-choice]");
  if (!button) return;
  if ("themeChoice" in button.dataset) theme(button.dataset.themeChoice);
  else if (button.dataset.act === "show-password") showPassword(button);
  else if (button.dataset.act === "toggle-sidebar") toggleSidebar();
  else if (button.dataset.act === "close-sidebar" && document.body.dataset.side) document.body.dataset.side = "closed";
  else if (button.dataset.act === "shortcuts") showShortcuts();
  else if (button.dataset.act === "find" && !e.ctrlKey && !e.metaKey && !e.shiftKey && toggleFind()) e.preventDefault();
});
