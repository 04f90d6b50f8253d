"use strict";
// Which page is shown; the lists of runs and drives; what can be asked of a run.
const Lists = (() => {
  const { $, el, num, withError, size, utc, ask, meter } = Client, PAGES = ["bench", "runs", "reviews", "drives", "rigs"], PER_PAGE = 100, LATEST = 5;
  const chosen = new Map(); // id -> words
  let hello = null, offset = 0, count = 0;

  function show() {
    const page = PAGES.find((name) => location.hash === `#${name}`) ?? "bench";
    for (const name of PAGES) {
      $(name).hidden = name !== page;
      const link = document.querySelector(`nav a[href="#${name}"]`);
      name === page ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    }
    if (page === "runs") runs();
    if (page === "drives") drives();
    if (page === "rigs") Rigs.show();
    if (page === "reviews") Reviews.show();
    if (page === "bench") { Live.again(); latest(); }
  }

  // Which runs go on, now and every few seconds.
  async function look() {
    const reply = await ask("/api/hello");
    if (!reply) return;
    const was = hello?.reading;
    hello = reply;
    $("reading").textContent = progress(reply.reading);
    $("n-runs").textContent = reply.runs;
    const select = $("live-runs"), ids = reply.live.map((run) => run.id), now = Live.followed();
    select.replaceChildren(...reply.live.map((run) => el("option", `${run.model ?? "?"} ${run.serial ?? ""}, ${run.plan ?? ""}`, { value: run.id })));
    $("which").hidden = reply.live.length < 2;
    if (ids.length && !ids.includes(now)) Live.follow(ids[0]);
    if (!ids.length && !now) Live.follow(null, Boolean(reply.reading));
    if (was && !reply.reading) show();
    else if (reply.reading && !$("runs").hidden) runs();
    else if (!$("reviews").hidden) Reviews.show();
    else if ((reply.reading && !$("bench").hidden) || $("latest").hidden !== Boolean(ids.length || now)) latest();
    select.value = Live.followed() ?? "";
    $("acts").hidden = !reply.control || !ids.includes(Live.followed());
    if (!Live.run()) $("server").textContent = `${reply.control ? "with control" : "read only"} · ${location.host} ${reply.reading ? "" : " · nothing runs"}`;
  }
  // Between two questions: short while runs are being read, because each answer has more.
  async function watch() {
    if (!document.hidden) await look();
    setTimeout(watch, hello?.reading ? 1000 : 5000);
  }
  const progress = (of) => !of ? "" : of.of == null ? "looking for runs" : `reading runs: ${num(of.done, 0)} of ${num(of.of, 0)}`;

  const named = (of) => `${of.model ?? "without a name"}${of.simulated && !of.model?.includes("SIMULATED") ? " SIMULATED" : ""}`;

  // ---- the latest runs, on the first page while none goes on
  async function latest() {
    if (Live.followed()) { $("latest").hidden = $("lives").hidden = true; return; }
    const reply = await ask(`/api/runs?q=&limit=${LATEST}&offset=0`);
    if (!reply) return;
    $("latest").hidden = Boolean(Live.followed());
    $("latest-reading").textContent = reply.reading ? `Of the runs that have been read so far; ${progress(reply.reading)}.` : "";
    const courses = [];
    $("latest-rows").replaceChildren(...reply.runs.map((run) => {
      const f = run.figures, cell = (text, kind) => el("td", text, { class: kind }), course = el("td", null, { class: "spark" });
      courses.push([run.id, course]);
      return opens(el("tr", null, { title: run.path }, el("td", null, { class: "text" }, link(run)), cell(named(run), "text"), course, cell(`${run.plan ?? "–"}${run.scaled ? " SCALED" : ""}`, "text"), cell(run.state, `text state-${run.state}`), cell(trust(f.trust), /BAD/.test(trust(f.trust)) ? "text state-failed" : "text"), cell(f.iops_mean == null ? "–" : marked(num(f.iops_mean, 0), f.window_trust, OF_LOAD)), cell(f.power_mean_W == null ? "–" : marked(num(f.power_mean_W, 3), f.window_trust))));
    }));
    if (!reply.runs.length && !reply.reading) $("latest-rows").append(el("tr", null, {}, el("td", "No run yet.", { colspan: "8" })));
    if (reply.reading) return; // sparklines and wear wait until all are read
    for (const [id, course] of courses) {
      if (!course.isConnected || Live.followed()) return; // a run that goes on has the host for itself
      const points = (await ask(`/api/course/${id}`))?.flatMap((step) => step.rows.map(([, iops]) => iops)) ?? [];
      if (points.length > 1) course.replaceChildren(sparkline(points));
    }
    lives();
  }
  // Life used of the drives of the latest runs, next to them.
  async function lives() {
    const reply = (await ask("/api/drives"))?.slice(0, LATEST) ?? [], rows = [];
    for (const drive of reply) {
      if (Live.followed()) return;
      const w = (await ask(`/api/drives/${drive.id}`))?.wear, share = w && used(w);
      const words = named(drive);
      rows.push(share == null ? el("p", `${words}: ${w ? "life used is not known" : "no SMART reading"}`, { class: "soft" }) : meter(words, share, share >= 100));
    }
    $("lives").hidden = !rows.length || Boolean(Live.followed());
    $("lives-rows").replaceChildren(...rows);
  }
  // The larger of TBW used and the drive's own percentage; null if neither is known.
  function used(w) {
    const shares = [w.tbw_used_percent, w.percentage_used].filter((share) => share != null);
    return shares.length ? Math.max(...shares) : null;
  }
  const SPARK = { width: 160, height: 28, rows: 80 };
  function sparkline(values) {
    const { width, height, rows } = SPARK, per = Math.max(1, Math.ceil(values.length / rows)), some = [];
    for (let i = 0; i < values.length; i += per) some.push(Math.max(...values.slice(i, i + per)));
    const most = Math.max(...some, 1), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    for (const [key, value] of [["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`], ["role", "img"], ["aria-label", `IOPS over the run, at most ${num(most, 0)}`]]) svg.setAttribute(key, value);
    line.setAttribute("points", some.map((v, i) => `${((i * width) / Math.max(1, some.length - 1)).toFixed(1)},${(height - 2 - (v / most) * (height - 4)).toFixed(1)}`).join(" "));
    svg.append(line);
    return svg;
  }
  // A row that opens what its link opens.
  function opens(row) {
    row.classList.add("opens");
    row.addEventListener("click", (event) => { if (!event.target.closest("button, input, a")) row.querySelector("button.link").click(); });
    return row;
  }
  $("copy").addEventListener("click", async () => {
    try { await navigator.clipboard.writeText($("command").textContent); $("copy").textContent = "Copied"; } catch { $("copy").textContent = "Not allowed here"; }
    setTimeout(() => { $("copy").textContent = "Copy"; }, 2000);
  });
  // the time of a run, which opens its page
  function link(run) {
    const button = el("button", run.started_utc_ms == null ? run.id : utc(run.started_utc_ms), { type: "button", class: "link", title: "open its page" });
    button.addEventListener("click", () => Client.open("/api/compare", { runs: [run.id] }));
    return button;
  }

  // ---- runs
  async function runs() {
    const reply = await ask(`/api/runs?q=${encodeURIComponent($("q").value)}&limit=${PER_PAGE}&offset=${offset}`);
    if (!reply) return;
    count = reply.count;
    $("found").textContent = `${num(count, 0)} ${count === 1 ? "run" : "runs"}${count > PER_PAGE ? `, ${num(offset + 1, 0)} to ${num(Math.min(count, offset + PER_PAGE), 0)} shown, the latest first` : ", the latest first"}${reply.reading ? `; ${progress(reply.reading)}` : ""}`;
    $("rows").replaceChildren(...reply.runs.map(row));
    $("earlier").disabled = offset + PER_PAGE >= count;
    $("later").disabled = !offset;
    choice();
  }
  const trust = (of) => {
    const named = (state) => Object.keys(of ?? {}).filter((id) => of[id] === state).map((id) => id.replace("_", " ")).join(", ");
    return !of ? "–" : named("bad") ? `BAD: ${named("bad")}` : "ok";
  };
  const steady = (of) => of == null ? "–" : `${of.passed ? "yes" : of.passed === false ? "NO" : "not known"}${of.drive_writes == null ? "" : ` at ${num(of.drive_writes, 2)}`}${of.past_spare === false ? ", not past the cliff for sure" : ""}`;
  // a figure with a mark if its basis is bad (reading/trust.py: of I/O and wear two items, of power all)
  const marked = (text, of, items) => of && Object.keys(of).some((id) => of[id] === "bad" && (!items || items.includes(id))) ? `${text} ✕` : text;
  const OF_LOAD = ["steady", "host"];
  function row(run) {
    const f = run.figures, words = `${run.model ?? "?"} ${utc(run.started_utc_ms)}`, box = el("input", null, { type: "checkbox", "aria-label": `choose ${words}` });
    box.checked = chosen.has(run.id);
    const cell = (text, kind, title) => el("td", text, { class: kind, title });
    const wa = f.wa == null ? "–" : withError(f.wa, f.wa_error);
    const label = el("td", null, { class: "text" }, ...(run.title ? [el("span", `${run.title} `)] : []), ...run.tags.map((tag) => el("span", tag, { class: "tag" })));
    const made = el("tr", null, { title: run.path }, el("td", null, {}, box), el("td", null, { class: "text" }, link(run)), cell(named(run), "text"), cell(`${run.plan ?? "–"}${run.scaled ? " SCALED" : ""}`, "text"), cell(run.op_percent == null ? "default" : `${num(run.op_percent, 1)} %`), cell(run.state, `state-${run.state}`, run.why), cell(trust(f.trust), /BAD/.test(trust(f.trust)) ? "text state-failed" : "text"), cell(steady(f.steady), f.steady?.passed === false ? "text state-failed" : "text"), cell(f.iops_mean == null ? "–" : marked(num(f.iops_mean, 0), f.window_trust, OF_LOAD), null, f.why), cell(f.power_mean_W == null ? "–" : marked(num(f.power_mean_W, 3), f.window_trust)), cell(f.energy_uJ_per_io == null ? "–" : marked(num(f.energy_uJ_per_io, 1), f.window_trust)), cell(f.clat_p99_us == null ? "–" : marked(num(f.clat_p99_us, 0), f.window_trust, OF_LOAD)), cell(f.wa == null ? "–" : marked(wa, f.window_trust, OF_LOAD)), cell(f.window ?? "–", "text", f.why), label);
    made.classList.toggle("chosen", box.checked);
    box.addEventListener("change", () => {
      box.checked ? chosen.set(run.id, words) : chosen.delete(run.id);
      made.classList.toggle("chosen", box.checked);
      choice();
    });
    return opens(made);
  }
  function choice() {
    $("compare").textContent = chosen.size > 1 ? `Compare ${chosen.size}` : "Show the page";
    $("compare").disabled = $("export").disabled = !chosen.size || chosen.size > 24;
    $("none").disabled = !chosen.size;
  }
  async function made() {
    $("found").textContent = `A page of ${chosen.size} runs is being made…`;
    $("compare").disabled = $("export").disabled = true;
    const reply = await ask("/api/compare", { runs: [...chosen.keys()] });
    choice();
    $("found").textContent = reply ? "" : "No page could be made.";
    return reply?.page;
  }
  $("compare").addEventListener("click", async () => {
    const opened = window.open("", "_blank"); // at the click itself, or it is taken for a pop-up
    const page = await made();
    if (page && opened) { opened.opener = null; opened.location.replace(page); }
    else opened?.close();
    if (page) $("found").replaceChildren("The page is open in another tab: ", el("a", "open it here", { href: page }));
  });
  $("export").addEventListener("click", async () => {
    const page = await made();
    if (!page) return;
    const link = el("a", null, { href: URL.createObjectURL(await (await fetch(page)).blob()), download: chosen.size > 1 ? "compare.html" : "report.html" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    $("found").textContent = "The page was saved as one file that needs no network.";
  });
  $("none").addEventListener("click", () => { chosen.clear(); runs(); });
  $("search").addEventListener("submit", (event) => { event.preventDefault(); offset = 0; runs(); });
  $("earlier").addEventListener("click", () => { offset += PER_PAGE; runs(); });
  $("later").addEventListener("click", () => { offset = Math.max(0, offset - PER_PAGE); runs(); });

  // ---- drives
  async function drives() {
    const reply = await ask("/api/drives");
    if (!reply) return;
    const waiting = []; // whose wear is asked for one after the other
    $("drive-rows").replaceChildren(...reply.map((drive) => {
      const button = el("button", named(drive), { type: "button", class: "link" });
      button.addEventListener("click", () => one(drive.id));
      const cell = (words) => el("td", words, { class: "text" }), health = cell("…"), life = cell("…");
      waiting.push([drive.id, health, life]);
      return opens(el("tr", null, {}, el("td", null, { class: "text" }, button), cell(drive.serial ?? "–"), health, life, cell(num(drive.runs, 0)), cell(utc(drive.last_utc_ns / 1e6))));
    }));
    for (const [id, health, life] of waiting) {
      if (!health.isConnected) return; // another list stands there by now
      const w = (await ask(`/api/drives/${id}`))?.wear, share = w && used(w);
      health.textContent = w ? HEALTH[w.health] ?? "not known" : "–";
      health.classList.toggle("state-failed", /[A-Z]{3}/.test(health.textContent));
      share != null ? life.replaceChildren(meter("", share, share >= 100)) : (life.textContent = w ? "not known" : "–");
    }
  }
  const HEALTH = { ok: "ok", warning: "WARNING", failing: "FAILING" };
  let wanted = null; // the drive that was clicked last: another one's answer may come later
  async function one(id) {
    wanted = id;
    const reply = await ask(`/api/drives/${id}`);
    if (!reply || wanted !== id) return;
    const box = $("drive"), w = reply.wear;
    box.hidden = false;
    const find = el("button", `Its ${reply.runs.length} run${reply.runs.length === 1 ? "" : "s"}`, { type: "button" });
    find.addEventListener("click", () => { $("q").value = `drive:"${reply.serial ?? reply.model}"`; offset = 0; location.hash = "#runs"; });
    box.replaceChildren(el("h2", named(reply)), el("p", `Serial ${reply.serial ?? "not known"}`, { class: "soft" }), find);
    if (!w) { box.append(el("p", `Wear is not known: ${reply.why}.`)); return; }
    const health = { ok: "Health ok", warning: "HEALTH WARNING", failing: "HEALTH FAILING" }[w.health] ?? "Health not known";
    box.append(el("p", [health, w.temperature_C == null ? null : `${w.temperature_C} °C`, w.power_on_hours == null ? null : `${num(w.power_on_hours, 0)} h on`, `host written ${size(w.host_written_bytes)}`, `WA: ${w.wa}`, `read ${utc(w.read_utc_ms)} UTC`].filter(Boolean).join(" · ")));
    for (const [words, percent, more] of [["TBW", w.tbw_used_percent, w.rated_tbw_bytes ? `of ${size(w.rated_tbw_bytes)}` : ""], ["Warranty time", w.warranty_used_percent, w.warranty_end ? `to ${w.warranty_end}` : ""], ["Percentage used", w.percentage_used, ""], ["Spare left", w.available_spare_percent, ""]]) if (percent != null) box.append(meter(`${words} ${more}`, percent, words === "Spare left" ? percent <= 10 : percent >= 100));
    for (const text of w.health_reasons) box.append(el("p", text, { class: "warning" }));
    for (const text of w.sentences) box.append(el("p", text));
    if (w.unknown.length) box.append(el("details", null, {}, el("summary", `Not known: ${w.unknown.length}`), el("ul", null, {}, ...w.unknown.map((text) => el("li", text)))));
    if (reply.trend.length > 1) trend(box, reply.trend);
    else box.append(el("p", "A trend needs two readings: ssdrig watch records them.", { class: "soft" }));
  }
  function trend(box, rows) {
    const place = el("div", null, { class: "panel", role: "img", "aria-label": `Host bytes written at ${rows.length} readings, from ${size(rows[0][1])} to ${size(rows.at(-1)[1])}` });
    box.append(el("h2", "Trend"), el("p", `Host bytes written, at ${rows.length} readings of SMART by runs and by ssdrig watch.`, { class: "soft" }), place);
    const axis = { stroke: () => Panels.css("--ink-soft"), grid: { stroke: () => Panels.css("--grid") } };
    new uPlot({ width: place.clientWidth, height: 200, legend: { show: false }, cursor: { show: false }, axes: [axis, { ...axis, size: 80, values: (u, v) => v.map(size) }], series: [{}, { stroke: () => Panels.css("--review"), width: 2, points: { show: true } }] }, [rows.map((r) => r[0] / 1000), rows.map((r) => r[1])], place);
  }

  // ---- asking a run
  function question(words, text) {
    $("ask-words").textContent = words;
    $("ask-text").hidden = !text;
    $("ask-text").value = "";
    $("ask-yes").textContent = text ? "Send" : "Stop the run";
    $("ask").showModal();
    return new Promise((answer) => $("ask").addEventListener("close", () => answer($("ask").returnValue === "yes" ? (text ? $("ask-text").value.trim() : true) : null), { once: true }));
  }
  async function act(request) {
    const path = `/api/live/${Live.followed()}/act`, answer = await ask(path, request);
    if (answer && !answer.ok) Client.trouble(path, `The run refuses: ${answer.why}`);
  }
  $("note").addEventListener("click", async () => { const text = await question("A note in the run's journal, now:", true); if (text) act({ do: "note", text }); });
  $("stop").addEventListener("click", async () => { if (await question("Stop the run? It ends its load, restores the rail, reads SMART and closes its journal; its state is then interrupted, and ssdrig resume goes on with it.", false)) act({ do: "stop" }); });
  $("live-runs").addEventListener("change", (event) => Live.follow(event.target.value));

  window.addEventListener("hashchange", show);
  show();
  if (Client.token()) watch();
  else Client.trouble(Client.SERVER, Client.LOST);
  return { look, control: () => Boolean(hello?.control), runs };
})();
window.ssdrig = { Live, Lists, Client };
