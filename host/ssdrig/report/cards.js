"use strict";
// The cards: how far each bar is from the one that was clicked, in percent, and the best of those that are comparable.
const Cards = (() => {
  const all = (selector, root) => [...root.querySelectorAll(selector)];

  // `ref`: number of the run that is 100 %, or null. Of a row: apart(row) whether it is not comparable with the reviewed
  // run; comparable(row, other) whether two are (without other: with the reviewed run); visible(row).
  function show(root, ref, { apart, comparable, visible }) {
    for (const card of all(".card", root)) {
      const rows = all("button.row", card), base = ref == null ? null : card.querySelector(`button.row[data-run="${ref}"]`);
      best(rows.filter((row) => row.dataset.better && comparable(row) && visible(row)), rows);
      for (const row of rows) {
        row.setAttribute("aria-pressed", String(row === base));
        row.querySelector(".percent").textContent = words(row, base, ref, { apart, comparable });
      }
    }
  }
  function words(row, base, ref, { apart, comparable }) {
    if (ref == null) return apart(row) ? "not comparable" : row.dataset.aside;
    if (row === base) return "= 100 %";
    if (base && !comparable(row, base)) return "not comparable";
    const value = parseFloat(row.dataset.value), whole = base ? parseFloat(base.dataset.value) : NaN;
    if (Number.isNaN(value) || !whole) return "no comparison";
    const percent = ((value - whole) / whole) * 100, { better } = row.dataset, good = percent > 0 === (better === "more");
    const sign = percent > 0 ? "+" : percent < 0 ? "−" : "±";
    return `${sign}${Math.abs(percent).toFixed(1)} %` + (!percent ? ", equal" : !better ? "" : good ? ", better" : ", worse");
  }
  // Where they differ.
  function best(ranked, rows) {
    const values = ranked.map((row) => parseFloat(row.dataset.value));
    const most = ranked[0]?.dataset.better === "more" ? Math.max(...values) : Math.min(...values);
    const differ = values.some((value) => value !== most);
    for (const row of rows) row.classList.toggle("best", differ && ranked.includes(row) && parseFloat(row.dataset.value) === most);
  }
  return { show };
})();
