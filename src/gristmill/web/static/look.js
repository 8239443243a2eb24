// Theme and row height: chosen here, remembered in this browser.

function choose(name, value) {
  if (value) {
    localStorage.setItem(name, value);
    document.documentElement.dataset[name] = value;
  } else {
    localStorage.removeItem(name);
    delete document.documentElement.dataset[name];
  }
  show(name);
}

function show(name) {
  const chosen = document.documentElement.dataset[name] ?? "";
  for (const button of document.querySelectorAll(`[data-choose-${name}]`)) {
    button.setAttribute("aria-pressed", String(button.getAttribute(`data-choose-${name}`) === chosen));
  }
}

document.addEventListener("click", (event) => {
  for (const name of ["theme", "rows"]) {
    const button = event.target.closest(`[data-choose-${name}]`);
    if (button) choose(name, button.getAttribute(`data-choose-${name}`));
  }
});

for (const name of ["theme", "rows"]) show(name);

// a table that is wider than its box can be scrolled by keyboard
function reach_tables() {
  for (const box of document.querySelectorAll(".table, pre.code")) {
    const wide = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (wide) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

reach_tables();
window.addEventListener("resize", reach_tables);
document.addEventListener("htmx:afterSettle", reach_tables);
