// Times: relative in the text, exact and local on hover, by the clock of the server.

const began = performance.now();
const server = Date.parse(document.documentElement.dataset.now ?? "") || Date.now();
const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [86400 * 60, 86400, "d"]];

export function now() {
  return server + (performance.now() - began);
}

export function say_span(seconds) {
  for (const [below, size, unit] of STEPS) {
    if (seconds < below) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return null;
}

function say(moment) {
  const seconds = (now() - moment) / 1000;
  const span = say_span(Math.abs(seconds));
  if (span === null) return new Date(moment).toLocaleDateString();
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${span} ago` : `in ${span}`;
}

export function tell_times(root = document) {
  for (const time of root.querySelectorAll("time[data-relative]")) {
    const moment = Date.parse(time.dateTime);
    const text = say(moment);
    if (time.textContent !== text) time.textContent = text;
    const exact = new Date(moment).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
    if (time.title !== exact) time.title = exact;
  }
  for (const time of root.querySelectorAll("time[data-clock]")) {
    const text = new Date(time.dateTime).toLocaleString(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    if (time.textContent !== text) time.textContent = text;
  }
  for (const time of root.querySelectorAll("time[data-local]")) {
    const text = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if (time.textContent !== text) time.textContent = text;
  }
}

setInterval(() => document.hidden || tell_times(), 1000);
document.addEventListener("htmx:afterSettle", (event) => tell_times(event.target));
