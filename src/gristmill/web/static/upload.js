// Adding files: dropped or chosen, single files and whole folders, a few at a time, with progress and an error for each.

const AT_ONCE = 4;
const SHOWN = 200; // lines; of more files the failed ones are shown, and all are counted
const area = document.getElementById("upload");
const part = (name) => document.getElementById(name);
let waiting = [];
let running = new Set();
let counts = { all: 0, done: 0, failed: 0, known: 0 };

// --- which files are meant

async function read_entry(entry) {
  if (entry.isFile) {
    return new Promise((resolve) => entry.file((file) => resolve([{ file, path: entry.fullPath.slice(1) }]), () => resolve([])));
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    // a folder gives its entries in portions, and an empty one at the end
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) return found;
    for (const one of some) found.push(...(await read_entry(one)));
  }
}

async function read_drop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  return (await Promise.all(entries.map(read_entry))).flat();
}

const is_hidden = ({ path }) => path.split("/").some((name) => name.startsWith("."));

// --- sending

function add(found) {
  const wanted = found.filter((one) => !is_hidden(one));
  if (!wanted.length) return;
  if (!running.size && !waiting.length) counts = { all: 0, done: 0, failed: 0, known: 0 };
  counts.all += wanted.length;
  part("upload-card").hidden = false;
  for (const one of wanted) waiting.push({ ...one, line: make_line(one) });
  while (running.size < AT_ONCE && waiting.length) send_next();
  show_counts();
}

function send_next() {
  const job = waiting.shift();
  if (!job) return;
  const request = new XMLHttpRequest();
  job.request = request;
  running.add(job);
  const whose = area.dataset.client ? `?${new URLSearchParams({ client: area.dataset.client })}` : "";
  request.open("POST", area.dataset.to + whose);
  request.setRequestHeader("X-CSRF-Token", area.dataset.csrf);
  request.setRequestHeader("Accept", "application/json");
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) show_progress(job, event.loaded / event.total);
  });
  request.addEventListener("load", () => finish(job, ...read_answer(request)));
  request.addEventListener("error", () => finish(job, "failed", "The server does not answer: try again."));
  request.addEventListener("abort", () => finish(job, "failed", "stopped"));
  const form = new FormData();
  form.append("files", job.file, job.path); // its folders are a part of its name
  request.send(form);
}

function read_answer(request) {
  let answer = {};
  try {
    answer = JSON.parse(request.responseText);
  } catch {
    return ["failed", `The server answered ${request.status}.`];
  }
  if (request.status >= 400) return ["failed", answer.detail ?? `The server answered ${request.status}.`];
  const taken = answer.items?.[0] ?? answer;
  const status = taken.status ?? "added";
  if (status === "refused") return ["failed", taken.reason ?? "refused"];
  return [status === "unchanged" ? "known" : "done", taken.reason ?? status, taken.document ?? taken.id];
}

function finish(job, how, text, document_id) {
  running.delete(job);
  counts[how] += 1;
  show_end(job, how, text, document_id);
  send_next();
  show_counts();
  if (!running.size && !waiting.length) document.dispatchEvent(new CustomEvent("uploaded"));
}

// --- showing

function make_line({ path, file }) {
  if (part("upload-list").children.length >= SHOWN) return null;
  const line = document.createElement("li");
  const name = document.createElement("bdi");
  name.className = "cut grow";
  name.textContent = path || file.name;
  name.title = path || file.name;
  const said = document.createElement("span");
  said.className = "said small soft";
  said.textContent = "waits";
  line.append(name, said);
  part("upload-list").append(line);
  return line;
}

function show_progress(job, share) {
  if (!job.line) return;
  job.line.querySelector(".said").textContent = share < 1 ? `${Math.round(100 * share)} %` : "is kept …";
}

function show_end(job, how, text, document_id) {
  if (!job.line && how === "failed") {
    job.line = make_line(job) ?? part("upload-list").appendChild(document.createElement("li"));
  }
  if (!job.line) return;
  const said = job.line.querySelector(".said");
  said.classList.add(how === "failed" ? "is-failed" : how === "done" ? "is-done" : "is-paused");
  said.textContent = how === "known" ? "is there already" : how === "done" ? "added" : text;
  if (document_id) {
    const link = document.createElement("a");
    link.href = `/documents/${document_id}`;
    link.textContent = "open";
    said.append(" ", link);
  }
}

function show_counts() {
  const ended = counts.done + counts.failed + counts.known;
  const left = counts.all - ended;
  const parts = [counts.done && `${counts.done} added`, counts.known && `${counts.known} there already`, counts.failed && `${counts.failed} failed`];
  const told = parts.filter(Boolean).join(", ");
  part("upload-title").textContent = left ? `Adding ${ended} of ${counts.all} files${told ? `: ${told}` : ""}` : told || "Nothing to add";
  part("upload-all").value = counts.all ? ended / counts.all : 0;
  part("upload-stop").hidden = !left;
}

function stop() {
  for (const job of waiting.splice(0)) finish(job, "failed", "stopped");
  for (const job of [...running]) job.request.abort();
}

// --- what people do

function listen() {
  let depth = 0;
  const has_files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const show_drop = (shown) => (part("drop").hidden = !shown);
  window.addEventListener("dragenter", (event) => {
    if (has_files(event)) show_drop(++depth > 0);
  });
  window.addEventListener("dragleave", (event) => {
    if (has_files(event)) show_drop((depth = Math.max(0, depth - 1)) > 0);
  });
  window.addEventListener("dragover", (event) => has_files(event) && event.preventDefault());
  window.addEventListener("drop", async (event) => {
    if (!has_files(event)) return;
    event.preventDefault();
    show_drop(false);
    depth = 0;
    add(await read_drop(event.dataTransfer));
  });
  for (const id of ["pick-files", "pick-folder"]) {
    part(id).addEventListener("change", (event) => {
      add([...event.target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      event.target.value = "";
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-upload]");
    if (button) part(`pick-${button.dataset.upload}`).click();
  });
  part("upload-stop").addEventListener("click", stop);
  part("upload-close").addEventListener("click", () => {
    part("upload-card").hidden = true;
    if (!running.size) part("upload-list").replaceChildren();
  });
  window.addEventListener("beforeunload", (event) => running.size && event.preventDefault());
}

if (area) listen();
