// The graph: links inside the page change it in place, the picture can be moved and zoomed, and growing keeps the view.

import { suggest_names } from "./suggest.js";

const PAGE = "graph-page";
const NEAREST = 200; // units of the picture across
const READABLE = 0.62; // how small names may become
let view = null; // the part of the picture that is seen: x, y, width, height

const picture = () => document.getElementById("picture");
const read_box = (text) => text.split(" ").map(Number);

function show_view() {
  picture()?.setAttribute("viewBox", view.join(" "));
}

// --- change the page in place

async function go(address, push = true) {
  const answer = await fetch(address, { headers: { "X-Requested-With": "graph" } });
  if (!answer.ok) return window.location.assign(address);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(PAGE);
  if (!fresh) return window.location.assign(address);
  const focused = document.activeElement?.dataset?.key;
  document.getElementById(PAGE).replaceWith(document.adoptNode(fresh));
  window.htmx?.process(document.getElementById(PAGE));
  if (push) history.pushState({ graph: true }, "", address);
  keep_view();
  suggest_names();
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// what grew outside of the view is brought into it; nothing else moves
function keep_view() {
  const drawn = picture();
  if (!drawn) return;
  const fit = read_box(drawn.dataset.fit);
  const is_first = !view;
  if (!view) view = choose_first(drawn, fit);
  if (is_first) return show_view();
  const right = Math.max(view[0] + view[2], fit[0] + fit[2]);
  const bottom = Math.max(view[1] + view[3], fit[1] + fit[3]);
  const inside = fit[0] >= view[0] && fit[1] >= view[1] && right <= view[0] + view[2] && bottom <= view[1] + view[3];
  if (!inside) {
    const [left, top] = [Math.min(view[0], fit[0]), Math.min(view[1], fit[1])];
    view = [left, top, right - left, bottom - top];
  }
  show_view();
}

// everything, or as much around the chosen node as can be read
function choose_first(drawn, fit) {
  const side = drawn.getBoundingClientRect();
  const scale = Math.min(side.width / fit[2], side.height / fit[3]);
  if (scale >= READABLE) return fit;
  const [width, height] = [side.width / READABLE, side.height / READABLE];
  const place = drawn.querySelector(".node[aria-current]")?.parentElement.transform.baseVal.consolidate()?.matrix;
  return [(place?.e ?? 0) - width / 2, (place?.f ?? 0) - height / 2, width, height];
}

document.addEventListener("click", (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  const link = event.target.closest("a[data-go]");
  if (link && plain && !event.defaultPrevented) {
    event.preventDefault();
    go(link.getAttribute("href"));
    return;
  }
  const zoom = event.target.closest("[data-zoom]");
  if (!zoom || !picture()) return;
  if (zoom.dataset.zoom === "fit") {
    view = read_box(picture().dataset.fit);
    show_view();
  } else {
    zoom_at(zoom.dataset.zoom === "in" ? 0.8 : 1.25, view[0] + view[2] / 2, view[1] + view[3] / 2);
  }
});
document.addEventListener("change", (event) => {
  const { goes } = event.target.dataset ?? {};
  if (goes) window.location.assign(goes + encodeURIComponent(event.target.value));
});
window.addEventListener("popstate", () => go(window.location.href, false));

// --- a second click on the chosen node opens it

document.addEventListener("dblclick", (event) => {
  const node = event.target.closest("a.node");
  const more = node?.parentElement.querySelector("a.more");
  if (more) go(more.getAttribute("href"));
});

// --- move and zoom

function zoom_at(factor, x, y) {
  const width = view[2] * factor;
  if (width < NEAREST || width > 20000) return;
  view = [x - (x - view[0]) * factor, y - (y - view[1]) * factor, width, view[3] * factor];
  show_view();
}

function place_of(event) {
  const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture().getScreenCTM().inverse());
  return [spot.x, spot.y];
}

let held = null; // where the picture was taken hold of

document.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || !event.target.closest?.("#picture") || event.target.closest("a")) return;
  held = place_of(event);
  picture().classList.add("held");
});
document.addEventListener("pointermove", (event) => {
  if (!held || !picture()) return;
  const [x, y] = place_of(event);
  view = [view[0] - (x - held[0]), view[1] - (y - held[1]), view[2], view[3]];
  show_view();
});
document.addEventListener("pointerup", () => {
  held = null;
  picture()?.classList.remove("held");
});
document.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey || !event.target.closest?.("#picture")) return; // without Ctrl the page scrolls
    event.preventDefault();
    zoom_at(event.deltaY < 0 ? 0.9 : 1 / 0.9, ...place_of(event));
  },
  { passive: false },
);

keep_view();
suggest_names();
