// Reordering rows: drag a row by its handle, or press the arrow keys on the handle. The server decides the new place.

let dragged = null;

function drop_place(row, event) {
  const box = row.getBoundingClientRect();
  return event.clientY < box.top + box.height / 2 ? "before" : "after";
}

function clear_marks() {
  document.querySelectorAll(".over-before, .over-after").forEach((row) => row.classList.remove("over-before", "over-after"));
}

async function place(row, other, where) {
  if (!other || row === other) return;
  other[where](row); // at once; the server's answer shows what became of it
  row.querySelector("[data-handle]")?.focus();
  await window.htmx.ajax("POST", row.parentElement.dataset.order, {
    swap: "none",
    source: row.parentElement,
    values: { [row.parentElement.dataset.orderAs ?? "task"]: row.dataset.id, [where]: other.dataset.id },
  });
}

document.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest("[data-handle]");
  if (!handle || event.button !== 0) return;
  dragged = handle.closest("tr");
  handle.setPointerCapture(event.pointerId);
  dragged.classList.add("dragged");
  event.preventDefault();
});

function row_under(event) {
  const under = document.elementFromPoint(event.clientX, event.clientY)?.closest("tr");
  return under?.parentElement === dragged?.parentElement ? under : null;
}

document.addEventListener("pointermove", (event) => {
  if (!dragged) return;
  clear_marks();
  const row = row_under(event);
  if (row && row !== dragged) row.classList.add(`over-${drop_place(row, event)}`);
});

document.addEventListener("pointerup", (event) => {
  if (!dragged) return;
  const [row, under] = [dragged, row_under(event)];
  row.classList.remove("dragged");
  clear_marks();
  dragged = null;
  if (under) place(row, under, drop_place(under, event));
});

document.addEventListener("keydown", (event) => {
  const handle = event.target.closest?.("[data-handle]");
  if (!handle || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const row = handle.closest("tr");
  if (event.key === "ArrowUp") place(row, row.previousElementSibling, "before");
  else place(row, row.nextElementSibling, "after");
});
