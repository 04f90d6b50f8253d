"use strict";
// Power below the second: cells (lowest, mean, highest) and samples of the runs, decoded when they are first asked for,
// their panel with a strip for each run and rail and the events in lanes below, and the figures between two marks.
const Samples = (() => {
  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  }
  // Array number `which` of n codes: low bytes, then high bytes.
  const codes = (bytes, n, which) => Uint16Array.from({ length: n }, (_, i) => bytes[2 * n * which + i] | (bytes[2 * n * which + n + i] << 8));
  const watts = (codes, { lo, step }) => Float64Array.from(codes, (c) => (c === 65535 ? NaN : lo + c * step));

  // run.cells: {every, mean, min, max}, run.traces: [{words, t, P}].
  async function decode(run) {
    run.traces = [];
    run.cells = { every: 1, mean: run.power_mean, min: run.power_min, max: run.power_max };
    if (run.fine) {
      const bytes = await inflate(run.fine.z);
      const [mean, min, max] = [0, 1, 2].map((k) => watts(codes(bytes, run.fine.n, k), run.fine));
      run.cells = { every: run.fine.every, mean, min, max };
    }
    for (const one of run.moments) {
      const bytes = await inflate(one.z), t = new Float64Array(one.n), steps = codes(bytes, one.n, 0);
      for (let i = 0, ticks = 0; i < one.n; i++) t[i] = one.t0 + (ticks += steps[i]) * one.tick;
      run.traces.push({ words: one.words, t, P: watts(codes(bytes, one.n, 1), one) });
    }
  }

  // First index of a sorted array whose value is not below v.
  function lower(values, v) {
    let lo = 0, hi = values.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; values[mid] < v ? (lo = mid + 1) : (hi = mid); }
    return lo;
  }

  // Cells are put together until two of them share a pixel; samples are drawn where there is room for each.
  function draw(u, run, Y) {
    if (!run.cells) return;
    const c = u.ctx, X = Panels.toX(u), { min: a, max: b } = u.scales.x, { every, mean, min, max } = run.cells;
    const from = Math.max(0, Math.floor(a / every) - 1), to = Math.min(mean.length, Math.ceil(b / every) + 1), per = Math.max(1, Math.floor((to - from) / u.bbox.width));
    const n = Math.max(0, Math.ceil((to - from) / per)), lows = new Float64Array(n), means = new Float64Array(n), highs = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let sum = 0, count = 0, lo = Infinity, hi = -Infinity;
      for (let k = from + i * per; k < Math.min(to, from + (i + 1) * per); k++) if (!Number.isNaN(mean[k])) { sum += mean[k]; count++; lo = Math.min(lo, min[k]); hi = Math.max(hi, max[k]); }
      means[i] = count ? sum / count : NaN; lows[i] = lo; highs[i] = hi;
    }
    const x = (i) => X((from + (i + 0.5) * per) * every), none = (i) => Number.isNaN(means[i]);
    c.globalAlpha = 0.25;
    Panels.band(c, n, x, (i) => Y(lows[i]), (i) => Y(highs[i]), none);
    c.globalAlpha = 1;
    c.lineWidth = 1.4 * Panels.px();
    const traces = run.traces.filter(({ t }) => t.at(-1) > a && t[0] < b && ((Math.min(b, t.at(-1)) - Math.max(a, t[0])) / (t.at(-1) - t[0])) * t.length < 3 * u.bbox.width && (b - a) * (t.length / (t.at(-1) - t[0])) < 6 * u.bbox.width);
    const covered = (time) => traces.some(({ t }) => t[0] <= time && time <= t.at(-1));
    Panels.line(c, n, x, (i) => Y(means[i]), (i) => none(i) || covered((from + (i + 0.5) * per) * every));
    c.lineWidth = 1.2 * Panels.px();
    for (const { t, P } of traces) {
      const first = Math.max(0, lower(t, a) - 1), last = Math.min(t.length, lower(t, b) + 1);
      Panels.line(c, last - first, (i) => X(t[first + i]), (i) => Y(P[first + i]), (i) => Number.isNaN(P[first + i]));
    }
  }

  // A strip for each run, the reviewed one first, and after it one for each of its rails.
  function rows(page) {
    const runs = page.order().reverse(), top = page.reviewed();
    return runs.flatMap((run) => [{ run, name: runs.length > 1 ? run.short : "" }, ...(run === top && run.rails.length > 1 ? run.rails.map((rail) => ({ run, rail, name: rail.name })) : [])]);
  }
  // Events of a run: [name, [[from, to, words]]] of each lane that has some.
  function lanes(run) {
    const stalls = [];
    for (let i = 0; i < run.n; i++) if (run.iops[i] === 0) { let to = i; while (run.iops[to + 1] === 0) to++; stalls.push([i, to + 1, ""]); i = to; }
    return [["SMART", run.polls.map(([a, b]) => [a, b, ""])], ["Stalls", stalls], ...run.lanes].filter(([, events]) => events.length);
  }
  const STRIP = 74, LANE = 15, AROUND = 62; // px: a strip, a lane, axis and padding of a panel
  const height = (page) => Math.max(200, rows(page).length * STRIP) + lanes(page.reviewed()).length * LANE + AROUND;

  // The panel: strips of one scale of power, 0 to `most` W, with their lines, and the lanes.
  function strips(u, page, most) {
    const c = u.ctx, p = Panels.px(), X = Panels.toX(u), { left, top, width, height: tall } = u.bbox, shown = rows(page), soft = Panels.css("--ink-soft");
    const below = page.visible(page.reviewed()) ? lanes(page.reviewed()) : [], high = (tall - below.length * LANE * p) / Math.max(1, shown.length);
    const step = [1, 2, 5, 10].map((k) => k * 10 ** Math.floor(Math.log10(most / 2))).find((of) => most / of <= Math.max(1, high / (26 * p))) ?? most;
    const inside = (draw) => { c.save(); c.beginPath(); c.rect(left, top, width, tall); c.clip(); draw(); c.restore(); };
    c.setLineDash([]);
    shown.forEach(({ run, rail, name }, k) => {
      const floor = top + (k + 1) * high, Y = (v) => floor - (v / most) * (high - 8 * p);
      c.font = `${12 * p}px system-ui, sans-serif`;
      c.lineWidth = p;
      for (let v = 0; v <= most; v += step) {
        c.strokeStyle = Panels.css(v ? "--grid" : "--ink-soft");
        c.beginPath(); c.moveTo(left, Y(v)); c.lineTo(left + width, Y(v)); c.stroke();
        c.fillStyle = soft; c.textAlign = "right";
        c.fillText(String(+v.toPrecision(3)), left - 6 * p, Y(v) + (v ? 4 : -1) * p);
      }
      c.fillStyle = c.strokeStyle = page.colour(run);
      inside(() => {
        if (rail) { c.lineWidth = 1.2 * p; Panels.line(c, run.n, (i) => X(i), (i) => Y(rail.mean[i]), (i) => Number.isNaN(rail.mean[i])); } else draw(u, run, Y);
        c.globalAlpha = 1; c.textAlign = "left"; c.fillText(name, left + 6 * p, floor - high + 18 * p);
      });
    });
    c.font = `${11 * p}px system-ui, sans-serif`;
    c.globalAlpha = 1;
    below.forEach(([name, events], k) => {
      const y = top + tall - (below.length - k) * LANE * p, on = (t) => Math.min(left + width, Math.max(left, X(t)));
      c.fillStyle = soft; c.textAlign = "right"; c.fillText(name, left - 6 * p, y + 12 * p);
      c.fillStyle = Panels.css("--mark"); c.textAlign = "left";
      const seen = events.filter(([a, b]) => X(b) >= left && X(a) <= left + width).sort(([a], [b]) => a - b);
      let free = left;
      seen.forEach(([a, b, words], i) => {
        const from = on(a), to = Math.max(from + 2 * p, on(b)), next = i + 1 < seen.length ? on(seen[i + 1][0]) : left + width;
        c.globalAlpha = 0.75; c.fillRect(from, y + 4 * p, to - from, 8 * p);
        c.globalAlpha = 1;
        if (words && to >= free && to + 4 * p + c.measureText(words).width < next) { c.fillText(words, to + 4 * p, y + 12 * p); free = to + 4 * p + c.measureText(words).width; }
      });
    });
  }

  // Energy, mean, standard deviation and extremes of a run between two times (s): of samples where all are there, otherwise
  // of cells; the last ones count with their share.
  function between(run, a, b) {
    const whole = run.traces.find(({ t }) => t[0] <= a && b <= t.at(-1)), { every, mean, min, max } = run.cells;
    let J = 0, known = 0, n = 0, sum = 0, squares = 0, lo = Infinity, hi = -Infinity;
    const take = (value, seconds, least, most) => {
      if (Number.isNaN(value) || seconds <= 0) return;
      J += value * seconds; known += seconds; n++; sum += value; squares += value * value; lo = Math.min(lo, least); hi = Math.max(hi, most);
    };
    if (whole) {
      const { t, P } = whole;
      for (let i = Math.max(1, lower(t, a)); i < t.length && t[i - 1] < b; i++) take(P[i], Math.min(b, t[i]) - Math.max(a, t[i - 1]), P[i], P[i]);
    } else {
      for (let i = Math.max(0, Math.floor(a / every)); i < mean.length && i * every < b; i++) take(mean[i], Math.min(b, (i + 1) * every) - Math.max(a, i * every), min[i], max[i]);
    }
    let ios = 0;
    for (let i = Math.max(0, Math.floor(a)); i < run.n && i < b; i++) ios += run.iops[i] * (Math.min(b, i + 1) - Math.max(a, i));
    const full = known > 0.999 * (b - a);
    return {
      of: whole ? "samples" : every < 1 ? `means of ${Math.round(every * 1000)} ms` : "seconds", n, J: full ? J : NaN, mean: known ? J / known : NaN,
      sd: n > 1 ? Math.sqrt(Math.max(0, (squares - (sum * sum) / n) / (n - 1))) : NaN, lo: n ? lo : NaN, hi: n ? hi : NaN,
      ios: b <= run.n && b - a >= 2 ? ios : NaN,
    };
  }

  return { inflate, decode, rows, lanes, strips, height, between };
})();
