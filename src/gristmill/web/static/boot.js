// Before the first paint: the theme and the row height that were chosen in this browser.
for (const name of ["theme", "rows"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}
