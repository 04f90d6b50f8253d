"use strict";
// Controls around the plots: buttons of each figure (PNG, SVG, CSV), the moments of the panel of samples, and the box
// of the figures between two marks. `page` is report.js's.
function tools(page, { RUNS, DATA, num, specs }) {
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const figures = $$("main figure").filter((el) => el.querySelector(".panel, svg.plot"));
  const title = (el) => el.querySelector("figcaption b").textContent;
  const shown = () => page.order().reverse();

  // ---- PNG, SVG, CSV
  const SERIES = { whole: ["iops"], "zoom-log": ["iops"], "zoom-linear": ["iops"], power: ["power_mean", "power_min", "power_max"], energy: ["energy"], latency: ["lat_mean", "lat_p99"] };
  const columns = Object.fromEntries(DATA.columns);
  const quoted = (text) => `"${String(text).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;  // no formula of a spreadsheet
  const cell = (values, i) => (Number.isNaN(values[i]) ? "" : values.text ? values.text(values[i]) : values[i]);

  // The points of a panel within its time, as they are seen.
  function csv(name) {
    const { min, max } = page.panel(name).scales.x, rows = [];
    if (name === "wa") {
      rows.push("run,t_s,wa,wa_error");
      for (const run of shown()) run.wa.t.forEach((t, i) => { if (t >= min && t <= max) rows.push([quoted(run.id), t, run.wa.v[i], run.wa.e[i]].join(",")); });
    } else if (name === "tail") {
      rows.push("run,from_s,to_s,p999_us");
      for (const run of shown()) Array.from(run.tail.v).forEach((us, i) => { if (run.tail.t[i + 1] >= min && run.tail.t[i] <= max) rows.push([quoted(run.id), run.tail.t[i], run.tail.t[i + 1], us].join(",")); });
    } else if (name === "rails") {
      rows.push("run,t_s,rail,power_mean_W");
      for (const run of shown()) for (const { name: rail, mean } of run.rails) for (let i = Math.max(0, Math.ceil(min)); i < run.n && i <= max; i++) rows.push([quoted(run.id), i, quoted(rail), cell(mean, i)].join(","));
    } else if (name === "samples") {
      rows.push("run,t_s,power_W");
      for (const run of shown()) for (const { t, P } of run.traces) for (let i = 0; i < t.length; i++) if (t[i] >= min && t[i] <= max) rows.push([quoted(run.id), +t[i].toFixed(5), Number.isNaN(P[i]) ? "" : +P[i].toPrecision(5)].join(","));
      if (rows.length === 1) {
        rows[0] = ["run", "t_s", ...["power_mean", "power_min", "power_max"].map((key) => columns[key])].join(",");
        for (const run of shown()) { const { every, mean, min: lo, max: hi } = run.cells; for (let i = Math.max(0, Math.ceil(min / every)); i < mean.length && i * every <= max; i++) rows.push([quoted(run.id), +(i * every).toFixed(3), ...[mean, lo, hi].map((of) => (Number.isNaN(of[i]) ? "" : +of[i].toPrecision(5)))].join(",")); }
      }
    } else {
      rows.push(["run", "t_s", ...SERIES[name].map((key) => columns[key])].join(","));
      for (const run of shown()) for (let i = Math.max(0, Math.ceil(min)); i < run.n && i <= max; i++) rows.push([quoted(run.id), i, ...SERIES[name].map((key) => cell(run[key], i))].join(","));
    }
    return rows.join("\n") + "\n";
  }
  // Watts over IOPS: all seconds of the window.
  function scatter() {
    const rows = ["run,t_s,iops,power_mean_W"];
    for (const run of shown()) { const [from, to] = page.within(run); for (let i = from; i < to; i++) rows.push([quoted(run.id), i, run.iops[i], cell(run.power_mean, i)].join(",")); }
    return rows.join("\n") + "\n";
  }
  async function drawn(el) {
    const panel = el.querySelector(".panel"), svg = $$("svg.plot", el)[0];
    if (!panel) return Export.ofPlate(svg);
    const name = panel.dataset.panel, u = page.panel(name), { min, max } = u.scales.x, width = panel.clientWidth;
    return Export.ofPanel((into) => Panels.panel({ ...specs()[name], el: into, width, range: [min, max] }, page), width, specs()[name].height);
  }
  function labels(el) {
    const panel = el.querySelector(".panel"), runs = el.dataset.run ? [RUNS[el.dataset.run]] : shown(), scales = panel && page.panel(panel.dataset.panel).scales.x;
    const settings = { panel: panel?.dataset.panel ?? el.dataset.plate, address: page.address(), runs: Object.fromEntries(runs.map((run) => [run.id, run.about])), ...(scales && { from_s: scales.min, to_s: scales.max }) };
    return {
      title: title(el), sub: [document.querySelector("h1").textContent, DATA.simulated ? "SIMULATED" : ""].filter(Boolean).join(" · "),
      legend: runs.map((run) => [run.glyph, page.colour(run), run.label + (run === page.reviewed() && RUNS.length > 1 ? " (reviewed)" : "")]),
      caption: (el.querySelector("figcaption .soft")?.textContent ?? "").replace(/\s+/g, " ").trim(),
      foot: `Source: ssdrig · ${DATA.days} · ${document.querySelector("main").dataset.source}`, settings: JSON.stringify(settings),
    };
  }
  async function text(el, kind) {
    if (kind === "CSV" && el.dataset.plate === "power-iops") return scatter();
    if (kind === "CSV") return el.dataset.csv ? new TextDecoder().decode(await Samples.inflate(el.dataset.csv)) : csv(el.querySelector(".panel").dataset.panel);
    return Export.framed(await drawn(el), labels(el));
  }
  async function save(el, kind) {
    const what = labels(el), name = `${el.querySelector(".panel")?.dataset.panel ?? el.dataset.plate}-${RUNS.length === 1 || el.dataset.run ? (RUNS[el.dataset.run ?? 0]).id : `${RUNS.length}-runs`}.${kind.toLowerCase()}`;
    const made = await text(el, kind);
    if (kind === "PNG") return Export.save(name, await Export.png(made, { Title: what.title, Software: "ssdrig", Source: what.foot, Settings: what.settings }));
    Export.save(name, made, kind === "SVG" ? "image/svg+xml" : "text/csv");
  }
  for (const el of figures) {
    const bar = document.createElement("span");
    bar.className = "tools";
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", `Save: ${title(el)}`);
    const kinds = el.querySelector(".panel") || el.dataset.csv || el.dataset.plate === "power-iops" ? ["PNG", "SVG", "CSV"] : ["PNG", "SVG"];
    bar.append(...kinds.map((kind) => Object.assign(document.createElement("button"), { type: "button", textContent: kind, onclick: () => save(el, kind) })));
    el.querySelector("figcaption").prepend(bar);
    Cards.roving(bar, "button");
  }

  // ---- moments of the reviewed run
  const MOMENTS = document.querySelector(".moments");
  let stop = () => {};
  function moments() {
    if (!MOMENTS) return;
    const run = page.reviewed(), all = [{ words: "All", range: null }, ...run.traces.map(({ words, t }) => ({ words, range: [t[0], t.at(-1)] }))];
    MOMENTS.replaceChildren(...all.slice(0, 30).map(({ words, range }) => Object.assign(document.createElement("button"), { type: "button", textContent: words, onclick: () => page.fine(range) })));
    const fine = run.cells.every, about = fine < 1 ? `${Math.round(fine * 1000)} ms` : "second";
    document.querySelector(".caption-samples").textContent = `A strip for each run${run.rails.length > 1 ? " and rail (by the second)" : ""}, one scale; below, the events of the reviewed run. Line: mean of each ${about}; band: lowest to highest sample in it. Around the moments below, and where there is room for them, every sample. Drag to zoom; its time is its own.`;
    stop();
  }
  if (MOMENTS) stop = Cards.roving(MOMENTS, "button");

  // ---- between the marks
  const BOX = document.getElementById("marks"), COPY = document.getElementById("copy-marks");
  let copied = "";
  function between() {
    if (!BOX) return;
    const { a, b } = page.marks(), from = Math.min(a ?? NaN, b ?? NaN), to = Math.max(a ?? NaN, b ?? NaN);
    COPY.hidden = !(to > from);
    if (!(to > from)) { BOX.textContent = a == null && b == null ? "" : `A = ${a == null ? "–" : num(a, 3) + " s"}, B = ${b == null ? "–" : num(b, 3) + " s"}`; return; }
    const head = ["run", "s", "J", "mean W", "sd W", "lowest W", "highest W", "I/O", "µJ/IO", "of"];
    const rows = shown().map((run) => {
      const x = Samples.between(run, from, to);
      return [run.label, num(to - from, 3), num(x.J, x.J < 10 ? 4 : 1), num(x.mean, 4), num(x.sd, 4), num(x.lo, 3), num(x.hi, 3), num(x.ios, 0), num((x.J / x.ios) * 1e6, 1), `${x.n} ${x.of}`];
    });
    copied = [`${num(from, 4)} s to ${num(to, 4)} s`, head.join("\t"), ...rows.map((row) => row.join("\t"))].join("\n").replaceAll("\u202f", "");
    const table = document.createElement("table"), line = (cells, tag) => { const tr = document.createElement("tr"); tr.append(...cells.map((c, i) => Object.assign(document.createElement(i ? tag : "th"), { textContent: c, scope: i && tag === "td" ? "" : tag === "th" ? "col" : "row" }))); return tr; };
    table.append(line(head, "th"), ...rows.map((row) => line(row, "td")));
    BOX.replaceChildren(table);
  }
  for (const button of $$(".markers [data-mark]")) button.addEventListener("click", () => page.mark(button.dataset.mark));
  COPY?.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(copied); COPY.textContent = "Copied"; } catch { COPY.textContent = "Not allowed here"; }
    setTimeout(() => { COPY.textContent = "Copy as text"; }, 2000);
  });

  // Lines of the plates: the reviewed run strong and in its colour, hidden runs away.
  function plates() {
    for (const run of RUNS) for (const el of $$(`.of-run.r${run.index}`)) {
      const top = run === page.reviewed(), colour = page.variable(run);
      el.classList.toggle("hidden", !page.visible(run));
      for (const property of ["stroke", "fill"]) if (el.style[property].startsWith("var(")) el.style[property] = `var(${colour})`;
      if (el.matches(".line")) el.style.strokeWidth = top ? 2.2 : 1.4;
    }
  }
  return { moments, between, plates, text, figures };
}
