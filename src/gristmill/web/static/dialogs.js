// Dialogs and menus. A link with data-dialog opens its page in a dialog; without scripts it opens the page itself.

const dialog = document.getElementById("dialog");

async function open_page(link) {
  dialog.querySelector("h2").textContent = link.dataset.dialog || link.textContent.trim();
  const body = dialog.querySelector(".body");
  body.replaceChildren(document.getElementById("skeleton").content.cloneNode(true));
  dialog.showModal();
  await window.htmx.ajax("GET", link.href, { target: body, swap: "innerHTML" });
  body.querySelector("[autofocus], input:not([type=hidden]), button")?.focus();
}

document.addEventListener("click", (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  const link = event.target.closest("a[data-dialog]");
  if (link && plain && dialog && window.htmx) {
    event.preventDefault();
    open_page(link);
  }
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest("dialog")?.close();
  if (event.target.matches("dialog[open]")) event.target.close(); // a click beside it
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// a form asks again before it does what cannot be undone
document.addEventListener("submit", (event) => {
  const wanted = event.target.dataset?.typed;
  const typed = event.target.querySelector("[name=typed]")?.value;
  if (wanted && typed !== wanted) event.preventDefault();
});

document.addEventListener("said", () => document.querySelector("dialog[open]:not([data-stays])")?.close());
dialog?.addEventListener("close", () => dialog.querySelector(".body").replaceChildren());
