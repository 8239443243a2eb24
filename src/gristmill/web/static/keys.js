// The keyboard: / searches, j and k go through rows, Enter opens, Esc goes back, ? shows all keys.

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());

function move(step) {
  const all = rows();
  if (!all.length) return;
  const chosen = all.findIndex((row) => row.closest("[aria-current]"));
  const focused = all.indexOf(document.activeElement);
  const from = focused >= 0 ? focused : chosen;
  const next = from < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, from + step));
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
}

function go_back() {
  const menu = document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }
  document.querySelector("[data-back]")?.click();
}

const KEYS = {
  "/": () => document.getElementById("find")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.matches("input:not([type=checkbox]):not([type=radio]), select, textarea, [contenteditable]");
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return;
    if (typing) event.target.blur();
    else go_back();
    return;
  }
  if (typing || document.querySelector("dialog[open]")) return;
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
