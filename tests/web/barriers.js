// What axe finds serious or critical on a page: one line for each, with the element; and the looks that it found good.
// `frame` is whether header and navigation are looked at, too; `known` are looks that it found good before.
async function findBarriers({ frame, known }) {
  // Axe gives what a rule finds the impact of the rule: it need not look for anything that is minor or moderate.
  const isSlight = (one) => ["minor", "moderate"].includes(one.impact);
  const rules = Object.fromEntries(axe._audit.rules.filter(isSlight).map((one) => [one.id, { enabled: false }]));
  const place = frame ? document : { exclude: [["header.top"], ["nav.side"]] };
  const looks = new Set(known);
  const measureAgain = measureLooksOnce(looks);
  const found = await axe.run(place, { rules, resultTypes: ["violations"] }).finally(measureAgain);
  const lines = found.violations
    .filter((one) => !isSlight(one))
    .map((one) => `${one.id}: ${one.help} (${one.nodes[0].html.slice(0, 160)})`);
  return [lines, [...looks].slice(known.length)];
}

// To measure whether colours differ enough is two thirds of the work of axe, and hundreds of cells look alike. A look
// that it measured and found good is not measured again, on this page or on another. Nothing is overlooked by that:
// a look is made of all that axe measures (see makeDescriber), as the browser computed it, of the element and of everything
// around it, and of their names and classes. A look that axe found bad, or could not measure because the element is
// hidden or covered, is not kept. And an element is always measured if something lies out of the flow in its place, or
// in the place of something around it: that thing may be behind the text.
function measureLooksOnce(looks) {
  const describe = makeDescriber();
  const check = axe._audit.checks["color-contrast"];
  const measure = check.evaluate;
  check.evaluate = function (element, ...others) {
    const look = describe(element);
    if (looks.has(look)) return true;
    const tell = this.data;
    let ratio;
    this.data = (told) => {
      ratio = told?.contrastRatio;
      return tell.call(this, told);
    };
    const isGood = measure.call(this, element, ...others);
    if (isGood === true && ratio && look) looks.add(look);
    return isGood;
  };
  return () => (check.evaluate = measure);
}

// A function that describes the look of an element by a number; by nothing where something else may be its background.
function makeDescriber() {
  const styles = [
    ...["color", "background-color", "background-image", "opacity", "font-size", "font-weight", "text-shadow"],
    ...["filter", "mix-blend-mode", "-webkit-text-fill-color", "-webkit-text-stroke-width", "position"],
  ];
  const described = new Map([[null, 1]]);
  const describe = (one) => {
    if (!described.has(one)) {
      const around = describe(one.parentElement);
      const style = getComputedStyle(one);
      const own = styles.map((name) => style.getPropertyValue(name)).join("|");
      const others = [...(one.parentElement?.children ?? [])].filter((other) => other !== one);
      const isAlone = around && !others.some((other) => isLaidOn(other, one));
      described.set(one, isAlone && digest(`${around} ${one.localName} ${one.getAttribute("class")} ${own}`));
    }
    return described.get(one);
  };
  return (one) => ![...one.children].some((child) => isLaidOn(child, one)) && describe(one);
}

// Whether an element lies out of the flow and in the place of another.
function isLaidOn(one, other) {
  if (!["absolute", "fixed", "sticky"].includes(getComputedStyle(one).position)) return false;
  const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
  return a.width * a.height > 0 && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

// A whole number below 2 ** 53: two different looks have the same one hardly ever (FNV-1a, twice).
function digest(text) {
  let [high, low] = [0x811c9dc5, 0x01000193];
  for (let place = 0; place < text.length; place++) {
    high = Math.imul(high ^ text.charCodeAt(place), 0x01000193);
    low = Math.imul(low ^ text.charCodeAt(place), 0x85ebca6b);
  }
  return (high >>> 0) * 2 ** 21 + (low >>> 11) + 1;
}

Object.assign(globalThis, { findBarriers });
