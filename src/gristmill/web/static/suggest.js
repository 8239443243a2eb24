// Boxes that ask for a name: while somebody types, the server says which there are. An older answer never wins.

const WAIT = 150; // ms after the last key

function listen(box) {
  let timer = 0;
  let asked = null;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    asked?.abort();
    timer = setTimeout(async () => {
      asked = new AbortController();
      const given = new URLSearchParams({ name: box.value });
      for (const name of ["client", "project"]) {
        const field = box.form?.elements[name];
        if (field?.value) given.set(name, field.value);
      }
      try {
        const answer = await fetch(`${box.dataset.suggest}?${given}`, { signal: asked.signal });
        if (answer.ok) document.getElementById(box.getAttribute("list")).innerHTML = await answer.text();
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
    }, WAIT);
  });
}

export function suggest_names() {
  for (const box of document.querySelectorAll("[data-suggest]:not([data-suggests])")) {
    box.dataset.suggests = "";
    listen(box);
  }
}
