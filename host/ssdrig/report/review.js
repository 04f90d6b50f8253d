"use strict";
// What can be clicked on the page of a review: which bar is 100 %, which drives and which over-provisioning are shown.
(() => {
  const errors = [];
  window.addEventListener("error", (event) => { errors.push(event.message); document.body.dataset.errors = errors.join("; "); });
  document.body.dataset.errors = "";
  const DATA = JSON.parse(document.getElementById("data").textContent), FORM = document.querySelector(".controls");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const chosen = (name) => all(`input[name=${name}]`, FORM).filter((box) => box.checked).map((box) => +box.value);
  const apart = (row) => row.classList.contains("apart");
  let ref = null, drives = [], ops = [];
  const visible = (run) => drives.includes(DATA.members[run][0]) && ops.includes(DATA.members[run][1]);

  const hidden = (style) => { const [, i] = /--m(\d+)\)/.exec(style) ?? []; return i !== undefined && !visible(i); };

  const stops = all("section > .cards").map((cards) => Cards.roving(cards, "button.row"));

  function show() {
    drives = chosen("drive");
    ops = chosen("op");
    for (const el of all("button.row, tr[data-run]")) el.classList.toggle("hidden", !visible(el.dataset.run));
    DATA.members.forEach((_, i) => visible(i) ? document.documentElement.style.removeProperty(`--m${i}`) : document.documentElement.style.setProperty(`--m${i}`, "transparent")); // in all plots
    for (const el of all(".legend li")) el.classList.toggle("hidden", [...el.querySelectorAll("[style]")].some((key) => hidden(key.getAttribute("style"))));
    Cards.show(document, ref, { apart, comparable: (row, other) => !apart(row) && !(other && apart(other)), visible: (row) => visible(row.dataset.run) });
    for (const first of stops) first();
  }
  const toHash = () => history.replaceState(null, "", ref == null ? location.pathname + location.search : `#ref=${ref}`);
  function fromHash() {
    const [, run] = /^#ref=(\d+)$/.exec(location.hash) ?? [];
    ref = run !== undefined && DATA.members[run] ? +run : null;
  }
  document.addEventListener("click", (event) => {
    const row = event.target.closest("button.row");
    if (!row) return;
    ref = ref === +row.dataset.run ? null : +row.dataset.run;
    toHash();
    show();
  });
  FORM.addEventListener("submit", (event) => event.preventDefault());
  FORM.addEventListener("change", show);
  window.addEventListener("hashchange", () => { fromHash(); show(); });
  // after the first paint: words and bars stand before all below them is laid out; a page that is not seen paints none
  const begin = () => {
    document.documentElement.classList.add("painted");
    fromHash();
    show();
    performance.mark("ready");
    document.body.dataset.ready = "1";
  };
  document.hidden ? setTimeout(begin) : requestAnimationFrame(() => setTimeout(begin));
})();
