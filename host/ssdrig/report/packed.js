"use strict";
// The series of a run for each second, as pack.py has packed them.
const Packed = (() => {
  // Numbers of pack._written: blocks of 64 with as many bits for each as the largest needs.
  function whole({ b, n, bits }) {
    const bytes = Uint8Array.from(atob(b), (c) => c.charCodeAt(0)), out = new Float64Array(n);
    let at = 0;
    const take = (width) => {
      let value = 0;
      for (let got = 0; got < width; ) {
        const from = at & 7, some = Math.min(8 - from, width - got);
        value += ((bytes[at >> 3] >> from) & ((1 << some) - 1)) * 2 ** got;
        got += some;
        at += some;
      }
      return value;
    };
    for (let i = 0; i < n; i += 64) {
      const width = take(6), least = take(bits);
      for (let k = i; k < Math.min(n, i + 64); k++) out[k] = least + take(width);
    }
    return out;
  }
  // A series of pack.py; 0 is missing. `mean`: the decoded one that extremes are counted from.
  function decode(packed, mean) {
    const codes = whole(packed), { as } = packed;
    if (as === "count") return codes;
    const { lo, step } = as === "offset" ? mean : packed, { coarse, sign, least } = packed;
    const value = {
      lin: (c) => lo + (c - 1) * step,
      log: (c) => Math.exp(lo + (c - 1) * step),
      few: (c) => packed.values[c - 1],
      offset: (c, i) => lo + (Math.floor((mean.codes[i] - 1) / coarse) + sign * (c - 1 + least)) * coarse * step,
    }[as];
    const values = Float64Array.from(codes, (c, i) => (c ? value(c, i) : NaN)), digits = Math.max(1, Math.ceil(-Math.log10(step ?? 1e-5)));
    values.text = as === "log" || as === "few" ? (v) => +v.toPrecision(digits) : (v) => +v.toFixed(digits); // no finer than the step that a mean and its extremes share
    return Object.assign(values, { codes, lo, step });
  }
  // All series of a run, in place of their packed parts.
  function series(run, columns) {
    for (const [key] of columns) if (run[key]) run[key] = decode(run[key], run.power_mean);
    run.energy = run.iops.map((n, i) => (n ? (run.power_mean[i] / n) * 1e6 : 0)); // µJ per I/O; 0: no I/O to share it
    run.energy.text = (v) => (v ? +v.toPrecision(5) : "");
    for (const rail of run.rails) rail.mean = decode(rail.mean);
    if (!run.tail) { run.tail = { t: [0], v: [] }; return; }
    let edge = 0;
    run.tail = { t: [0, ...whole(run.tail.s)].map((s) => (edge += s)), v: decode(run.tail.us) };
  }
  return { series };
})();
