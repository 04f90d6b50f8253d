"use strict";
// The run that goes on: what the stream delivers is stored as one value a second, in the form in which panels.js draws a
// run of a report; the newest moments have rows of their own, of a tenth of a second each.
const Live = (() => {
  const { $, el, num, withError, size, clock } = Client;
  const SPANS = [["10 s", 10], ["60 s", 60], ["10 min", 600], ["all", Infinity]], STEP_s = 0.1;
  const step_s = (one) => STEP_s / one.facts.dilation; // of drive time, as the axis
  let run = null, end = null, span = 60, frozen = null, dirty = false, shown = new Map(), marked = null, acts = [];

  const empty = (facts) => ({
    facts, index: 0, shape: "circle", glyph: "●", colour: "--review", n: 0, label: "", windows: [],
    iops: [], lat_mean: [], lat_p99: [], power_min: [], power_mean: [], power_max: [], energy: [], heat: [],
    temp: { t: [], v: [] }, wa: { t: [], v: [], e: [] }, rails: [], polls: [], marks: [],
    tenths: new Map(), preview: new Map(), settled: -Infinity, now: 0, joules: 0, lost: 0, clock_us: null, rig: null,
    lines: [], steps: new Map(), running: null, smart: [], written: null, rows: 0, ended: null, behind: null, cut: [], ends: null, earlier: [],
  });

  const page = {
    options: { trend: false }, time_label: "s since the start of the run", reviewed: () => run, visible: () => true,
    order: () => [run], colour: (one) => Panels.css(one.colour), window: () => [0, 0], time: () => run.now, zoomed: () => null,
    zoom: mark, readout() {},
  };

  // ---- the contents of a panel, in addition to those of a report
  Panels.KINDS.live = (u, one) => {
    const c = u.ctx, X = Panels.toX(u), Y = Panels.toY(u, "y"), { min, max } = u.scales.x, wide = max - min > 620;
    const rows = wide
      ? one.power_mean.map((mean, i) => [i, one.power_min[i], mean, one.power_max[i], false, 1]).filter((row) => row[2] != null)
      : [...[...one.tenths.values()].map((row) => [...row, false, step_s(one)]), ...[...one.preview.values()].map((row) => [...row, true, step_s(one)])];
    const some = rows.filter(([t]) => t >= min - 1 && t <= max).sort((a, b) => a[0] - b[0]);
    if (marked) {
      c.globalAlpha = 0.16;
      c.fillStyle = Panels.css("--blue");
      c.fillRect(X(marked[0]), u.bbox.top, X(marked[1]) - X(marked[0]), u.bbox.height);
      c.fillStyle = c.strokeStyle = page.colour(one);
    }
    const parted = (i) => i > 0 && some[i][0] - some[i - 1][0] > 2.5 * some[i][5];
    for (let a = 0; a < some.length;) {
      let b = a + 1;
      while (b < some.length && !parted(b) && some[b][4] === some[b - 1][4]) b++;
      const piece = some.slice(a, b + (b < some.length && !parted(b) ? 1 : 0)), x = (i) => X(piece[i][0] + piece[i][5] / 2), no = () => false;
      c.globalAlpha = piece[0][4] ? 0.12 : 0.25;
      Panels.band(c, piece.length, x, (i) => Y(piece[i][1]), (i) => Y(piece[i][3]), no);
      c.globalAlpha = 1;
      c.lineWidth = 1.6 * Panels.px();
      c.setLineDash(piece[0][4] ? [4 * Panels.px(), 3 * Panels.px()] : []);
      Panels.line(c, piece.length, x, (i) => Y(piece[i][2]), no);
      a = b;
    }
    c.setLineDash([]);
  };
  const lower_us = (row) => { const at = 16 * row; return (at < 128 ? at : (64 + (at % 64)) * 2 ** (Math.floor(at / 64) - 1)) / 1000; };
  Panels.KINDS.heat = (u, one) => {
    const c = u.ctx, X = Panels.toX(u), Y = Panels.toY(u, "y"), { min, max } = u.scales.x;
    let most = 1;
    one.heat.forEach(([cells] = [], i) => { if (i >= min - 1 && i <= max + 60) for (const [, n] of cells ?? []) most = Math.max(most, n); });
    c.fillStyle = Panels.css("--blue");
    one.heat.forEach(([cells, spans] = [], i) => {
      if (i < min - 1 || i > max + 60) return;
      const x = X(i + 1 - Math.max(1, spans)), width = Math.max(1, X(i + 1) - x + 0.5);
      for (const [row, n] of cells ?? []) {
        const top = Y(lower_us(row + 1)), bottom = Y(Math.max(lower_us(row), 0.001));
        c.globalAlpha = 0.15 + 0.85 * (Math.log1p(n) / Math.log1p(most));
        c.fillRect(x, top, width, Math.max(1, bottom - top));
      }
    });
    c.globalAlpha = 1;
    c.fillStyle = page.colour(one);
    Panels.KINDS.latency(u, one, true);
  };

  // The earlier run of this drive in grey, each step from where it began in this run; then this run's seconds.
  Panels.KINDS.compared = (u, one, top, options) => {
    const c = u.ctx, X = Panels.toX(u), Y = Panels.toY(u, "y");
    c.strokeStyle = Panels.css("--grey");
    c.globalAlpha = 0.8;
    c.lineWidth = 1.2 * Panels.px();
    for (const { begin, rows } of placed(one)) Panels.line(c, rows.length, (i) => X(begin + rows[i][0]), (i) => Y(rows[i][1]), (i) => !(rows[i][1] > 0));
    c.fillStyle = c.strokeStyle = page.colour(one);
    c.globalAlpha = 1;
    Panels.KINDS.iops(u, one, top, options);
  };
  const key = (step) => `${step.label} ${step.round ?? ""}`;
  const placed = (one) => one.earlier.flatMap((step) => { const begin = one.steps.get(key(step))?.begin; return begin == null ? [] : [{ begin, rows: step.rows }]; });

  // ---- panels
  const SPECS = {
    "p-live": { kind: "live", wide: true, y: [0, 1], unit: "W", height: 240, keep: () => range(span) },
    "p-iops": { kind: "compared", y: [100, 1e6], log: true, unit: "IOPS", height: 180, keep: () => range(Math.max(span, 60)) },
    "p-heat": { kind: "heat", y: [10, 1e5], log: true, unit: "µs", height: 190, keep: () => range(Math.max(span, 60)) },
    "p-power": { kind: "power", y: [0, 1], C: [20, 90], unit: "W", height: 200, keep: () => [0, Math.max(60, run.now)] },
    "p-wa": { kind: "wa", y: [0, 5], unit: "NAND / host bytes", height: 150, keep: () => [0, Math.max(60, run.now)] },
  };
  function range(seconds) {
    const to = frozen ?? run.now;
    return [Math.max(0, seconds === Infinity ? 0 : to - seconds), Math.max(to, seconds === Infinity ? 10 : seconds)];
  }
  const finite = (values) => values.filter((v) => Number.isFinite(v));
  const extreme = (values, pick, other) => { const some = finite(values); return some.length ? some.reduce((a, v) => pick(a, v)) : other; };
  function scales() {
    const slice = (values, [a, b]) => values.slice(Math.max(0, Math.floor(a)), Math.ceil(b) + 1);
    const [a, b] = SPECS["p-live"].keep(), fine = [...run.tenths.values(), ...run.preview.values()].filter((row) => row[0] >= a - 1 && row[0] <= b).map((row) => row[3]);
    const live = extreme(span > 600 ? run.power_max : fine, Math.max, 1), whole = extreme(run.power_max, Math.max, 1);
    const late = SPECS["p-iops"].keep(), before = placed(run).flatMap(({ begin, rows }) => rows.filter(([t]) => begin + t >= late[0] && begin + t <= late[1]).map(([, n]) => n)), iops = slice(run.iops, late).concat(before).filter((v) => v > 0), lat = slice(run.lat_mean, late).concat(slice(run.lat_p99, late)).filter((v) => v > 0);
    const decade = (values, low, high) => [10 ** Math.floor(Math.log10(extreme(values, Math.min, low))), 10 ** Math.ceil(Math.log10(1.001 * extreme(values, Math.max, high)))];
    const cells = slice(run.heat, late).flatMap(([group] = []) => (group ?? []).map(([row]) => row));
    const spread = decade(iops, 1000, 9000), us = decade(lat.concat(cells.length ? [Math.max(0.1, lower_us(Math.min(...cells))), lower_us(Math.max(...cells) + 1)] : []), 10, 9000);
    const warm = run.temp.v, wa = run.wa.v.map((v, i) => v + run.wa.e[i]);
    const set = (name, [lo, hi]) => { SPECS[name].y[0] = lo; SPECS[name].y[1] = hi; };
    set("p-live", [0, 1.1 * live]);
    set("p-power", [0, 1.1 * whole]);
    set("p-iops", spread[0] === spread[1] ? [spread[0], 10 * spread[1]] : spread);
    set("p-heat", us[0] === us[1] ? [us[0], 10 * us[1]] : us);
    set("p-wa", [0, 1.1 * extreme(wa, Math.max, 1)]);
    const C = SPECS["p-power"].C;
    C[0] = Math.floor(extreme(warm, Math.min, 25) / 5) * 5 - 5;
    C[1] = Math.ceil(extreme(warm, Math.max, 60) / 5) * 5 + 5;
  }
  function draw() {
    dirty = false;
    if (!run || $("bench").hidden) return;
    tiles();
    if (frozen != null && shown.size) return;
    scales();
    for (const [id, spec] of Object.entries(SPECS)) {
      if (!shown.has(id)) shown.set(id, Panels.panel({ ...spec, moves: true, x: [0, 60], el: $(id), width: $(id).clientWidth, labels: false }, page));
      Panels.show(shown.get(id), spec.keep());
    }
  }
  const later = () => { if (!dirty) { dirty = true; document.hidden ? setTimeout(draw, 500) : requestAnimationFrame(draw); } };
  function again() { // rebuild the panels, such as for another width
    shown.forEach((u) => u.destroy());
    shown = new Map();
    if (run) later();
  }

  // ---- the marks A and B of the power panel
  function mark(range_) {
    marked = range_;
    const half_s = step_s(run) / 2, rows = range_ ? [...run.tenths.values(), ...run.preview.values()].filter(([t]) => t + half_s >= range_[0] && t + half_s < range_[1]) : [];
    if (!rows.length) marked = null;
    const mean = rows.reduce((sum, row) => sum + row[2], 0) / rows.length, length_s = rows.length * step_s(run);
    $("ab").textContent = rows.length ? `A–B: ${num(length_s, 1)} s, mean ${num(mean, 3)} W, about ${num(mean * length_s, 3)} J, highest ${num(Math.max(...rows.map((row) => row[3])), 3)} W.` : "Drag across the panel to mark from A to B.";
    shown.get("p-live")?.redraw(false);
  }

  // ---- words
  const last = (values, from = 0) => { for (let i = values.length - 1; i >= Math.max(0, from); i--) if (Number.isFinite(values[i])) return values[i]; return null; };
  const begun = () => [...run.steps.values()].findLast((step) => step.label === run.running)?.begin ?? -Infinity;
  function tiles() {
    const from = run.now - 5, power = [...run.preview.values()].at(-1) ?? [...run.tenths.values()].at(-1), minute = run.iops.slice(Math.max(0, Math.floor(run.now) - 60, Math.ceil(begun()))).filter(Number.isFinite); // of one step
    const iops = last(run.iops, from), mean = minute.reduce((a, v) => a + v, 0) / minute.length, joule = last(run.energy, from - 5), newest = run.smart.at(-1);
    const sd = Math.sqrt(minute.reduce((a, v) => a + (v - mean) ** 2, 0) / minute.length), peak = extreme([...run.tenths.values()].filter((row) => row[0] >= run.now - 60).map((row) => row[3]), Math.max, null);
    const fresh = power && run.now - power[0] < 5;
    const rows = [
      ["IOPS", num(iops, 0), minute.length > 9 && mean ? `σ ${num((100 * sd) / mean, 1)} % over ${minute.length} s` : "no I/O now"],
      ["Power", fresh ? `${num(power[2], 3)} W` : "–", run.facts.rig ? (peak == null ? "" : `peak of the last minute ${num(peak, 2)} W`) : "no rig"],
      ["P99 latency", last(run.lat_p99, from) == null ? "–" : `${num(last(run.lat_p99, from) / 1000, 2)} ms`, `mean ${last(run.lat_mean, from) == null ? "–" : num(last(run.lat_mean, from) / 1000, 2) + " ms"}`],
      ["Energy per I/O", joule == null ? "–" : `${num(joule, 1)} µJ`, `${num(run.joules / 1000, 2)} kJ so far`],
      ["Drive", newest?.C == null ? "–" : `${num(newest.C, 0)} °C`, newest ? `read at ${clock(newest.t)}` : "not read yet"],
      ["WA", newest?.wa == null ? "–" : withError(newest.wa, newest.wa_error), newest?.wa == null ? (newest?.wa_why ?? "").slice(0, 60) : `since the reading at ${clock(newest.since)}`],
    ];
    const box = $("tiles");
    if (box.children.length !== rows.length) box.replaceChildren(...rows.map(([name]) => el("div", null, {}, el("dt", name), el("dd", ""), el("small", "", { class: "soft" }))));
    rows.forEach(([, value, small], i) => {
      const [, dd, note] = box.children[i].children;
      if (dd.textContent !== value) dd.textContent = value;
      if (note.textContent !== small) note.textContent = small;
    });
    ends();
    const lag = run.behind == null ? "" : `, ${num(Math.max(0, run.behind), 1)} s behind`;
    $("server").textContent = `${Lists.control() ? "with control" : "read only"} · ${location.host} · ${run.ended ? "run has ended" : run.broken ? "connection lost" : `live${lag}`}`;
  }
  const WORDS = { done: "✓ ", now: "▶ ", failed: "✕ ", open: "" };
  function steps() {
    const acts_ = run.facts.acts, begun = [...run.steps.values()], labels = new Set(begun.map((step) => step.label));
    const rest = acts_.filter((act) => !labels.has(act)), all = [...begun, ...rest.map((label) => ({ label }))];
    const at = Math.max(0, all.findIndex((step) => step.label === run.running)), from = Math.max(0, Math.min(at - 5, all.length - 12)), some = all.slice(from, from + 12);
    const item = (step) => {
      const kind = step.end != null ? (step.ok ? "done" : "failed") : step.label === run.running ? "now" : step.begin != null ? "failed" : "open";
      const took = step.end != null ? ` ${clock(step.end - step.begin)}` : kind === "now" ? ` ${clock(run.now - step.begin)}${step.label === "load" && run.facts.duration_s ? ` of ${clock(run.facts.duration_s)}` : ""}` : "";
      return el("li", `${WORDS[kind]}${step.label}${step.round ? `, round ${step.round}` : ""}${took}`, { class: kind, "aria-current": kind === "now" ? "step" : null });
    };
    const note = (n, words) => (n > 0 ? [el("li", `${n} ${words}`, { class: "open" })] : []);
    $("steps").replaceChildren(...note(from, "before"), ...some.map(item), ...note(all.length - from - some.length, "more"));
  }
  // When the run, and with it the review that it is part of, ends: as the run itself forecasts at the begin of each step.
  function ends() {
    $("ends").textContent = "";
    if (!run.ends || run.ended || !run.facts.started_utc_ms) return;
    const now = run.facts.started_utc_ms + 1000 * run.now * run.facts.dilation, [least, most] = run.ends, far = most - now > 86_400_000;
    const at = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(far && { weekday: "short" }) });
    const range = (...ends) => [...new Set(ends)].join("…");
    const whole = run.facts.review ? "Whole review" : "Whole run";
    $("ends").textContent = now > most + 60_000 ? `${whole}: later than its forecast, ${at(most)}` : `${whole} ends ${range(at(least), at(most))}, in ${range(...run.ends.map((ms) => clock((ms - now) / 1000)))}`;
  }
  function events() {
    const list = $("events"), stays = list.scrollTop;
    list.replaceChildren(...run.lines.slice(-300).reverse().map(([t, kind, words]) => el("li", null, { class: /FAIL|lost|died/.test(words) ? "failed" : null }, el("b", `${clock(t)} `), words)));
    list.scrollTop = stays;
  }
  function rig() {
    const of = run.rig, lost = run.clock_us == null ? "No power has settled yet" : `${num(run.lost, 0)} conversions lost`;
    $("power-p").textContent = of?.rails.length > 1 ? "10 rows a second of 100 ms each: mean of all rails together; the band reaches from the sum of their lowest to the sum of their highest samples, between which the power was. Dashed: preview, not settled yet." : "10 rows a second, each least – mean – greatest of 100 ms. Dashed: preview, not settled yet.";
    if (!run.facts.rig) return $("rig").replaceChildren(el("p", "No rig: power is not measured.", { class: "soft" }));
    if (!of) return $("rig").replaceChildren(el("p", "The rig has not answered yet.", { class: "soft" }));
    $("rig").replaceChildren(
      el("p", `${of.simulated && !of.board.includes("SIMULATED") ? "SIMULATED " : ""}${of.board}, firmware ${of.firmware}`),
      ...of.rails.map((rail) => el("p", `${rail.name}: ${rail.chip}${rail.samples_per_s ? `, ${num(rail.samples_per_s, 0)} samples a second` : ""}`, { class: "soft" })),
      el("p", `${lost}; ${run.clock_us == null ? "error of its times not known yet" : run.clock_us >= 10_000 ? `times within ±${num(run.clock_us / 1000, 0)} ms` : `times within ±${num(run.clock_us, 0)} µs`}; ${of.calibrated.length ? `calibrated ${of.calibrated.join(", ")}` : "not calibrated"}`, { class: "soft" }),
    );
  }
  function trust(items) {
    $("trust").replaceChildren(...items.map((of) => el("li", null, { class: of.kind, title: of.tip, "data-trust": of.id },
      el("b", of.sign, { "aria-hidden": "true" }), ` ${of.name}`, el("span", `: ${of.state}`, { class: "sr" }), ...(of.text ? [" ", el("small", of.text)] : []))));
  }
  function cost() {
    const [first, newest] = [run.smart[0], run.smart.at(-1)], rated = run.facts.rated_write_bytes;
    const counted = first && newest && first.host != null && newest.host != null ? newest.host - first.host : null, nand = first?.nand != null && newest?.nand != null && newest !== first ? newest.nand - first.nand : null;
    const host = run.written ?? counted; // fio's count has what was written before the first reading, such as the fill
    $("cost").textContent = host == null ? "Not known yet: nothing is written." : `Host ${size(host)}${nand == null ? "" : `, NAND ${size(nand)} from ${clock(first.t)} to ${clock(newest.t)}`}${rated ? `: ${num((100 * host) / rated, 3)} % of ${size(rated)} rated` : "; what the drive is rated for is not known"}.`;
  }
  function head() {
    const f = run.facts;
    $("bench-h").textContent = f.model ?? "Drive without a name";
    $("simulated").hidden = !f.simulated;
    $("scaled").hidden = !f.scaled;
    Cut.show(f.cut_off_s);
    $("about").textContent = [f.serial, f.plan, f.op_percent == null ? "default OP" : `${f.op_percent} % OP of raw NAND`, f.dilation > 1 ? `time-dilated ${f.dilation} times: all times are drive time` : null, f.run].filter(Boolean).join(" · ");
    document.title = `${f.model ?? "run"} · ssdrig bench`;
  }

  // The latest complete run of this drive, plan and over-provisioning before this one.
  async function earlier() {
    const of = run, reply = await Client.ask(`/api/earlier/${followed}`);
    if (run !== of || !reply?.run) return;
    run.earlier = reply.steps;
    $("earlier-words").textContent = reply.steps.length ? ` Grey: the run of ${Client.utc(reply.run.started_utc_ms)} UTC, each step from its begin.` : "";
    later();
  }

  // ---- the stream
  const TAKE = {
    facts(news) {
      if (!run || run.facts.run !== news.run) { run = empty(news); again(); mark(null); }
      run.broken = false;
      $("live-parts").hidden = $("beside").hidden = false;
      head(); steps(); rig(); cost(); events(); earlier();
    },
    more(news) {
      run.broken = false;
      if (news.trust) trust(news.trust);
      for (const [t, least, mean, most] of news.tenths ?? []) {
        run.tenths.set(t, [t, least, mean, most]); // a step has the same t whenever it is sent
        run.settled = Math.max(run.settled, t);
      }
      for (const [t, least, mean, most] of news.preview ?? []) if (t > run.settled) run.preview.set(t, [t, least, mean, most]);
      for (const [key, row] of run.preview) if (row[0] <= run.settled) run.preview.delete(key);
      for (const key of run.tenths.keys()) { if (run.tenths.size <= 6100) break; run.tenths.delete(key); }
      for (const [t, least, mean, most, joules, lost, clock_us] of news.seconds ?? []) {
        const i = Math.max(0, Math.floor(t));
        fill(i, { power_min: least, power_mean: mean, power_max: most });
        run.joules += joules; run.lost += lost; run.clock_us = Math.max(run.clock_us ?? 0, clock_us);
        energy(i);
      }
      for (const [t, , iops, , lat, p99, heat, heat_s] of news.load ?? []) {
        const i = Math.max(0, Math.floor(t - 0.5));
        fill(i, { iops, lat_mean: lat ?? NaN, lat_p99: p99 ?? NaN, heat: [heat, heat_s] });
        energy(i);
      }
      for (const row of news.smart ?? []) {
        run.smart.push(row);
        if (row.C != null) { run.temp.t.push(row.t); run.temp.v.push(row.C); }
        if (row.wa != null) { run.wa.t.push(row.t); run.wa.v.push(row.wa); run.wa.e.push(row.wa_error ?? 0); }
      }
      for (const line of news.events ?? []) { run.lines.push(line); if (line[3]) run.rig = line[3]; if (line[1] === "note" || line[1] === "cut.fired") run.marks.push([line[0], line[2].slice(0, 40)]); if (line[1] === "cut.fired") cut(line[0]); }
      for (const step of news.steps ?? []) {
        if (step.kind === "run.end") { run.running = null; continue; }
        const id = key(step), known = run.steps.get(id) ?? { label: step.label, round: step.round };
        if (step.left_s) run.ends = step.left_s.map((left) => run.facts.started_utc_ms + 1000 * (step.t * run.facts.dilation + left));
        if (step.kind === "step.start") { if (step.round == null) run.marks.push([step.t, step.label.slice(0, 40)]); run.steps.set(id, { ...known, begin: step.t, end: null }); run.running = step.label; }
        else { run.steps.set(id, { ...known, end: step.t, ok: step.ok }); if (run.running === step.label) run.running = null; }
      }
      run.now = Math.max(run.now, news.now);
      const newest = [...run.preview.values()].at(-1);
      run.behind = newest ? (news.now - newest[0]) * run.facts.dilation - STEP_s : null;
      if (news.events) events();
      if (news.steps || news.seconds) steps();
      if (news.written != null) run.written = news.written;
      if (news.smart || news.written != null) cost();
      if (news.events || news.seconds) rig();
      later();
    },
    ended() { run.ended = true; Cut.show(null); run.preview.clear(); later(); Lists.look(); },
    lost() { if (run) { run.broken = true; later(); } },
  };
  function energy(i) { // by the mean: of the first and the last second there is a part, whose joules are fewer
    const watts = run.power_mean[i], ios = run.iops[i];
    fill(i, { energy: Number.isFinite(watts) && ios > 0 && !run.cut.includes(i) ? (1e6 * watts) / ios : NaN });
  }
  // Seconds of power and rows of I/O begin at different times: if either may contain a cut, there is no energy per I/O.
  function cut(t) {
    run.cut = [Math.floor(t) - 1, Math.floor(t)];
    run.cut.forEach((i) => energy(i));
  }
  function fill(i, values) {
    for (const key of ["iops", "lat_mean", "lat_p99", "power_min", "power_mean", "power_max", "energy"]) while (run[key].length <= i) run[key].push(NaN);
    for (const [key, value] of Object.entries(values)) run[key][i] = value;
    run.n = Math.max(run.n, i + 1);
  }

  let followed = null;
  function follow(id, reading = false) {
    if (followed === id && end) return;
    stop();
    followed = id;
    run = null;
    frozen = null;
    again();
    if (id) open();
    else { $("live-parts").hidden = $("beside").hidden = true; $("bench-h").textContent = reading ? "Reading the runs" : "No run in progress"; $("about").textContent = "A run that is started in this folder appears here."; $("steps").replaceChildren(); $("ends").textContent = $("earlier-words").textContent = ""; $("rig").replaceChildren(); $("trust").replaceChildren(); $("events").replaceChildren(); $("cost").textContent = ""; $("simulated").hidden = $("scaled").hidden = true; Cut.show(null); }
  }
  const open = () => { end = Client.follow(followed, (kind, news) => TAKE[kind]?.(news)); };
  function stop() { end?.(); end = null; }
  // one stream for a page that is seen, none for one that is not
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else if (followed && !end && !run?.ended) { run = null; open(); }
  });

  const spans = $("spans");
  function buttons() {
    spans.replaceChildren(...SPANS.map(([words, seconds]) => {
      const made = el("button", words, { type: "button", "aria-pressed": String(span === seconds) });
      made.addEventListener("click", () => { span = seconds; buttons(); later(); });
      return made;
    }), (() => {
      const made = el("button", frozen == null ? "freeze" : "go on", { type: "button", "aria-pressed": String(frozen != null) });
      made.addEventListener("click", () => { frozen = frozen == null && run ? run.now : null; buttons(); later(); });
      return made;
    })());
  }
  buttons();
  let resizing;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(again, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.forEach((u) => u.redraw(false)));
  return { follow, run: () => run, again, followed: () => followed, shown: () => [...shown.keys()], span: (s) => { span = s; buttons(); later(); }, mark };
})();
