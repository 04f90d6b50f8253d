"use strict";
// The cards: how far each bar is from the one that was clicked, in percent, the best of those that are comparable, and
// their order.
const Cards = (() => {
  const MOST_ROWS = 5, MOST_IN_CARD = 3; // as in cards.py
  const all = (selector, root) => [...root.querySelectorAll(selector)];

  // `ref`: number of the run that is 100 %, or null. Of a row: apart(row) whether it is not comparable with the reviewed
  // run; comparable(row, other) whether two are (without other: with the reviewed run); visible(row).
  function show(root, ref, { apart, comparable, visible }) {
    for (const card of all(".card", root)) {
      const rows = all("button.row", card), base = ref == null ? null : card.querySelector(`button.row[data-run="${ref}"]`);
      best(rows.filter((row) => row.dataset.better && comparable(row) && visible(row)), rows);
      for (const row of rows) {
        const percentage = words(row, base, ref, { apart, comparable }), percent = row.querySelector(".percent");
        row.setAttribute("aria-pressed", String(row === base));
        percent.textContent = percentage;
        percent.classList.toggle("aside", ref == null && !apart(row));
      }
    }
  }
  function words(row, base, ref, { apart, comparable }) {
    if (ref == null) return !apart(row) ? row.dataset.aside : row.classList.contains("top") ? "not claimed" : "not comparable";
    if (row === base) return "= 100 %";
    if (base && !comparable(row, base)) return "not comparable";
    const value = parseFloat(row.dataset.value), whole = base ? parseFloat(base.dataset.value) : NaN;
    if (Number.isNaN(value) || !whole) return "no comparison";
    const percent = ((value - whole) / whole) * 100, { better } = row.dataset, good = percent > 0 === (better === "more");
    const sign = percent > 0 ? "+" : percent < 0 ? "−" : "±";
    if (!known(row) || !known(base)) return `${sign}${Math.abs(percent).toFixed(1)} %, an error is not known`;
    if (percent && !differ(row, base, among(row))) return `${sign}${Math.abs(percent).toFixed(1)} %, no difference beyond the uncertainty`;
    return `${sign}${Math.abs(percent).toFixed(1)} %` + (!percent ? ", equal" : !better ? "" : good ? ", better" : ", worse");
  }
  // Whether two bars differ by more than both are uncertain by, `wider` for all that are compared, and than two runs of
  // one drive do (uncertain.differ).
  const LEAST = 0.01;
  function differ(row, other, wider) {
    const [[a, da], [b, db]] = [row, other].map(({ dataset }) => [parseFloat(dataset.value), parseFloat(dataset.doubt)]);
    return Math.abs(a - b) > Math.max(wider * Math.hypot(da, db), LEAST * Math.max(Math.abs(a), Math.abs(b)));
  }

  const known = (row) => row.dataset.doubt !== undefined, among = (row) => parseFloat(row.closest(".card").dataset.among);

  // The best, and those no further from it than both are uncertain by; none where that is all of them, or where the best
  // value has no error (cards.best).
  function best(ranked, rows) {
    const value = (row) => parseFloat(row.dataset.value), sign = ranked[0]?.dataset.better === "more" ? -1 : 1;
    const top = ranked.reduce((a, row) => (!a || sign * value(row) < sign * value(a) ? row : a), null);
    const withError = ranked.filter(known);
    const leaders = withError.includes(top) ? withError.filter((row) => !differ(row, top, among(row))) : [];
    for (const row of rows) row.classList.toggle("best", leaders.length < withError.length && leaders.includes(row));
  }
  // The order of a table of cards: that of the figure `key` (without it of the first card) for all columns, and of each
  // card's own where the cards stand apart.
  function sort(table, key, apart) {
    const cards = all(".card[data-key]", table), by = cards.find((card) => card.dataset.key === key) ?? cards[0];
    const place = (card) => {
      const rows = all("button.row", card), sign = rows.find((row) => row.dataset.better != null)?.dataset.better === "less" ? 1 : -1;
      const worth = (row) => [row.dataset.value === undefined, Boolean(apart(row)), sign * parseFloat(row.dataset.value ?? 0)];
      rows.sort((a, b) => worth(a).reduce((order, x, i) => order || x - worth(b)[i], 0));
      return new Map(rows.map((row, i) => [row.dataset.run, i]));
    };
    // by run: whether it comes after the first `most` of those that are not hidden, where not all have room
    const hidden = (run) => table.querySelector(`button.row[data-run="${run}"]`).classList.contains("hidden");
    const below = (places, most, room) => {
      const chosen = [...places.keys()].filter((run) => !hidden(run));
      return (run) => chosen.length > room && chosen.indexOf(run) >= most;
    };
    const order = by ? place(by) : new Map(), inTable = below(order, MOST_ROWS, MOST_ROWS + 1);
    for (const card of cards) {
      const own = place(card), inCard = below(own, MOST_IN_CARD, MOST_IN_CARD);
      for (const row of all("button.row", card)) {
        row.style.setProperty("--own", own.get(row.dataset.run));
        row.classList.toggle("below-own", inCard(row.dataset.run));
      }
    }
    for (const row of all(".row", table)) {
      row.style.setProperty("--all", order.get(row.dataset.run));
      row.classList.toggle("below", inTable(row.dataset.run));
    }
    for (const card of cards) card.querySelector(".sort")?.setAttribute("aria-pressed", String(card === by));
  }

  // One Tab stop for a group of controls; arrows, Home and End go through those that can be seen, as they lie.
  function roving(root, selector) {
    const can = () => all(selector, root).filter((el) => !el.disabled && el.offsetParent);
    const stop = (chosen) => { for (const el of all(selector, root)) el.tabIndex = el === chosen ? 0 : -1; };
    const first = () => { const seen = can(); if (seen.length && !seen.some((el) => el.tabIndex === 0)) stop(seen[0]); };
    root.addEventListener("focusin", (event) => { const el = event.target.closest(selector); if (el) stop(el); });
    root.addEventListener("keydown", (event) => {
      const from = event.target.closest(selector);
      if (!from || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      const lie = can().map((el) => ({ el, box: el.getBoundingClientRect() })), origin = from.getBoundingClientRect();
      const along = event.key === "ArrowLeft" || event.key === "ArrowRight", ahead = event.key === "ArrowRight" || event.key === "ArrowDown";
      const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2], [x, y] = middle(origin);
      const far = ({ box }) => { const [a, b] = middle(box); return along ? [a - x, b - y] : [b - y, a - x]; };
      const next = lie.filter((bar) => bar.el !== from && (ahead ? far(bar)[0] > 1 : far(bar)[0] < -1));
      next.sort((a, b) => 4 * Math.abs(far(a)[1]) + Math.abs(far(a)[0]) - 4 * Math.abs(far(b)[1]) - Math.abs(far(b)[0]));
      const to = event.key === "Home" ? lie[0] : event.key === "End" ? lie.at(-1) : next[0];
      if (to) { stop(to.el); to.el.focus(); }
    });
    stop(can()[0] ?? all(selector, root)[0]);
    return first;
  }

  // Elements that scroll take the keyboard focus; others do not.
  function reach(selector) {
    const boxes = all(selector, document).map((el) => [el, el.scrollHeight > el.clientHeight || el.scrollWidth > el.clientWidth]); // all read, then all written: one layout
    for (const [el, scrolls] of boxes) scrolls ? el.setAttribute("tabindex", "0") : el.removeAttribute("tabindex");
  }
  return { show, sort, roving, reach };
})();
