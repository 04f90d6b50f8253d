"use strict";
// What can be clicked: which runs are shown, which is reviewed, which bar is 100 %, the shared cursor's values, CSV.
function report() {
  const DATA = JSON.parse(document.getElementById("data").textContent), RUNS = DATA.runs;
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const FORM = document.querySelector(".controls"), SHOWN = new Map(); // panel name -> uPlot

  const window_s = Math.max(5, Math.round(Math.max(...RUNS.map((run) => run.n)) / 60));
  for (const run of RUNS) {
    Packed.series(run, DATA.columns);
    run.trend = Panels.rolling(run.iops, window_s);
  }
  const drives = [...new Set(RUNS.map((run) => run.drive))], ops = [...new Set(RUNS.map((run) => run.op))];

  let state = { drives: drives.map((_, i) => i), ops: ops.map((_, i) => i), review: DATA.review, ref: null, trend: true, zoom: null, view: 0, sort: null, fine: null, marks: { a: null, b: null } }, time = 0, around;
  const page = {
    options: state,
    time_label: DATA.dilated ? "s of drive time since the first I/O" : "s since the first I/O",
    reviewed: () => RUNS[state.review],
    visible: (run) => state.drives.includes(drives.indexOf(run.drive)) && state.ops.includes(ops.indexOf(run.op)),
    order: () => [...RUNS.filter((run) => run !== page.reviewed()), page.reviewed()].filter(page.visible),
    colour: (run) => Panels.css(variable(run)),
    window: () => within(page.reviewed()),
    time: () => time,
    zoomed: () => state.zoom,
    zoom,
    fine,
    marks: () => state.marks,
    mark,
    panel: (name) => SHOWN.get(name),
    address: () => address(true),
    variable: (run) => variable(run),
    within: (run) => within(run),
    readout,
  };

  // The chosen window of a run: [from, to, label]; all of the load of a run that has none.
  const within = (run) => run.windows[state.view] ?? [0, run.n, "load"];
  // The reviewed run is vermillion; the others keep their colour whichever run is reviewed.
  const variable = (run) => (run === page.reviewed() ? "--review" : run.colour);
  const comparable = (i, other) => !DATA.apart[other][other] && !DATA.apart[other][i];

  // ---- scales: from all runs, so that hiding one does not move the others
  const reduce = (keep, values) => values.reduce((a, v) => (Number.isFinite(v) ? keep(a, v) : a), keep === Math.max ? -Infinity : Infinity);
  function extent(key, from = 0, positive = false, to = Infinity) {
    let lo = Infinity, hi = -Infinity;
    for (const run of RUNS) for (let i = from; i < Math.min(run.n, to); i++) {
      const v = run[key][i];
      if (Number.isFinite(v) && (!positive || v > 0)) { if (v < lo) lo = v; if (v > hi) hi = v; }
    }
    return hi >= lo ? [lo, hi] : [1, 10];
  }
  const decades = ([lo, hi]) => [10 ** Math.floor(Math.log10(lo)), 10 ** Math.ceil(Math.log10(hi * 1.001))];
  const round125 = (v, up) => {
    const ten = 10 ** Math.floor(Math.log10(v)), steps = [1, 2, 5, 10].map((s) => s * ten);
    return up ? steps.find((s) => s >= v * 0.999) : steps.findLast((s) => s <= v * 1.001);
  };
  const roomy = ([lo, hi]) => [round125(lo / 1.1, false), round125(hi * 1.1, true)];

  // Latencies are printed in ms where they reach one.
  const LATENCY = ((top) => (top >= 1000 ? { unit: "ms", scale: 1e-3, places: 2 } : { unit: "µs", scale: 1, places: 0 }))(extent("lat_p99", 0, true)[1]);
  const seconds = Math.max(2, ...RUNS.map((run) => run.n));
  const LAST = Math.max(seconds - 1, Math.min(Math.ceil(1.05 * seconds), Math.ceil(Math.max(0, ...RUNS.flatMap((run) => run.wa.t))))); // room for the reading after the load

  function specs() {
    const [from, to] = page.window();
    const iops = decades(extent("iops", 0, true)), all = [0, LAST], late = [from, Math.max(from + 1, to - 1)];
    const lows = extent("lat_mean", 0, true), highs = extent("lat_p99", 0, true);
    const warm = RUNS.flatMap((run) => run.temp.v), wa = RUNS.flatMap((run) => run.wa.v.map((v, i) => v + run.wa.e[i]));
    const tails = RUNS.flatMap((run) => [...run.tail.v]);
    const end = Math.max(2, ...RUNS.map((run) => (run.cells ? run.cells.mean.length * run.cells.every : run.n)));
    const C = warm.length ? [Math.floor(reduce(Math.min, warm) / 5) * 5 - 5, Math.ceil(reduce(Math.max, warm) / 5) * 5 + 5] : undefined;
    const of = {
      whole: { kind: "iops", wide: true, x: all, y: iops, log: true, unit: "IOPS", labels: true },
      "zoom-log": { kind: "iops", x: late, y: iops, log: true, unit: "IOPS" },
      "zoom-linear": { kind: "iops", x: late, y: [0, extent("iops", from, false, to)[1] * 1.08 || 1], unit: "IOPS" },
      power: { kind: "power", wide: true, x: all, y: [0, extent("power_max")[1] * 1.08], C, unit: "W" },
      energy: { kind: "energy", wide: true, x: all, y: roomy(extent("energy", 0, true)), log: true, unit: "µJ per I/O" },
      latency: { kind: "latency", wide: true, x: all, y: roomy([Math.min(lows[0], highs[0]), Math.max(lows[1], highs[1])]), log: true, unit: LATENCY.unit, scale: LATENCY.scale },
      tail: { kind: "tail", wide: true, x: all, y: roomy(tails.length ? [reduce(Math.min, tails), reduce(Math.max, tails)] : [1, 10]), log: true, unit: LATENCY.unit, scale: LATENCY.scale },
      rails: { kind: "rails", wide: true, x: all, y: [0, extent("power_mean")[1] * 1.08], unit: "W" },
      samples: { kind: "samples", wide: true, free: true, zoom: fine, range: state.fine ?? undefined, x: [0, end], y: [0, 1], strips: extent("power_max")[1] * 1.08, unit: "W", height: Samples.height(page) },
      wa: { kind: "wa", wide: true, x: all, y: [0, (wa.length ? reduce(Math.max, wa) : 1) * 1.1], unit: "NAND / host bytes" },
    };
    for (const el of $$("[data-panel]")) of[el.dataset.panel].height ??= parseFloat(el.style.minHeight); // kept free since the first paint
    return of;
  }

  function summary(name) {
    const key = { samples: "power_mean", whole: "iops", "zoom-log": "iops", "zoom-linear": "iops", power: "power_mean", rails: "power_mean", energy: "energy", latency: "lat_p99" }[name];
    return page.order().map((run) => {
      const values = key ? [...run[key]].slice(...(name.startsWith("zoom") ? within(run) : []).slice(0, 2)).filter(Number.isFinite) : name === "tail" ? [...run.tail.v] : run.wa.v;
      if (!values.length) return `${run.label}: no data`;
      const mean = values.reduce((a, v) => a + v, 0) / values.length;
      return `${run.label}: ${key ? `mean ${num(mean)}, least ${num(reduce(Math.min, values))}, most ${num(reduce(Math.max, values))}` : `last ${num(values.at(-1))}`}`;
    }).join("; ");
  }

  const PAPER = { wide: 860, half: 420 }; // width of a plot in CSS pixels, which a sheet of A4 scales by 0.8
  const WIDE = new Set(Object.entries(specs()).filter(([, spec]) => spec.wide && !spec.free).map(([name]) => name));
  let paper = false;
  function draw(name, spec) {
    const el = document.querySelector(`[data-panel="${name}"]`);
    if (!el) return;
    const width = paper ? 2 * (spec.wide ? PAPER.wide : PAPER.half) : el.clientWidth;
    if (!SHOWN.has(name)) Panels.keys(el, page, () => SHOWN.get(name), () => specs()[name].x, spec.free && { zoom: fine });
    SHOWN.get(name)?.destroy();
    SHOWN.set(name, Panels.panel({ ...spec, el, width, height: spec.height * (paper ? 0.85 : 1) }, page));
    el.setAttribute("role", "slider");
    el.setAttribute("aria-label", `${el.closest("figure").querySelector("b").textContent}. ${summary(name)}`);
    el.setAttribute("aria-valuemin", 0);
    el.setAttribute("aria-valuemax", LAST);
    saySlider(el);
  }
  // The cursor's text for a screen reader: the reviewed run first.
  const saySlider = (el) => { el.setAttribute("aria-valuenow", time); el.setAttribute("aria-valuetext", spoken); };
  let spoken = "";
  // One panel a task, so that the page answers while the later ones are drawn.
  function drawAll() {
    const all = Object.entries(specs());
    captions();
    const next = () => {
      const one = all.shift();
      if (!one) { reach(); document.body.dataset.ready = String(SHOWN.size); return; }
      draw(...one);
      setTimeout(next, 0);
    };
    next();
  }
  function captions() {
    document.querySelector(".caption-iops").textContent = `Each mark is one second. Line: median of the ${window_s} s around it; band: their 10th to 90th percentile. Shaded: ${page.window()[2]}. Open triangles at the bottom: seconds without any I/O.`;
    for (const el of $$(".caption-window")) el.textContent = `, ${page.window()[2]}`;
  }

  // Zoom in time of all wide panels; null is the whole load.
  function zoom(range) {
    const whole = [0, LAST];
    if (range) {
      const [a, b] = range, more = Math.max(0, Panels.LEAST_s - (b - a)) / 2;
      range = [Math.max(whole[0], Math.round(a - more)), Math.min(whole[1], Math.round(b + more))];
      if (range[0] >= range[1] || (range[0] === whole[0] && range[1] === whole[1])) range = null;
    }
    state.zoom = range;
    toHash();
    for (const [name, u] of SHOWN) if (WIDE.has(name)) Panels.show(u, range ?? whole);
    showZoom();
  }
  // Zoom of the panel of samples, down to milliseconds.
  function fine(range) {
    const u = SHOWN.get("samples"), [from, to] = specs().samples.x;
    if (!u) return;
    if (range) {
      const more = Math.max(0, 0.005 - (range[1] - range[0])) / 2;
      range = [Math.max(from, range[0] - more), Math.min(to, range[1] + more)].map((t) => +t.toFixed(5));
      if (!(range[0] < range[1])) range = null;
    }
    state.fine = range;
    toHash();
    Panels.show(u, range ?? [from, to]);
  }
  // Marks a and b at the cursor; "" takes both away.
  function mark(name) {
    if (name) state.marks[name] = +time.toFixed(5);
    else state.marks = { a: null, b: null };
    toHash();
    around.between();
    for (const u of SHOWN.values()) u.redraw(false);
  }
  function showZoom() {
    const reset = document.getElementById("reset");
    reset.hidden = !state.zoom;
    if (state.zoom) reset.textContent = `Shown: ${num(state.zoom[0], 0)} to ${num(state.zoom[1], 0)} s. Show all`;
  }

  // ---- numbers
  const num = (v, places) => {
    if (v == null || Number.isNaN(v)) return "–";
    const digits = places ?? (Math.abs(v) >= 1000 ? 0 : Math.abs(v) >= 10 ? 1 : 3);
    const text = v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return text.replace(/^-(?=[0.,]*$)/, "").replaceAll(",", "\u202f").replace("-", "−");
  };
  // The last poll's value at a time; where it is older than a second, when it was polled.
  function held({ t, v }, now, places) {
    const i = t.findLastIndex((s) => s <= now + 1);
    return num(v[i], places) + (i >= 0 && now - t[i] > 1 ? ` <small>(at ${num(t[i], 0)} s)</small>` : "");
  }

  const READOUT = document.getElementById("readout"), TAILS = RUNS.some((run) => run.tail.v.length);
  const tailAt = ({ tail }, t) => tail.v[tail.t.findIndex((end, i) => i && t < end) - 1] ?? NaN; // of the stretch around t
  function readout(t) {
    time = t;
    const exact = !Number.isInteger(t);
    t = Math.round(t);
    const units = ["IOPS", "W", "µJ/IO", `${LATENCY.unit} P99${TAILS ? " · P99.9" : ""}`, "°C", "WA"];
    const runs = page.order(), listed = runs.includes(page.reviewed()) ? [runs.pop(), ...runs] : runs;
    const spokenRuns = [];
    const rows = listed.map((run) => {
      const inside = t >= 0 && t < run.n, at = (key) => (inside ? run[key][t] : NaN);
      const cells = [num(at("iops"), 0), num(exact && run.cells ? run.cells.mean[Math.floor(time / run.cells.every)] : at("power_mean"), 3), num(at("energy") || NaN, 1), num(at("lat_p99") * LATENCY.scale, LATENCY.places) + (TAILS ? ` · ${num(tailAt(run, t) * LATENCY.scale, LATENCY.places)}` : ""), held(run.temp, t, 0), held(run.wa, t, 3)];
      spokenRuns.push(`${run.short}: ${cells[0]} IOPS, ${cells[1]} W, ${units[3].replace(LATENCY.unit, "").trim()} ${cells[3]} ${LATENCY.unit}`);
      return `<tr><th scope="row">${sample(run)}${swatch(run)}<span></span><small class="soft"></small></th>${cells.map((c, i) => `<td>${c} <small>${units[i]}</small></td>`).join("")}</tr>`;
    });
    READOUT.innerHTML = `<table><thead><tr><th scope="col">t = ${num(time, exact ? 3 : 0)} s</th></tr></thead><tbody>${rows.join("")}</tbody></table>`;
    if (!listed.length) READOUT.textContent = NONE;
    listed.forEach((run, i) => {
      READOUT.querySelectorAll("th span")[i].textContent = run.short;
      READOUT.querySelectorAll("th small")[i].textContent = run === page.reviewed() && t >= 0 && t < run.n ? run.rails.map(({ name, mean }) => ` ${name} ${num(mean[t], 2)} W`).join(",") : "";
    });
    spoken = `t = ${num(t, 0)} s. ${spokenRuns.slice(0, 4).join("; ")}`;
    for (const el of $$(".panel[role=slider]")) saySlider(el);
  }

  const reach = () => Cards.reach(".readout, .scroll");
  const NONE = "No run is shown: choose a drive and an over-provisioning above.";
  const sample = (run) => `<svg width="30" height="10" aria-hidden="true"><line x1="0" y1="5" x2="30" y2="5" stroke="${page.colour(run)}" stroke-width="${run === page.reviewed() ? 3 : 1.6}" stroke-dasharray="${Panels.dash(run, run === page.reviewed())}"/></svg>`;
  const swatch = (run) => `<i class="key" style="color:${page.colour(run)}">${run.glyph}</i>`;
  function showLegend() {
    const shown = page.order().reverse(), list = document.getElementById("legend");
    if (!shown.length) { list.innerHTML = `<li>${NONE}</li>`; return; }
    list.innerHTML = shown.map((run) => `<li>${sample(run)}${swatch(run)}<span></span></li>`).join("");
    shown.forEach((run, i) => { list.querySelectorAll("span")[i].textContent = run.label + (run === page.reviewed() ? " (reviewed)" : ""); });
  }

  // a cell of the table of figures belongs to the run of its column
  for (const cell of $$(".figures td")) cell.dataset.run = cell.cellIndex - 1;

  // ---- state: form and hash agree
  function showState() {
    for (const box of $$("input[name=drive]", FORM)) box.checked = state.drives.includes(+box.value);
    for (const box of $$("input[name=op]", FORM)) box.checked = state.ops.includes(+box.value);
    FORM.elements.review.value = state.review;
    FORM.elements.trend.checked = state.trend;
    document.getElementById(`view-${state.view}`).checked = true;
    const apart = DATA.apart[state.review];
    for (const el of $$("[data-run]")) {
      const i = +el.dataset.run, run = RUNS[i];
      el.classList.toggle("hidden", !page.visible(run));
      if (el.matches(".row, td, th")) el.classList.toggle("top", run === page.reviewed());
      if (!el.matches(".row")) continue;
      el.style.setProperty("--bar", `var(${variable(run)})`);
      const unlike = apart[i] || el.dataset.red;
      el.classList.toggle("apart", Boolean(unlike));
      el.title = run.label + (unlike ? `: not comparable, ${unlike}` : "");
      const why = el.querySelector(".why");
      if (why) why.textContent = apart[i] ? `Not comparable: ${apart[i]}` : "";
    }
    for (const el of $$(".verdict p")) el.classList.toggle("hidden", +el.dataset.review !== state.review);
    $$("#about-h ~ .scroll .review").forEach((el) => el.remove());
    if (RUNS.length > 1) document.querySelector(`.of-runs tr[data-run="${state.review}"] th`).insertAdjacentHTML("beforeend", ' <span class="review">reviewed</span>');
    for (const table of $$(".ranking")) Cards.sort(table, state.sort, (row) => apart[row.dataset.run] || row.dataset.red);
    showPercent();
    showLegend();
    showZoom();
    readout(time);
    around.plates();
    around.between();
    around.moments();
    stops.forEach((first) => first());
  }

  const showPercent = () => Cards.show(document, state.ref, {
    apart: (row) => DATA.apart[state.review][row.dataset.run] || row.dataset.red,
    comparable: (row, other) => !row.dataset.red && !other?.dataset.red && comparable(row.dataset.run, other ? other.dataset.run : state.review),
    visible: (row) => page.visible(RUNS[row.dataset.run]),
  });

  // The address names the runs and panels so that it stays valid when the page is made again with more runs.
  function address(cursor) {
    const words = new URLSearchParams(), id = (i) => RUNS[i].id;
    drives.forEach((name, i) => { if (!state.drives.includes(i)) words.append("hide", name); });
    ops.forEach((name, i) => { if (!state.ops.includes(i)) words.append("hide-op", name); });
    if (state.review !== DATA.review) words.set("review", id(state.review));
    if (state.ref != null) words.set("ref", id(state.ref));
    if (!state.trend) words.set("trend", "0");
    if (state.view) words.set("window", DATA.views[state.view]);
    if (state.sort) words.set("sort", state.sort);
    if (state.zoom) words.set("t", state.zoom.join("-"));
    if (state.fine) words.set("s", state.fine.join("-"));
    if (state.marks.a != null) words.set("a", state.marks.a);
    if (state.marks.b != null) words.set("b", state.marks.b);
    if (cursor) words.set("at", +time.toFixed(5));
    return String(words) ? `#${words}` : location.pathname + location.search;
  }
  const toHash = () => history.replaceState(null, "", address(false));
  function fromHash() {
    const words = new URLSearchParams(location.hash.slice(1));
    const shown = (all, hidden) => [...all.keys()].filter((i) => !words.getAll(hidden).includes(all[i]));
    const one = (name, other) => { const i = RUNS.findIndex((run) => run.id === words.get(name)); return i < 0 ? other : i; };
    const [, a, b] = (/^(\d+)-(\d+)$/.exec(words.get("t") ?? "") ?? []).map(Number), range = a < b && b <= LAST ? [a, b] : null;
    const sort = $$(".sort").some((el) => el.dataset.key === words.get("sort")) ? words.get("sort") : null;
    Object.assign(state, { drives: shown(drives, "hide"), ops: shown(ops, "hide-op"), review: one("review", DATA.review), ref: one("ref", null), trend: words.get("trend") !== "0", zoom: range, view: Math.max(0, DATA.views.indexOf(words.get("window"))), sort });
    const at = (name) => (/^\d+(\.\d+)?$/.test(words.get(name) ?? "") ? Math.min(LAST + 3600, +words.get(name)) : null), [, c, d] = (/^([\d.]+)-([\d.]+)$/.exec(words.get("s") ?? "") ?? []).map(Number);
    Object.assign(state, { marks: { a: at("a"), b: at("b") }, fine: c < d ? [c, d] : null });
    time = at("at") ?? time;
  }
  const redraw = () => { reach(); for (const [name, u] of SHOWN) { u.redraw(false); u.root.parentElement.setAttribute("aria-label", u.root.parentElement.getAttribute("aria-label").split(".")[0] + ". " + summary(name)); } };

  FORM.addEventListener("submit", (event) => event.preventDefault());
  FORM.addEventListener("change", (event) => {
    const chosen = (name) => $$(`input[name=${name}]`, FORM).filter((box) => box.checked).map((box) => +box.value);
    Object.assign(state, { drives: chosen("drive"), ops: chosen("op"), review: +FORM.elements.review.value, trend: FORM.elements.trend.checked, view: +FORM.elements.view.value });
    toHash();
    showState();
    ["review", "view"].includes(event.target.name) ? drawAll() : redraw();
  });
  document.getElementById("reset").addEventListener("click", () => zoom(null));
  document.getElementById("cards").addEventListener("click", (event) => {
    const row = event.target.closest(".row"), by = event.target.closest(".sort");
    if (event.target.matches(".all-runs")) {
      event.currentTarget.classList.remove("folded");
      event.target.remove();
      $$(".sort", event.currentTarget).find((el) => el.offsetParent)?.focus();
    }
    if (by) {
      state.sort = by.dataset.key;
      toHash();
      showState();
    }
    if (!row) return;
    state.ref = state.ref === +row.dataset.run ? null : +row.dataset.run;
    toHash();
    showPercent();
  });
  for (const button of $$(".csv")) button.addEventListener("click", () => save(RUNS[button.dataset.run]));
  function csv(run) {
    const name = (rail) => `"power_mean_W ${rail.name.replaceAll('"', '""')}"`, cell = (values, i) => (Number.isNaN(values[i]) ? "" : values.text ? values.text(values[i]) : values[i]);
    const rows = [["t_s", ...DATA.columns.map(([, column]) => column), ...run.rails.map(name)].join(",")];
    for (let i = 0; i < run.n; i++) rows.push([i, ...DATA.columns.map(([key]) => cell(run[key], i)), ...run.rails.map((rail) => cell(rail.mean, i))].join(","));
    return rows.join("\n") + "\n";
  }
  function save(run) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(run)], { type: "text/csv" }));
    link.download = `${run.id}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  window.addEventListener("hashchange", () => { fromHash(); showState(); drawAll(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!paper) { showState(); redraw(); } }); // paper is light
  // On paper: light, the whole page's width, twice the size scaled down to be sharp, and all drawn before the page is taken.
  const SHEET_RUNS = 5;
  // The table of figures has a column for each run: on paper it is one of a few runs, and below it the next.
  function sheets(on) {
    const table = document.querySelector(".figures").parentElement, shown = page.order().map((run) => run.index).sort((a, b) => a - b);
    $$(".of-paper").forEach((el) => el.remove());
    table.classList.toggle("off-paper", on && shown.length > SHEET_RUNS);
    if (!on || shown.length <= SHEET_RUNS) return;
    const count = Math.ceil(shown.length / SHEET_RUNS), most = Math.ceil(shown.length / count);
    for (let at = count - 1; at >= 0; at--) {
      const copy = table.cloneNode(true), columns = shown.slice(at * most, (at + 1) * most);
      copy.className = "scroll of-paper";
      for (const cell of $$("[data-run]", copy)) if (!columns.includes(+cell.dataset.run)) cell.remove();
      for (const group of $$(".group", copy)) group.colSpan = columns.length + 1;
      table.after(copy);
    }
  }
  function press(on) {
    paper = on;
    document.documentElement.classList.toggle("paper", on);
    Panels.enlarge(on ? 2 : 1);
    showState();
    sheets(on);
    for (const [name, spec] of Object.entries(specs())) draw(name, spec);
  }
  window.addEventListener("beforeprint", () => press(true));
  window.addEventListener("afterprint", () => press(false));
  let resizing;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => { if (!paper) SHOWN.forEach((u) => u.setSize({ width: u.root.parentElement.clientWidth, height: u.height })); reach(); }, 150);
  });

  document.getElementById("link").addEventListener("click", async (event) => {
    history.replaceState(null, "", address(true));
    try { await navigator.clipboard.writeText(location.href); event.target.textContent = "Copied"; } catch { event.target.textContent = "See the address bar"; }
    setTimeout(() => { event.target.textContent = "Copy link"; }, 2000);
  });
  const stops = [...$$(".ranking").map((el) => Cards.roving(el, "button")), ...$$("fieldset", FORM).map((el) => Cards.roving(el, "input[type=checkbox]")), ...$$(".figures thead").map((el) => Cards.roving(el, ".csv"))];
  document.querySelector(".filter").addEventListener("toggle", () => stops.forEach((first) => first()));

  const decoding = RUNS.map(Samples.decode);
  around = tools(page, { RUNS, DATA, num, specs });
  time = Math.max(0, RUNS[DATA.review].n - 1);
  fromHash();
  showState();
  const decoded = Promise.all(decoding).then(() => { around.moments(); around.between(); drawAll(); });
  const limits = () => Object.fromEntries([...SHOWN].map(([name, u]) => [name, [u.scales.x.min, u.scales.x.max]]));
  window.ssdrig = { csv: (i) => csv(RUNS[i]), state: () => state, decoded, around, samples: (i) => RUNS[i], strips: () => ({ names: Samples.rows(page).map(({ name }) => name), lanes: Samples.lanes(page.reviewed()) }), address: () => address(true), trend: (i) => RUNS[i].trend, zoom, limits, ticks: (name) => SHOWN.get(name).axes[0]._splits };
  return press;
}

// After the first paint: words, tables and bars stand before the runs are decoded. A page that is not seen paints none.
(() => {
  const errors = [];
  window.addEventListener("error", (event) => { errors.push(event.message); document.body.dataset.errors = errors.join("; "); });
  document.body.dataset.errors = "";
  let press;
  const begin = () => {
    document.documentElement.classList.add("painted");
    press ??= report();
  };
  window.addEventListener("beforeprint", () => { if (!press) { begin(); press(true); } });
  document.hidden ? setTimeout(begin) : requestAnimationFrame(() => setTimeout(begin));
})();
