// Search as you type in the box of the header; the page of the hit at hand is shown beside the hits where there is room.

import "./pages.js";

const box = document.getElementById("find");
const wide = window.matchMedia("(min-width: 1240px)");
let shown = ""; // the address of the preview that is on its way or there

async function show_preview(link) {
  const place = document.getElementById("preview");
  const address = link?.dataset.preview;
  if (!place || !address || !wide.matches || address === shown) return;
  shown = address;
  document.querySelectorAll(".hit[aria-current]").forEach((hit) => hit.removeAttribute("aria-current"));
  link.closest(".hit").setAttribute("aria-current", "true");
  await window.htmx.ajax("GET", address, { target: place, swap: "innerHTML" });
}

function show_first() {
  shown = "";
  show_preview(document.querySelector(".hits a[data-preview]"));
}

document.addEventListener("focusin", (event) => show_preview(event.target.closest?.("a[data-preview]")));
document.addEventListener("pointerover", (event) => {
  const hit = event.target.closest?.(".hit");
  if (hit && event.pointerType === "mouse") show_preview(hit.querySelector("a[data-preview]"));
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id === "hits") show_first();
});
wide.addEventListener("change", show_first);

// Enter in the box goes to the first hit instead of loading the page again; the arrow down does the same
box?.form.addEventListener("submit", (event) => {
  event.preventDefault();
  document.querySelector(".hits a[data-row]")?.focus();
});
box?.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  document.querySelector(".hits a[data-row]")?.focus();
});

if (box) {
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
}
show_first();
