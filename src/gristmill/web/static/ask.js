// A conversation: answers appear as they are written, each sentence when it is checked. Without this script, forms reload the page.

const list = document.getElementById("messages");
const form = document.getElementById("ask-form");
const box = document.getElementById("question");
const stop = document.getElementById("stop");
let source = null; // the open stream of events

function show(html, id) {
  const made = document.createElement("template");
  made.innerHTML = html; // drawn by the server, which escapes every text
  const fresh = made.content.querySelector("li.message");
  const old = document.getElementById(`message-${id}`);
  if (!fresh) return;
  // one answer is written at a time: another that was begun has been taken back for a newer question
  if (fresh.dataset.state === "writing") list.querySelectorAll('[data-state="writing"]').forEach((one) => one !== old && one.remove());
  if (old) {
    // what the person opened stays open
    old.querySelectorAll("details[open]").forEach((one, n) => fresh.querySelectorAll("details")[n]?.setAttribute("open", ""));
    old.replaceWith(fresh);
  } else {
    list.append(fresh);
  }
  if (is_at_end()) fresh.scrollIntoView({ block: "nearest", behavior: "auto" });
}

function is_at_end() {
  return window.innerHeight + window.scrollY >= document.body.scrollHeight - 240;
}

function set_waiting(waits) {
  if (stop) stop.hidden = !waits;
  list.setAttribute("aria-busy", String(waits));
}

function listen() {
  if (!list?.dataset.events || source) return;
  set_waiting(true);
  const known = [...list.querySelectorAll("[data-message]")].filter((one) => !["waiting", "writing"].includes(one.dataset.state));
  const after = known.length ? known[known.length - 1].dataset.message : 0;
  source = new EventSource(`${list.dataset.events}?after=${after}`);
  source.addEventListener("message", (event) => {
    const { id, html } = JSON.parse(event.data);
    show(html, id);
  });
  source.addEventListener("ended", () => {
    source.close();
    source = null;
    set_waiting(false);
  });
}

async function post(address, body) {
  const token = form.elements.csrf.value;
  const headers = { "X-CSRF-Token": token, "HX-Request": "true" };
  return fetch(address, { method: "POST", body, headers });
}

async function ask() {
  const question = box.value.trim();
  if (!question) return;
  const answer = await post(form.action, new URLSearchParams(new FormData(form)));
  if (answer.headers.get("HX-Redirect")) {
    window.location.href = answer.headers.get("HX-Redirect");
    return;
  }
  if (!answer.ok) {
    form.submit(); // the server says what is wrong, as a page
    return;
  }
  box.value = "";
  box.focus();
  source?.close();
  source = null;
  listen();
}

async function end() {
  if (!stop || stop.hidden) return;
  stop.disabled = true;
  await post(stop.formAction, new URLSearchParams());
  stop.disabled = false;
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter === stop) end();
  else ask();
});
box?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
  if (event.key === "Escape") end();
});

if (list?.hasAttribute("data-waits")) listen();
box?.focus();
