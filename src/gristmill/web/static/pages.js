// A page beside its text: the marked words are boxes on the picture, and a chunk is shown on both sides at once.

const SPACE = "http://www.w3.org/2000/svg";
const known = new WeakMap(); // of a picture: the places of each chunk that was asked for

function draw_box(place, kind) {
  const box = document.createElementNS(SPACE, "rect");
  const pad = kind === "mark" ? 2 : 3;
  box.setAttribute("class", kind);
  box.setAttribute("x", 1000 * place.left - pad);
  box.setAttribute("y", 1000 * place.top - pad);
  box.setAttribute("width", 1000 * (place.right - place.left) + 2 * pad);
  box.setAttribute("height", 1000 * (place.bottom - place.top) + 2 * pad);
  box.setAttribute("rx", 2);
  box.dataset.start = place.start;
  return box;
}

async function ask_places(paper, query) {
  const answer = await fetch(`${paper.dataset.boxes}?${query}`);
  if (!answer.ok) return [];
  const { boxes, note } = await answer.json();
  const line = paper.parentElement.querySelector(".places-note");
  if (note && line) line.textContent = note;
  return boxes;
}

async function show_marks(paper) {
  if (!paper.dataset.marks) return;
  const places = await ask_places(paper, paper.dataset.marks);
  const boxes = paper.querySelector(".boxes");
  boxes.append(...places.map((place) => draw_box(place, "mark")));
  paper.dataset.marked = places.length;
  scroll_to(boxes.querySelector(".mark"));
}

function scroll_to(element) {
  element?.scrollIntoView({ block: "center", behavior: "auto" });
}

// --- a chunk on both sides

function find_chunk(paper, chunk) {
  if (!known.has(paper)) known.set(paper, new Map());
  const places = known.get(paper);
  const { chunk: number, start, stop } = chunk.dataset;
  if (!places.has(number)) places.set(number, ask_places(paper, `start=${start}&stop=${stop}`));
  return places.get(number);
}

async function show_chunk(chunk) {
  const paper = chunk.closest(".page-view").querySelector(".paper");
  document.querySelectorAll(".chunk.is-near").forEach((one) => one.classList.remove("is-near"));
  chunk.classList.add("is-near");
  if (!paper) return;
  const found = await find_chunk(paper, chunk);
  if (!chunk.classList.contains("is-near")) return;
  const boxes = paper.querySelector(".boxes");
  boxes.querySelectorAll(".near").forEach((box) => box.remove());
  boxes.prepend(...found.map((place) => draw_box(place, "near")));
}

document.addEventListener("pointerover", (event) => {
  const chunk = event.target.closest?.(".chunk");
  if (chunk && !chunk.classList.contains("is-near")) show_chunk(chunk);
});
document.addEventListener("click", async (event) => {
  const chunk = event.target.closest?.(".chunk");
  if (!chunk || window.getSelection()?.toString()) return;
  await show_chunk(chunk);
  scroll_to(chunk.closest(".page-view").querySelector(".boxes .near"));
});

// a click on the picture finds the chunk that stands there
document.addEventListener("click", async (event) => {
  const paper = event.target.closest?.(".paper");
  if (!paper) return;
  const side = paper.getBoundingClientRect();
  const [x, y] = [(event.clientX - side.left) / side.width, (event.clientY - side.top) / side.height];
  for (const chunk of paper.closest(".page-view").querySelectorAll(".chunk")) {
    const found = await find_chunk(paper, chunk);
    if (found.some((one) => one.left <= x && x <= one.right && one.top - 0.005 <= y && y <= one.bottom + 0.005)) {
      await show_chunk(chunk);
      scroll_to(chunk);
      return;
    }
  }
});

export function show_page(root = document) {
  for (const paper of root.querySelectorAll(".paper:not([data-ready])")) {
    paper.dataset.ready = "";
    show_marks(paper);
  }
  scroll_text(root);
}

// the text moves inside its own box: the page itself stays where it is
function scroll_text(root) {
  const found = root.querySelector(".page-text .chunk.is-chosen mark, .page-text mark, .page-text .chunk.is-chosen");
  const box = found?.closest(".text");
  if (!box || box.scrollHeight <= box.clientHeight) return;
  box.scrollTop += found.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

document.addEventListener("htmx:afterSettle", (event) => show_page(event.target.parentElement ?? document));
show_page();
