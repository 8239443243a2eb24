// Tables: a head that the server does not sort by is sorted by here, among the rows that are on the page. The order stands in
// the address (`by=-loaded`), so that a colleague sees the same, and a live region brings its rows in this order.

const SORTED = "table:not(:has(tbody[data-steady], tbody[data-order]))"; // rows of these have a place of their own
const HEADS = "thead th:not(:has(a, .unseen, input))";
const NOTHING = new Set(["", "–", "-"]);

function read_order() {
  const asked = new URLSearchParams(location.search).get("by") || "";
  return { name: asked.replace(/^-/, ""), falling: asked.startsWith("-") };
}

function name_of(head) {
  return head.textContent.trim().toLowerCase().replaceAll(/\W+/g, "-");
}

function heads_of(table) {
  return [...table.querySelectorAll(HEADS)].filter(name_of);
}

function value_of(row, place) {
  const cell = row.cells[place];
  const text = (cell?.dataset.sort ?? cell?.querySelector("time")?.dateTime ?? cell?.textContent ?? "").trim();
  return NOTHING.has(text) ? null : text;
}

function compare(one, other) {
  const numbers = [one, other].map((text) => Number(/^-?[\d,]*\.?\d+/.exec(text)?.[0].replaceAll(",", "") ?? "x"));
  if (numbers.every(Number.isFinite) && numbers[0] !== numbers[1]) return numbers[0] - numbers[1];
  return one.localeCompare(other, undefined, { numeric: true });
}

// put the rows of every table below this element into the order of the address
export function arrange(root) {
  const order = read_order();
  if (!order.name) return;
  for (const table of root.querySelectorAll(SORTED)) {
    const head = heads_of(table).find((one) => name_of(one) === order.name);
    if (head) sort_rows(table, head, order.falling);
  }
}

function sort_rows(table, head, falling) {
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row) => ({ row, value: value_of(row, head.cellIndex) }));
    const known = rows.filter((one) => one.value !== null).sort((a, b) => compare(a.value, b.value));
    if (falling) known.reverse();
    const sorted = [...known, ...rows.filter((one) => one.value === null)].map((one) => one.row);
    if (sorted.some((row, place) => row !== body.rows[place])) body.append(...sorted);
  }
}

// --- heads that are pressed

function offer(root) {
  for (const table of root.querySelectorAll(SORTED)) {
    if (table.tBodies[0]?.rows.length > 1) heads_of(table).forEach(make_button);
  }
  show_order();
}

function make_button(head) {
  if (head.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sorts";
  button.title = "Sorts the rows on this page";
  button.append(...head.childNodes);
  button.addEventListener("click", () => choose(head));
  head.append(button);
  head.setAttribute("data-keep", ""); // a live region would put the bare word back
}

function choose(head) {
  const order = read_order();
  const falling = order.name === name_of(head) && !order.falling;
  const address = new URL(location.href);
  address.searchParams.set("by", (falling ? "-" : "") + name_of(head));
  history.replaceState(history.state, "", address);
  sort_rows(head.closest("table"), head, falling);
  show_order();
}

function show_order() {
  const order = read_order();
  for (const head of document.querySelectorAll("th:has(> button.sorts)")) {
    if (name_of(head) !== order.name) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", order.falling ? "descending" : "ascending");
  }
}

document.addEventListener("htmx:afterSettle", (event) => {
  arrange(event.target);
  offer(event.target);
});
arrange(document);
offer(document);
