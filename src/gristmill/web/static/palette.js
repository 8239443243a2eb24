// The command palette (Ctrl-K): every page, and every action that the page at hand offers.

const palette = document.getElementById("palette");
const input = palette?.querySelector("input");
const list = palette?.querySelector("[role=listbox]");
const sprite = document.querySelector("meta[name=icons]")?.content;
let found = [];
let chosen = 0;
let more = [];

function gather() {
  const pages = [...document.querySelectorAll(".side a[href], [data-palette]")].map((element) => ({
    text: element.dataset.palette || element.querySelector(".title")?.textContent || element.textContent.trim(),
    icon: element.dataset.icon ?? (element.href ? "right" : "play"),
    hint: element.dataset.palette ? "action" : "page",
    run: () => (element.href && !element.dataset.dialog ? window.location.assign(element.href) : element.click()),
  }));
  const seen = new Set();
  return [...pages, ...gather_actions(), ...more].filter((one) => !seen.has(one.text) && seen.add(one.text));
}

// every button of the page that names itself no other way: its word, and the row that it stands in
function gather_actions() {
  const buttons = document.querySelectorAll("main :is(button, a.button):not([data-palette], [data-handle], .sorts)");
  return [...buttons].filter((one) => !one.disabled && one.checkVisibility()).map((element) => {
    const word = element.textContent.trim() || element.title || element.ariaLabel || "";
    const row = element.closest("tr, li")?.querySelector("a:not(.button)")?.textContent.trim();
    const icon = element.querySelector("use")?.getAttribute("href").split("#")[1] ?? "play";
    return { text: row ? `${word}: ${row}` : word, icon, hint: "action", run: () => element.click() };
  }).filter((one) => one.text);
}

function go(text, icon, hint, address) {
  return { text, icon, hint, run: () => window.location.assign(address) };
}

function from_words(words) {
  if (!words) return [];
  const number = /^(?:task |document |#)?(\d+)$/.exec(words)?.[1];
  const made = [go(`Search for “${words}”`, "search", "search", `/search?q=${encodeURIComponent(words)}`)];
  if (number) made.push(go(`Task ${number}`, "tasks", "open", `/tasks/${number}`));
  if (number) made.push(go(`Document ${number}`, "document", "open", `/documents/${number}`));
  return made;
}

// the letters in their order; the closer together and the nearer the beginning, the better
function rate(text, words) {
  let at = -1;
  let cost = 0;
  const low = text.toLowerCase();
  for (const letter of words.toLowerCase()) {
    const next = low.indexOf(letter, at + 1);
    if (next < 0) return null;
    cost += next - at - 1;
    at = next;
  }
  return cost + low.length / 100;
}

function show() {
  const words = input.value.trim();
  const rated = gather().map((one) => [rate(one.text, words), one]).filter(([cost]) => cost !== null);
  rated.sort((a, b) => (words ? a[0] - b[0] : 0));
  found = [...rated.map(([, one]) => one).slice(0, 40), ...from_words(words)];
  chosen = 0;
  list.replaceChildren(...found.map(draw));
  palette.querySelector(".nothing").hidden = found.length > 0;
  mark();
}

function draw(one, place) {
  const item = document.createElement("li");
  item.id = `palette-${place}`;
  item.setAttribute("role", "option");
  const text = document.createElement("span");
  text.className = "cut";
  text.textContent = one.text;
  const hint = document.createElement("span");
  hint.className = "hint";
  hint.textContent = one.hint;
  item.append(draw_icon(one.icon), text, hint);
  item.addEventListener("click", () => run(one));
  return item;
}

function draw_icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const use = document.createElementNS(space, "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${sprite}#${name}`);
  svg.append(use);
  return svg;
}

function mark() {
  [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === chosen)));
  input.setAttribute("aria-activedescendant", found.length ? `palette-${chosen}` : "");
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function run(one) {
  palette.close();
  one?.run();
}

async function load_more() {
  if (more.length || !palette.dataset.more) return;
  const answer = await fetch(palette.dataset.more);
  if (!answer.ok) return;
  more = (await answer.json()).map((one) => go(one.text, one.icon, one.hint, one.path));
  if (palette.open) show();
}

export function open_palette() {
  if (!palette || palette.open) return;
  input.value = "";
  show();
  palette.showModal();
  load_more();
}

if (palette) {
  input.addEventListener("input", show);
  palette.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      chosen = (chosen + step + found.length) % found.length;
      mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open_palette();
    }
  });
  document.addEventListener("click", (event) => event.target.closest("[data-open-palette]") && open_palette());
}
