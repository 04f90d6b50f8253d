"use strict";
// The rigs of the archive: their identity, last self-test, and the records in the journals of their runs.
const Rigs = (() => {
  const { $, el, num, utc, ask } = Client;
  const table = (heads, rows, words) => el("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": words }, el("table", null, { class: "rigs-table" },
    el("thead", null, {}, el("tr", null, {}, ...heads.map((head) => el("th", head, { scope: "col" })))), el("tbody", null, {}, ...rows)));
  const row = (...cells) => el("tr", null, {}, ...cells.map((cell) => (cell instanceof Node ? cell : el("td", cell ?? "–", { class: "text" }))));
  const soft = (words) => el("p", words, { class: "soft" });
  const age = (s) => (s < 0 ? "made in the future: a clock was wrong" : s < 86400 ? "less than a day old" : `${num(Math.floor(s / 86400), 0)} days old`);

  function rail(of) {
    const dates = Object.entries(of.calibrated).map(([quantity, date]) => `${quantity} ${date}`).join(", ");
    return row(of.name, of.chip, of.samples_per_s == null ? "–" : `${num(of.samples_per_s, 0)} /s`, of.shunt_mOhm == null ? "–" : `${num(of.shunt_mOhm, 1)} mΩ`, of.protect, dates || "not calibrated");
  }
  const MARKS = { true: "✓ passed", false: "✕ FAILED", null: "– not looked at" };
  function check(of) {
    const value = of.value == null ? "–" : `${+of.value.toPrecision(5)} ${of.unit}`, ends = [of.low, of.high].map((end) => (end == null ? "…" : +end.toPrecision(4)));
    return row(of.name, of.rail == null ? "–" : num(of.rail, 0), value, of.low == null && of.high == null ? "–" : `${ends[0]} to ${ends[1]}`, el("td", MARKS[of.ok], { class: of.ok === false ? "text state-failed" : "text" }), of.why);
  }
  function certificate(rig) {
    const of = rig.certificate;
    if (!of) return [el("h3", "Self-test"), soft(`No certificate: ${rig.why}.`)];
    const words = `${of.passed ? "Passed" : "NOT PASSED"} ${utc(of.utc_ms)} UTC, ${age(of.age_s)}, ${of.resistor ? `with a resistor of ${num(of.resistor.ohm, 1)} Ω at rail ${of.resistor.rail}` : "without a resistor"}; certificate ${of.id}`;
    const more = [of.failed.length ? el("p", `Failed: ${of.failed.join(", ")}.`, { class: "warn" }) : null, of.not_looked_at.length ? soft(`Not looked at: ${of.not_looked_at.join(", ")}.`) : null, of.differs.length ? el("p", `The rig is not as it was then, by its ${of.differs.join(", ")}.`, { class: "warn" }) : null];
    return [el("h3", "Self-test"), el("p", words), ...more.filter(Boolean), el("details", null, {}, el("summary", `All ${of.checks.length} checks`), table(["Check", "Rail", "Seen", "Expected", "", "Why"], of.checks.map(check), "Checks of the self-test"))];
  }
  function runs(rig) {
    const rows = rig.runs.map((run) => row(run.run ?? run.id, utc(run.utc_ms), el("td", run.state, { class: `text state-${run.state}` }), run.samples_lost == null ? "–" : `${num(run.samples_lost, 0)} of ${num(run.samples, 0)}`, run.closure_percent == null ? "–" : `${num(run.closure_percent, 3)} %`, run.says.join("; ")));
    return [el("h3", "Its latest runs"), soft("Samples lost and closure, the rig's own sum of energy against that of its samples, are those of the report where one was made."), table(["Run", "Begun, UTC", "State", "Samples lost", "Closure", "What the journal says of the rig"], rows, "Runs with this rig")];
  }
  function box(rig) {
    const simulated = rig.simulated && !rig.board?.includes("SIMULATED");
    return el("article", null, { class: "box rig" },
      el("div", null, { class: "title" }, el("h2", rig.serial ? `${rig.board ?? "Rig"}, ${rig.serial}` : rig.board ?? "Rig without a name"), ...(simulated ? [el("strong", "SIMULATED", { class: "badge" })] : [])),
      ...(rig.unknown ? [el("p", `This bench is UNKNOWN: ${rig.unknown}. Look at the drive's supply, then run: ssdrig rig clear`, { class: "warn" })] : []),
      soft([rig.build ? `build ${rig.build}` : null, rig.revision ? `revision ${rig.revision}` : null, rig.firmware ? `firmware ${rig.firmware}` : null, rig.protocol ? `protocol ${rig.protocol}` : null].filter(Boolean).join(" · ") + ", as of its latest run"),
      el("h3", "Rails"), table(["Rail", "Sensor", "Samples", "Shunt", "Opened beyond", "Calibrated"], rig.rails.map(rail), "Rails of this rig"),
      ...certificate(rig), ...runs(rig));
  }
  async function show() {
    const reply = await ask("/api/rigs");
    if (!reply) return;
    $("rigs-none").hidden = reply.length > 0;
    $("rig-list").replaceChildren(...reply.map(box));
  }
  return { show };
})();
