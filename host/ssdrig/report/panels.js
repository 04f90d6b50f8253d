"use strict";
// Draws the panels: uPlot gives axes, cursor, zoom and their synchronisation; the curves of a panel are drawn here, so that
// order, opacity and marker are ours. A panel is {el, kind, from, to, u}; runs are the page's, with typed arrays.
const Panels = (() => {
  let enlarged = 1; // on paper everything is drawn larger and scaled down, so that it is sharp
  const px = () => devicePixelRatio * enlarged;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const SHAPES = {
    circle: (c, x, y, r) => { c.moveTo(x + r, y); c.arc(x, y, r, 0, 7); },
    square: (c, x, y, r) => c.rect(x - r, y - r, 2 * r, 2 * r),
    up: (c, x, y, r) => poly(c, [[x, y - 1.2 * r], [x + 1.2 * r, y + r], [x - 1.2 * r, y + r]]),
    diamond: (c, x, y, r) => poly(c, [[x, y - 1.4 * r], [x + 1.4 * r, y], [x, y + 1.4 * r], [x - 1.4 * r, y]]),
    down: (c, x, y, r) => poly(c, [[x, y + 1.2 * r], [x + 1.2 * r, y - r], [x - 1.2 * r, y - r]]),
    plus: (c, x, y, r) => { c.rect(x - 1.3 * r, y - r / 2, 2.6 * r, r); c.rect(x - r / 2, y - 1.3 * r, r, 2.6 * r); },
    bar: (c, x, y, r) => c.rect(x - r / 2, y - 1.5 * r, r, 3 * r),
    dash: (c, x, y, r) => c.rect(x - 1.5 * r, y - r / 2, 3 * r, r),
    left: (c, x, y, r) => poly(c, [[x - 1.2 * r, y], [x + r, y - 1.2 * r], [x + r, y + 1.2 * r]]),
    right: (c, x, y, r) => poly(c, [[x + 1.2 * r, y], [x - r, y - 1.2 * r], [x - r, y + 1.2 * r]]),
  };
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2], [2, 5], [6, 2, 2, 2], [1, 2], [10, 6]];

  function poly(c, points) {
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.closePath();
  }

  // Rolling median and 10th and 90th percentile over `w` seconds around each second, fewer at the ends. By nearest rank:
  // each of the three is a count that some second in the window had, so no value is invented at a cliff.
  function rolling(values, w) {
    const n = values.length, half = w >> 1, sorted = new Float64Array(2 * half + 2);
    const out = { median: new Float64Array(n), p10: new Float64Array(n), p90: new Float64Array(n) };
    let size = 0;
    const place = (v) => {
      let lo = 0, hi = size;
      while (lo < hi) { const mid = (lo + hi) >> 1; sorted[mid] < v ? (lo = mid + 1) : (hi = mid); }
      return lo;
    };
    const add = (v) => { const at = place(v); sorted.copyWithin(at + 1, at, size++); sorted[at] = v; };
    const drop = (v) => { const at = place(v); sorted.copyWithin(at, at + 1, size--); };
    const rank = (q) => sorted[Math.max(0, Math.ceil(q * size) - 1)];
    for (let i = 0; i < Math.min(half, n); i++) add(values[i]);
    for (let i = 0; i < n; i++) {
      if (i + half < n) add(values[i + half]);
      if (i > half) drop(values[i - half - 1]);
      out.median[i] = rank(0.5); out.p10[i] = rank(0.1); out.p90[i] = rank(0.9);
    }
    return out;
  }

  // Canvas position of values on a scale. Values off the bottom of a log scale lie on its bottom line.
  function toY(u, key) {
    const { min, max, distr } = u.scales[key], { top, height } = u.bbox;
    if (distr !== 3) return (v) => top + height * (1 - (v - min) / (max - min));
    const a = Math.log(min), k = height / (Math.log(max) - a);
    return (v) => top + height - k * ((v > min ? Math.log(v) : a) - a);
  }
  function toX(u) {
    const { min, max } = u.scales.x, k = u.bbox.width / (max - min);
    return (t) => u.bbox.left + (t - min) * k;
  }

  function line(c, n, x, y, break_) {
    let open = false;
    c.beginPath();
    for (let i = 0; i < n; i++) {
      if (break_(i)) { open = false; continue; }
      open ? c.lineTo(x(i), y(i)) : c.moveTo(x(i), y(i));
      open = true;
    }
    c.stroke();
  }

  function band(c, n, x, lo, hi, break_) {
    for (let a = 0; a < n; a++) {
      if (break_(a)) continue;
      let b = a;
      c.beginPath();
      for (; b < n && !break_(b); b++) b > a ? c.lineTo(x(b), hi(b)) : c.moveTo(x(b), hi(b));
      for (let i = b - 1; i >= a; i--) c.lineTo(x(i), lo(i));
      c.fill();
      a = b;
    }
  }

  // Each second of `values` as a mark of the run's shape; where a log scale has no place for 0, an open triangle on its floor.
  function points(u, run, values, alpha, zeros) {
    const c = u.ctx, X = toX(u), Y = toY(u, "y"), seconds = u.scales.x.max - u.scales.x.min, size = seconds > 2500 ? 1 : seconds > 400 ? 1.4 : 3, r = size * px();
    const { min, max } = u.scales.x, from = Math.max(0, Math.ceil(min)), to = Math.min(run.n, Math.floor(max) + 1);
    c.globalAlpha = alpha;
    if (size < 2) {
      for (let i = from; i < to; i++) if (values[i] > 0 || !zeros) c.fillRect(X(i) - r, Y(values[i]) - r, 2 * r, 2 * r);
    } else {
      c.beginPath();
      for (let i = from; i < to; i++) if (values[i] > 0 || !zeros) SHAPES[run.shape](c, X(i), Y(values[i]), r);
      c.fill();
    }
    if (!zeros) return;
    c.globalAlpha = 1;
    c.lineWidth = 1.5 * px();
    const dash = c.getLineDash();
    c.setLineDash([]);
    c.beginPath();
    for (let i = from; i < to; i++) if (values[i] === 0) SHAPES.down(c, X(i), u.bbox.top + u.bbox.height - 6 * px(), 3.5 * px());
    c.stroke();
    c.setLineDash(dash);
  }

  // The rails of one run as thin lines, each named at its last second.
  function rails(c, run, x, Y, { left, width }) {
    const p = px();
    c.lineWidth = p;
    c.font = `${11 * p}px system-ui, sans-serif`;
    c.textAlign = "right";
    for (const { name, mean } of run.rails) {
      line(c, run.n, x, (i) => Y(mean[i]), (i) => Number.isNaN(mean[i]));
      const last = mean.findLastIndex((v) => !Number.isNaN(v));
      if (last >= 0) c.fillText(name, Math.min(x(last), left + width - 4 * p), Y(mean[last]) - 4 * p);
    }
  }

  const KINDS = {
    iops(u, run, top, opts) {
      const c = u.ctx, X = toX(u), Y = toY(u, "y"), x = (i) => X(i), no = () => false;
      points(u, run, run.iops, top ? (opts.trend ? 0.6 : 0.9) : opts.trend ? 0.4 : 0.8, u.scales.y.distr === 3);
      if (!opts.trend) return;
      const { median, p10, p90 } = run.trend;
      c.globalAlpha = top ? 0.2 : 0.09;
      band(c, run.n, x, (i) => Y(p10[i]), (i) => Y(p90[i]), no);
      c.globalAlpha = 1;
      c.lineWidth = (top ? 2.2 : 1.2) * px();
      line(c, run.n, x, (i) => Y(median[i]), no);
    },
    power(u, run, top) {
      const c = u.ctx, X = toX(u), Y = toY(u, "y"), x = (i) => X(i), none = (i) => Number.isNaN(run.power_mean[i]);
      c.globalAlpha = top ? 0.25 : 0.1;
      band(c, run.n, x, (i) => Y(run.power_min[i]), (i) => Y(run.power_max[i]), none);
      c.globalAlpha = 1;
      c.lineWidth = (top ? 2 : 1.2) * px();
      line(c, run.n, x, (i) => Y(run.power_mean[i]), none);
      if (top) rails(c, run, x, Y, u.bbox);
      if (!u.scales.C) return;
      const C = toY(u, "C"), dash = c.getLineDash();
      c.setLineDash([2 * px(), 4 * px()]);
      line(c, run.temp.t.length, (i) => X(run.temp.t[i]), (i) => C(run.temp.v[i]), () => false);
      c.setLineDash(dash);
      c.beginPath();
      run.temp.t.forEach((t, i) => SHAPES[run.shape](c, X(t), C(run.temp.v[i]), 3 * px()));
      c.fill();
    },
    energy(u, run, top) { points(u, run, run.energy, top ? 0.85 : 0.6, true); },
    latency(u, run, top) {
      const c = u.ctx, X = toX(u), Y = toY(u, "y");
      points(u, run, run.lat_p99, top ? 0.75 : 0.45, true);
      c.globalAlpha = 1;
      c.lineWidth = (top ? 1.8 : 1.2) * px();
      line(c, run.n, (i) => X(i), (i) => Y(run.lat_mean[i]), (i) => Number.isNaN(run.lat_mean[i]));
    },
    wa(u, run, top) {
      const c = u.ctx, X = toX(u), Y = toY(u, "y"), { t, v, e } = run.wa;
      c.globalAlpha = 1;
      c.lineWidth = (top ? 1.8 : 1.2) * px();
      line(c, t.length, (i) => X(t[i]), (i) => Y(v[i]), () => false);
      c.beginPath();
      for (let i = 0; i < t.length; i++) {
        const w = 4 * px(), x = X(t[i]), lo = Y(v[i] - e[i]), hi = Y(v[i] + e[i]);
        c.moveTo(x, lo); c.lineTo(x, hi);
        c.moveTo(x - w, lo); c.lineTo(x + w, lo);
        c.moveTo(x - w, hi); c.lineTo(x + w, hi);
      }
      c.stroke();
      c.beginPath();
      t.forEach((s, i) => SHAPES[run.shape](c, X(s), Y(v[i]), 3.5 * px()));
      c.fill();
    },
  };

  // Each value of `tail` covers a stretch of time: a line with steps.
  KINDS.tail = (u, run, top) => {
    const X = toX(u), Y = toY(u, "y"), { t, v } = run.tail;
    u.ctx.globalAlpha = 1;
    u.ctx.lineWidth = (top ? 2 : 1.2) * px();
    line(u.ctx, 2 * v.length, (i) => X(t[(i + 1) >> 1]), (i) => Y(v[i >> 1]), () => false);
  };
  // The rails of the reviewed run on top of each other; of the others the sum.
  const RAIL_OPACITIES = [0.55, 0.3, 0.15];
  KINDS.rails = (u, run, top) => {
    const c = u.ctx, X = toX(u), Y = toY(u, "y"), p = px();
    c.globalAlpha = 1;
    if (!top || run.rails.length < 2) {
      c.lineWidth = 1.2 * p;
      return line(c, run.n, (i) => X(i), (i) => Y(run.power_mean[i]), (i) => Number.isNaN(run.power_mean[i]));
    }
    let base = new Float64Array(run.n);
    const names = run.rails.map(({ name, mean }, place) => {
      const low = base, high = base.map((v, i) => v + mean[i]), none = (i) => Number.isNaN(high[i]);
      c.globalAlpha = RAIL_OPACITIES[place % RAIL_OPACITIES.length];
      band(c, run.n, (i) => X(i), (i) => Y(low[i]), (i) => Y(high[i]), none);
      c.globalAlpha = 1;
      c.lineWidth = p;
      line(c, run.n, (i) => X(i), (i) => Y(high[i]), none);
      base = high;
      const last = high.findLastIndex((v, i) => !Number.isNaN(v) && X(i) <= u.bbox.left + u.bbox.width);
      return [name, last, (low[last] + high[last]) / 2];
    });
    c.font = `${11 * p}px system-ui, sans-serif`;
    c.textAlign = "right";
    c.fillStyle = css("--ink");
    for (const [name, last, middle] of names) if (last >= 0) c.fillText(name, X(last) - 6 * p, Y(middle) + 4 * p);
  };

  // The two marks that the user has set.
  function between(u, marks) {
    const c = u.ctx, X = toX(u), { top, height } = u.bbox, p = px();
    c.fillStyle = c.strokeStyle = css("--ink");
    c.globalAlpha = 1;
    c.lineWidth = 1.5 * p;
    c.setLineDash([]);
    c.font = `bold ${12 * p}px system-ui, sans-serif`;
    c.textAlign = "left";
    for (const name of ["a", "b"]) {
      if (marks[name] == null) continue;
      c.beginPath(); c.moveTo(X(marks[name]), top); c.lineTo(X(marks[name]), top + height); c.stroke();
      c.fillText(name.toUpperCase(), X(marks[name]) + 3 * p, top + height - 12 * p);
    }
  }

  // What happened, of the reviewed run only: SMART polls as ticks at the bottom, everything else as a labelled line. A label
  // that would cover another one is a line lower, the fifth is left out.
  function marks(u, run, labels) {
    const c = u.ctx, X = toX(u), { top, height, left, width } = u.bbox, p = px();
    c.globalAlpha = 0.9;
    c.fillStyle = c.strokeStyle = css("--mark");
    for (const [t0, t1] of run.polls) c.fillRect(X(t0), top + height - 9 * p, Math.max(2 * p, X(t1) - X(t0)), 9 * p);
    c.setLineDash([3 * p, 3 * p]);
    c.lineWidth = p;
    c.font = `${11 * p}px system-ui, sans-serif`;
    const taken = [-Infinity, -Infinity, -Infinity, -Infinity];
    for (const [t, text] of [...run.marks].sort(([a], [b]) => a - b)) {
      const x = X(t);
      if (x < left || x > left + width) continue;
      c.beginPath(); c.moveTo(x, top); c.lineTo(x, top + height); c.stroke();
      if (!labels) continue;
      const right = x + 160 * p > left + width;
      const wide = c.measureText(text).width + 10 * p, from = right ? x - wide : x, row = taken.findIndex((end) => end <= from);
      if (row < 0) continue;
      taken[row] = from + wide;
      c.textAlign = right ? "right" : "left";
      c.fillText(text, x + (right ? -5 : 5) * p, top + 13 * (row + 1) * p);
    }
    c.setLineDash([]);
  }

  const FINE_s = [1, 2, 5].flatMap((k) => [1e-4, 1e-3, 1e-2, 0.1].map((ten) => k * ten)).sort((a, b) => a - b);
  const STEPS_s = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 36000, 86400]; // data are 1/s
  const LEAST_s = 4;
  const widened = (a, b) => { const more = Math.max(0, LEAST_s - (b - a)) / 2; return [a - more - 0.5, b + more + 0.5]; };

  // One panel. spec: {el, kind, wide, x: [from, to], y: [lo, hi], log, C: [lo, hi] | undefined, unit, scale, height, width, labels, moves: whether y and C change}
  function panel(spec, page) {
    const zoom = spec.zoom ?? page.zoom;
    const stroke = () => css("--ink-soft"), grid = { stroke: () => css("--grid"), width: enlarged }, k = enlarged;
    const font = `${12 * k}px system-ui, sans-serif`, pad = (spec.wide ? 58 : 14) * k;
    const axis = { stroke, grid, ticks: { ...grid, size: 5 * k }, gap: 5 * k, font, labelFont: font, labelSize: 18 * k };
    const xs = spec.free ? Float64Array.of(...spec.x) : Float64Array.from({ length: Math.max(2, spec.x[1] - spec.x[0] + 1) }, (_, i) => spec.x[0] + i);
    const flat = new Array(xs.length).fill(spec.y[0]);
    const axes = [
      { ...axis, label: page.time_label, size: 34 * k, space: 50 * k, incrs: spec.free ? [...FINE_s, ...STEPS_s] : STEPS_s, values: (u, v) => v.map((t) => String(+t.toFixed(4))) },
      { ...axis, label: spec.unit, size: 62 * k, space: 30 * k, ...(spec.strips && { grid: { show: false }, ticks: { show: false } }), values: (u, v) => v.map((value) => (spec.strips ? "" : short(value, spec.scale))) },
    ];
    const series = [{}, { scale: "y", paths: () => null, points: { show: false } }];
    const scales = { x: { time: false, range: (u, a, b) => (spec.free ? [a, b] : widened(a, b)) }, y: { distr: spec.log ? 3 : 1, range: spec.moves ? () => spec.y : spec.y } }, data = [xs, flat];
    if (spec.C) {
      scales.C = { range: spec.moves ? () => spec.C : spec.C };
      axes.push({ ...axis, scale: "C", side: 1, label: "°C", size: 40 * k, space: 30 * k, grid: { show: false } });
      series.push({ scale: "C", paths: () => null, points: { show: false } });
      data.push(flat.map(() => spec.C[0]));
    }
    // The cursor is shared by all panels, the zoom by the wide ones: the others show one window and keep it.
    const shared = (type) => type === "mousemove" || type === "mouseleave";
    const options = {
      width: spec.width, height: spec.height * k, axes, series, scales, legend: { show: false },
      padding: [10 * k, spec.C ? 0 : pad, 0, 0],
      cursor: {
        sync: { key: "t", scales: ["x", null], filters: { pub: shared, sub: shared } }, points: { show: false }, y: false,
        drag: { x: Boolean(spec.wide), y: false, setScale: false }, bind: { dblclick: () => () => zoom(null) },
      },
      hooks: {
        draw: [(u) => {
          const c = u.ctx;
          if (spec.strips) Samples.strips(u, page, spec.strips);
          c.save();
          c.beginPath();
          c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
          c.clip();
          if (spec.kind === "iops" && spec.wide) {
            c.fillStyle = css("--zoom");
            const X = toX(u), [from, to] = page.window(), x = X(from);
            c.fillRect(x, u.bbox.top, X(to) - x, u.bbox.height);
          }
          for (const run of spec.strips ? [] : page.order()) {
            const top = run === page.reviewed();
            c.fillStyle = c.strokeStyle = page.colour(run);
            c.setLineDash(dash(run, top).map((d) => d * px()));
            KINDS[spec.kind](u, run, top, page.options);
            c.setLineDash([]);
          }
          if (!spec.strips && page.visible(page.reviewed())) marks(u, page.reviewed(), spec.labels);
          if (page.marks) between(u, page.marks());
          c.restore();
        }],
        setCursor: [(u) => {
          if (u.cursor.left >= 0 && u.cursor.event) page.readout(spec.free ? u.posToVal(u.cursor.left, "x") : Math.round(u.posToVal(u.cursor.left, "x")));
        }],
        setSelect: [(u) => {
          const { left, width } = u.select;
          if (!width) return;
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
        }],
      },
    };
    const u = new uPlot(options, data, spec.el);
    if (spec.range) show(u, spec.range);
    else if (spec.wide && !spec.free && page.zoomed()) show(u, page.zoomed());
    return u;
  }

  // Keys of a panel: arrows move the shared cursor, + - 0 zoom.
  function keys(el, page, plot, range, free) {
    el.tabIndex = 0;
    el.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target !== el) return;
      if (page.mark && (event.key === "a" || event.key === "b")) return page.mark(event.key);
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key], factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
      if (!step && !factor && event.key !== "0") return;
      event.preventDefault();
      const zoom = free?.zoom ?? page.zoom, { min, max } = plot().scales.x;
      if (event.key === "0") return zoom(null);
      if (factor) {
        const [a, b] = free ? [min, max] : page.zoomed() ?? range(), half = (factor * (b - a)) / 2;
        return zoom([page.time() - half, page.time() + half]);
      }
      const one = free ? (max - min) / 200 : 1, [from, to] = free ? [min, max] : range();
      const t = Math.min(to, Math.max(from, (free ? page.time() : Math.round(page.time())) + step * one * (event.shiftKey ? 10 : 1)));
      plot().setCursor({ left: plot().valToPos(t, "x"), top: 10 }, true, true);
      page.readout(t);
    });
  }

  const show = (u, [min, max]) => u.setScale("x", { min, max });
  const dash = (run, top) => (top ? [] : DASHES[run.index % DASHES.length]);
  function short(v, scale = 1) {
    if (v == null) return "";
    v = +(v * scale).toPrecision(6);
    return Math.abs(v) >= 1e6 ? v / 1e6 + "M" : Math.abs(v) >= 1e4 ? v / 1e3 + "k" : String(v);
  }
  return { panel, keys, show, rolling, css, dash, line, band, toX, toY, px, KINDS, enlarge: (k) => { enlarged = k; }, LEAST_s };
})();
