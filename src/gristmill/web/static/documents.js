// The list of documents: a row opens beside the list where there is room, filters act at once, files are added.

import "./upload.js";

const wide = window.matchMedia("(min-width: 1240px)");
const split = document.getElementById("split");
const pane = document.getElementById("pane");

async function open_row(link) {
  mark(link.closest("tr"));
  split.dataset.open = "";
  history.pushState({}, "", link.href);
  await window.htmx.ajax("GET", link.dataset.pane, { target: pane, swap: "innerHTML" });
}

function mark(row) {
  document.querySelectorAll("#document-rows tr[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
  row?.setAttribute("aria-current", "true");
}

function close_pane() {
  const row = document.querySelector("#document-rows tr[aria-current] a[data-row]");
  delete split.dataset.open;
  pane.replaceChildren();
  mark(null);
  const address = new URL(window.location.href);
  address.searchParams.delete("open");
  history.pushState({}, "", address);
  row?.focus();
}

document.addEventListener("click", (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  const link = event.target.closest("a[data-pane]");
  if (link && plain) {
    event.preventDefault();
    if (!wide.matches) window.location.assign(link.dataset.pane.replace(/\/pane$/, ""));
    else if (link.closest("tr").hasAttribute("aria-current")) document.querySelector("[data-open-page]")?.click();
    else open_row(link);
  } else if (event.target.closest("[data-close-pane]") && plain) {
    event.preventDefault();
    close_pane();
  }
});
window.addEventListener("popstate", () => window.location.reload());

// the rows come again and again: the open one stays marked
document.addEventListener("htmx:afterSettle", () => {
  const shown = pane?.querySelector("[data-document]")?.dataset.document;
  if (shown && split.hasAttribute("data-open")) mark(document.getElementById(`document-${shown}`));
});

// --- the list comes anew: filters act while one types, and files that were added are shown at once

let timer = 0;
for (const field of document.querySelectorAll("[data-submits]")) {
  field.addEventListener(field.type === "search" ? "input" : "change", () => {
    clearTimeout(timer);
    timer = setTimeout(() => show_list(read_address(field.form)), field.type === "search" ? 250 : 0);
  });
}

function read_address(form) {
  const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  return `/documents${given.size ? `?${given}` : ""}`;
}

const REPLACED = ["#split > .list", ".filters .choices", ".filters .menu"];
let asked = null; // the last question: an older answer never wins

async function show_list(address) {
  asked?.abort();
  asked = new AbortController();
  try {
    const answer = await fetch(address, { signal: asked.signal });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const one of REPLACED) document.querySelector(one).replaceWith(document.adoptNode(fresh.querySelector(one)));
    window.htmx.process(document.querySelector("#split > .list"));
    history.replaceState({}, "", address);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

document.addEventListener("uploaded", () => show_list(window.location.pathname + window.location.search));

// an empty list has no rows that fetch themselves
setInterval(() => {
  if (!document.hidden && !document.getElementById("document-rows")) show_list(window.location.pathname + window.location.search);
}, 4000);
