"use strict";
// Each plot as PNG (with its settings as text inside), SVG and CSV.
const Export = (() => {
  // A 2D context that writes SVG instead of pixels: what uPlot and panels.js use of one.
  class Recorder {
    constructor(canvas) {
      Object.assign(this, { canvas, out: [], d: "", stack: [], clips: 0, state: { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic", globalAlpha: 1, lineJoin: "miter", lineCap: "butt", dash: [], transform: "", clip: "" } });
      for (const key of Object.keys(this.state)) if (key !== "dash" && key !== "transform" && key !== "clip") Object.defineProperty(this, key, { get: () => this.state[key], set: (v) => { this.state[key] = v; } });
    }
    save() { this.stack.push({ ...this.state }); }
    restore() { this.state = this.stack.pop() ?? this.state; }
    clearRect() {}
    beginPath() { this.d = ""; }
    moveTo(x, y) { this.d += `M${+x.toFixed(2)} ${+y.toFixed(2)}`; }
    lineTo(x, y) { this.d += `${this.d ? "L" : "M"}${+x.toFixed(2)} ${+y.toFixed(2)}`; }
    closePath() { this.d += "Z"; }
    rect(x, y, w, h) { this.d += `M${+x.toFixed(2)} ${+y.toFixed(2)}h${+w.toFixed(2)}v${+h.toFixed(2)}h${+(-w).toFixed(2)}Z`; }
    arc(x, y, r) { this.d += `M${+(x + r).toFixed(2)} ${+y.toFixed(2)}a${r} ${r} 0 1 0 ${-2 * r} 0a${r} ${r} 0 1 0 ${2 * r} 0`; }
    fillRect(x, y, w, h) { const d = this.d; this.d = ""; this.rect(x, y, w, h); this.fill(); this.d = d; }
    setLineDash(dash) { this.state.dash = dash; }
    getLineDash() { return this.state.dash; }
    translate(x, y) { this.state.transform += `translate(${x} ${y})`; }
    rotate(r) { this.state.transform += `rotate(${(r * 180) / Math.PI})`; }
    measureText(text) { return { width: text.length * 6.5 }; }
    clip() { const id = `c${++this.clips}`; this.out.push(`<clipPath id="${id}"><path d="${this.d}"/></clipPath>`); this.state.clip = id; }
    more() { const { globalAlpha: a, transform, clip } = this.state; return (a < 1 ? ` opacity="${a}"` : "") + (transform ? ` transform="${transform}"` : "") + (clip ? ` clip-path="url(#${clip})"` : ""); }
    fill() { if (this.d) this.out.push(`<path d="${this.d}" fill="${this.state.fillStyle}"${this.more()}/>`); }
    stroke() {
      const { strokeStyle, lineWidth, dash } = this.state;
      if (this.d) this.out.push(`<path d="${this.d}" fill="none" stroke="${strokeStyle}" stroke-width="${lineWidth}"${dash.length ? ` stroke-dasharray="${dash}"` : ""}${this.more()}/>`);
    }
    fillText(text, x, y) {
      const { font, fillStyle, textAlign, textBaseline } = this.state, anchor = { left: "start", start: "start", center: "middle", right: "end", end: "end" }[textAlign];
      const shift = { top: "0.8em", middle: "0.35em", bottom: "-0.2em" }[textBaseline] ?? "0";
      this.out.push(`<text x="${x}" y="${y}" dy="${shift}" style="font:${escape(font)}" fill="${fillStyle}" text-anchor="${anchor}"${this.more()}>${escape(text)}</text>`);
    }
  }
  // What XML has no place for, such as a control character in a drive's name (embed.py has the same).
  const clean = (text) => String(text).replace(/[\0-\x08\x0b\x0c\x0e-\x1f\u{d800}-\u{dfff}\ufffe\uffff]/gu, "\ufffd");
  const escape = (text) => clean(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

  // The SVG of a panel as it is seen now. `make(el)` draws it into an element.
  async function ofPanel(make, width, height) {
    const real = HTMLCanvasElement.prototype.getContext, made = [];
    HTMLCanvasElement.prototype.getContext = function () { const one = new Recorder(this); made.push(one); return one; };
    let u;
    try {
      u = make(document.createElement("div"));
      await new Promise((done) => setTimeout(done));
    } finally {
      HTMLCanvasElement.prototype.getContext = real;
    }
    u.destroy();
    const k = devicePixelRatio;
    return { body: `<g transform="scale(${1 / k})">${made.find((one) => one.out.length).out.join("")}</g>`, width, height };
  }
  // A plot that is SVG already: its colours and rules go with it.
  function ofPlate(svg) {
    const copy = svg.cloneNode(true), root = getComputedStyle(document.documentElement);
    for (const el of [copy, ...copy.querySelectorAll("*")]) if (el.hasAttribute("style")) el.setAttribute("style", el.getAttribute("style").replace(/var\((--[\w-]+)\)/g, (_, name) => root.getPropertyValue(name).trim()));
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.selectorText?.includes(".plot ")).map((rule) => rule.cssText.replace(/var\((--[\w-]+)\)/g, (_, name) => root.getPropertyValue(name).trim()));
    const xml = new XMLSerializer(), inner = clean([...copy.childNodes].map((el) => xml.serializeToString(el)).join("")); // innerHTML is not XML: &nbsp;
    const { width, height } = svg.viewBox.baseVal;
    return { body: `<style>${escape(rules.join(""))}</style><g class="plot" style="font:12px system-ui,sans-serif" fill="${root.getPropertyValue("--ink").trim()}">${inner}</g>`, width, height };
  }
  // Words in lines of at most `width` pixels, a character `wide`.
  function lines(words, width, wide) {
    const out = [];
    for (const word of words.split(" ").filter(Boolean)) {
      if (out.length && (out.at(-1).length + word.length + 1) * wide < width) out[out.length - 1] += ` ${word}`;
      else out.push(word);
    }
    return out;
  }
  // The plot with title, legend, caption and origin. labels: {title, sub, legend: [[glyph, colour, words]], caption, foot}
  function framed({ body, width, height }, labels) {
    const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const text = (x, y, words, more = "") => `<text x="${x}" y="${y}" font-family="system-ui, sans-serif" ${more}>${words}</text>`;
    let x = 14, y = 62;
    const heads = lines(labels.title, width - 28, 8.6), subs = lines(labels.sub, width - 28, 6.2);
    y += 19 * (heads.length - 1) + 14 * (subs.length - 1);
    const legend = labels.legend.map(([glyph, colour, words]) => {
      const wide = 22 + 7 * words.length;
      if (x + wide > width && x > 14) { x = 14; y += 18; }
      const out = text(x, y, `<tspan fill="${colour}">${glyph}</tspan> ${escape(words)}`, `font-size="12" fill="${css("--ink")}"`);
      x += wide;
      return out;
    }).join("");
    const below = [...lines(labels.caption ?? "", width - 28, 5.8), ...lines(labels.foot, width - 28, 5.8)];
    const top = labels.legend.length ? y + 12 : y - 10, all = top + height + 10 + 14 * below.length;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${all}" width="${width}" height="${all}"><title>${escape(labels.title)}</title><desc>${escape(labels.settings)}</desc><rect width="100%" height="100%" fill="${css("--paper")}"/>`
      + heads.map((line, i) => text(14, 22 + 19 * i, escape(line), `font-size="16" font-weight="650" fill="${css("--ink")}"`)).join("")
      + subs.map((line, i) => text(14, 41 + 19 * (heads.length - 1) + 14 * i, escape(line), `font-size="12" fill="${css("--ink-soft")}"`)).join("") + legend
      + `<g transform="translate(0 ${top})">${body}</g>` + below.map((line, i) => text(14, all - 7 - 14 * (below.length - 1 - i), escape(line), `font-size="11" fill="${css("--ink-soft")}"`)).join("") + "</svg>\n";
  }

  // ---- PNG with text in it
  const TABLE = Uint32Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1; return n; });
  const crc = (bytes) => { let c = 0xffffffff; for (const b of bytes) c = TABLE[(c ^ b) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; };
  // An iTXt chunk (UTF-8, not compressed) for each of the words, after the header of the PNG.
  function withText(png, words) {
    const utf8 = new TextEncoder(), chunks = Object.entries(words).map(([key, value]) => {
      const body = utf8.encode(`iTXt${key}\0\0\0\0\0${clean(value)}`), out = new Uint8Array(body.length + 8), view = new DataView(out.buffer);
      view.setUint32(0, body.length - 4);
      out.set(body, 4);
      view.setUint32(body.length + 4, crc(body));
      return out;
    });
    return new Blob([png.slice(0, 33), ...chunks, png.slice(33)], { type: "image/png" }); // 8 of the signature, 25 of IHDR
  }
  async function png(svg, words) {
    const image = new Image(), size = /width="(\d+(?:\.\d+)?)" height="(\d+(?:\.\d+)?)"/.exec(svg), canvas = document.createElement("canvas");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    await image.decode();
    canvas.width = 2 * size[1];
    canvas.height = 2 * size[2];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    return withText(new Uint8Array(await blob.arrayBuffer()), words);
  }
  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  return { ofPanel, ofPlate, framed, png, save };
})();
