// A document: its pages turn by keys, its progress comes as events, and each event refreshes what is shown.

import "./pages.js";
import { refresh } from "./live.js";

const head = document.getElementById("document-head");

// --- keys: the arrows turn pages

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.matches("input, select, textarea") || document.querySelector("dialog[open]")) return;
  const id = { ArrowLeft: "page-before", ArrowRight: "page-after" }[event.key];
  document.querySelector(`#${id}[href]`)?.click();
});

// --- events

let due = 0;

function refresh_soon() {
  if (due) return;
  due = setTimeout(() => {
    due = 0;
    refresh();
    // a page that had no text may have it now
    const page = document.querySelector("#page-view[data-waits]");
    if (page) window.htmx.ajax("GET", `/documents/${page.dataset.document}/pages/${page.dataset.number}/view`, { target: page, swap: "outerHTML" });
  }, 300);
}

function tell(event) {
  const list = document.getElementById("activity");
  if (!list) return;
  const state = JSON.parse(event.data);
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.className = "faint";
  time.textContent = new Date().toLocaleTimeString();
  const parts = (state.phases ?? []).map((one) => `${one.label} ${one.done}/${one.total}${one.failed ? `, ${one.failed} failed` : ""}`);
  line.append(time, ` ${state.status ?? event.type}${parts.length ? `: ${parts.join(" · ")}` : ""}`);
  list.append(line);
}

let source = null;

function listen() {
  source?.close();
  source = new EventSource(head.dataset.events);
  for (const name of ["progress", "ended", "gone", "message"]) {
    source.addEventListener(name, (event) => {
      tell(event);
      refresh_soon();
      if (name === "ended" || name === "gone") {
        source.close();
        const state = document.getElementById("activity-state");
        if (state) state.textContent = "nothing happens any more";
      }
    });
  }
}

if (head?.dataset.events) listen();
// after a retry there is work again
document.addEventListener("said", () => {
  head.dataset.events = `/api/documents/${head.dataset.document}/events`;
  listen();
});
