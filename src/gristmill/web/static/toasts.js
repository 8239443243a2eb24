// Short messages at the lower right: what was done, with an undo where there is one; errors stay until they are closed.

const STAY = 6000;
const place = document.getElementById("toasts");

function show(text, { failed = false, undo = null } = {}) {
  if (!place || !text) return;
  const toast = document.createElement("div");
  toast.className = failed ? "toast is-failed" : "toast";
  toast.setAttribute("role", failed ? "alert" : "status");
  const words = document.createElement("span");
  words.className = "grow";
  words.textContent = text;
  toast.append(words);
  if (undo) toast.append(make_button("Undo", () => { window.htmx.ajax("POST", undo, { swap: "none" }); toast.remove(); }));
  toast.append(make_button("Close", () => toast.remove()));
  place.append(toast);
  if (!failed) setTimeout(() => toast.matches(":hover, :focus-within") || toast.remove(), undo ? STAY * 2 : STAY);
}

function make_button(text, press) {
  const button = document.createElement("button");
  button.className = "small plain";
  button.textContent = text;
  button.addEventListener("click", press);
  return button;
}

function read_problem(request) {
  const said = `The server answered ${request.status}. Load the page again.`;
  if (request.getResponseHeader("content-type")?.includes("json")) return JSON.parse(request.responseText).detail ?? said;
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  return page.querySelector("[data-problem]")?.textContent.trim() || said;
}

document.addEventListener("said", (event) => show(event.detail.text, event.detail));
document.addEventListener("htmx:responseError", (event) => {
  const { xhr, elt } = event.detail;
  if (xhr.status === 401) window.location.reload(); // the session ended: the page asks to sign in
  else if (!elt.matches("[hx-trigger*='every']")) show(read_problem(xhr), { failed: true });
});

// what an action said before it led to this page
const said = document.cookie.split("; ").find((one) => one.startsWith("gristmill_said="));
if (said) {
  document.cookie = "gristmill_said=; Max-Age=0; Path=/; SameSite=Strict";
  show(decodeURIComponent(said.slice("gristmill_said=".length).replaceAll("+", " ")));
}
