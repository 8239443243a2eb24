// Live regions: htmx fetches them again, and they change in place. Nothing moves under the cursor: new rows of a list wait
// behind a line "7 new". While the server is away, one line says so, and it goes when the server is back.

import { arrange } from "./tables.js";

const held = new WeakMap(); // the rows that a steady list does not show yet

// --- change a piece of the page into another one, and touch only the differences

export function morph(old, fresh, made) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    made.push(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.hasAttribute("data-keep") || is_in_use(old)) return;
  // another address is another list: after a filter, rows that do not fit it must go at once
  const is_same_list = old.hasAttribute("data-steady") && old.getAttribute("hx-get") === fresh.getAttribute("hx-get");
  copy_attributes(old, fresh);
  if (is_same_list) hold_back(old, fresh, made);
  else morph_children(old, fresh, made);
}

function is_in_use(element) {
  return element === document.activeElement && element.matches("input, select, textarea");
}

function copy_attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !is_own(old, name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !is_own(old, name)) old.setAttribute(name, value);
  }
}

function is_own(element, name) {
  // what the person opened stays open
  return name === "open" && element.matches("details, dialog");
}

function is_blank(node) {
  return node?.nodeType === Node.TEXT_NODE && !node.data.trim();
}

function morph_children(old, fresh, made) {
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    if (is_blank(next)) continue; // htmx leaves out the blanks between elements that it selects
    while (is_blank(place)) place = place.nextSibling;
    const same = next.id && known.get(next.id);
    if (same && same !== place) old.insertBefore(same, place); // moving would take the focus away: only if it must
    const here = same || place;
    const fits = here && (same || (here.nodeName === next.nodeName && !here.id && !next.id));
    if (fits) {
      place = here.nextSibling;
      morph(here, next, made);
    } else {
      old.insertBefore(next, place);
      made.push(next);
    }
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

// --- lists that do not jump

function hold_back(list, fresh, made) {
  const next = new Map([...fresh.children].map((row) => [row.id, row]));
  held.set(list, [...fresh.children].map((row) => row.cloneNode(true)));
  const missing = [];
  for (const row of [...list.children]) {
    const same = next.get(row.id);
    if (same) morph(row, same, made);
    else missing.push(row);
    next.delete(row.id);
  }
  // a row that only left the first portion because newer ones came is not gone
  if (!next.size) missing.forEach((row) => row.classList.add("gone"));
  announce(list, next.size);
}

function announce(list, count) {
  const line = document.querySelector(`[data-news-of="${list.id}"]`);
  if (!line) return;
  const text = count ? `${count} new` : "";
  if (line.textContent.trim() === text) return;
  line.replaceChildren();
  if (!count) return;
  const button = document.createElement("button");
  button.className = "small";
  button.textContent = text;
  button.addEventListener("click", () => show_held(list, line));
  line.append(button);
}

function show_held(list, line) {
  list.replaceChildren(...held.get(list));
  line.replaceChildren();
  window.htmx.process(list);
  list.querySelector("a[data-row]")?.focus();
}

if (window.htmx) {
  window.htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap: (style, target, fragment) => {
      if (style !== "morph") return false;
      const made = [];
      arrange(fragment); // in the order that the person has chosen: no row jumps
      if (target.hasAttribute("data-steady")) hold_back(target, fragment, made);
      else morph_children(target, fragment, made);
      return made.length ? made : [document.createElement("i")]; // an empty list would mean: not handled
    },
  });
}

// --- the server is away, or the page is not looked at

function is_poll(event) {
  return event.detail.elt.matches("[hx-trigger*='every']") && !event.detail.requestConfig?.triggeringEvent;
}

function show_offline(away) {
  const line = document.getElementById("offline");
  if (line && line.hidden === away) line.hidden = !away;
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && is_poll(event)) event.preventDefault();
});
document.addEventListener("htmx:sendError", () => show_offline(true));
document.addEventListener("htmx:timeout", () => show_offline(true));
document.addEventListener("htmx:afterOnLoad", () => show_offline(false));
document.addEventListener("visibilitychange", () => document.hidden || refresh());
document.addEventListener("said", () => refresh());

export function refresh() {
  for (const region of document.querySelectorAll("[data-live]")) window.htmx?.trigger(region, "refresh");
}
