"use strict";
// Power below the second: cells (lowest, mean, highest) and samples of the runs, decoded when they are first asked for,
// their panel, and the figures between two marks.
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
  function draw(u, run, top) {
    if (!run.cells) return;
    const c = u.ctx, X = Panels.toX(u), Y = Panels.toY(u, "y"), { min: a, max: b } = u.scales.x, { every, mean, min, max } = run.cells;
    const from = Math.max(0, Math.floor(a / every) - 1), to = Math.min(mean.length, Math.ceil(b / every) + 1), per = Math.max(1, Math.floor((to - from) / u.bbox.width));
    const n = Math.max(0, Math.ceil((to - from) / per)), lows = new Float64Array(n), means = new Float64Array(n), highs = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let sum = 0, count = 0, lo = Infinity, hi = -Infinity;
      for (let k = from + i * per; k < Math.min(to, from + (i + 1) * per); k++) if (!Number.isNaN(mean[k])) { sum += mean[k]; count++; lo = Math.min(lo, min[k]); hi = Math.max(hi, max[k]); }
      means[i] = count ? sum / count : NaN; lows[i] = lo; highs[i] = hi;
    }
    const x = (i) => X((from + (i + 0.5) * per) * every), none = (i) => Number.isNaN(means[i]);
    c.globalAlpha = top ? 0.25 : 0.1;
    Panels.band(c, n, x, (i) => Y(lows[i]), (i) => Y(highs[i]), none);
    c.globalAlpha = 1;
    c.lineWidth = (top ? 1.6 : 1) * Panels.px();
    const traces = run.traces.filter(({ t }) => t.at(-1) > a && t[0] < b && ((Math.min(b, t.at(-1)) - Math.max(a, t[0])) / (t.at(-1) - t[0])) * t.length < 3 * u.bbox.width && (b - a) * (t.length / (t.at(-1) - t[0])) < 6 * u.bbox.width);
    const covered = (time) => traces.some(({ t }) => t[0] <= time && time <= t.at(-1));
    Panels.line(c, n, x, (i) => Y(means[i]), (i) => none(i) || covered((from + (i + 0.5) * per) * every));
    c.lineWidth = (top ? 1.4 : 0.9) * Panels.px();
    for (const { t, P } of traces) {
      const first = Math.max(0, lower(t, a) - 1), last = Math.min(t.length, lower(t, b) + 1);
      Panels.line(c, last - first, (i) => X(t[first + i]), (i) => Y(P[first + i]), (i) => Number.isNaN(P[first + i]));
    }
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

  return { inflate, decode, draw, between };
})();
