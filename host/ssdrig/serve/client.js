"use strict";
// What all pages share: the token, requests, the stream of a run, words for numbers. Text of drives and people only ever
// becomes textContent.
const Client = (() => {
  const KEY = "ssdrig-token", token = /^#t=([\w-]{20,100})$/.exec(location.hash);
  if (token) { // out of the address, so that it is in no history and no picture of the window
    sessionStorage.setItem(KEY, token[1]);
    history.replaceState(null, "", "#bench");
  }
  const headers = (more = {}) => ({ authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}`, ...more });
  const $ = (id) => document.getElementById(id);

  // Current problems by origin: a request's path, or SERVER. A problem is shown until the same request succeeds or the
  // user opens another page.
  const SERVER = "", troubles = new Map();
  function trouble(what, words) {
    troubles.delete(what);
    if (words) troubles.set(what, words);
    const text = [...troubles.values()].join("\n");
    if ($("trouble").textContent !== text) $("trouble").textContent = text; // announced once, not at each request
    $("trouble").hidden = !troubles.size;
  }
  window.addEventListener("hashchange", () => { for (const what of [...troubles.keys()]) if (what !== SERVER) trouble(what); });
  const LOST = "The server does not know this page's token: open the address that `ssdrig serve` printed when it started.";

  // The JSON of a response; null, with a notice on the page, if it fails. Reads of one path (a search, the next one) may be
  // answered out of order: a response that arrives after a later read's is null, without a notice.
  const asked = new Map(), answered = new Map(); // path -> reads
  async function ask(path, body) {
    const what = path.split("?")[0], reads = body === undefined, turn = (asked.get(what) ?? 0) + 1;
    const late = () => {
      if (!reads || turn < answered.get(what)) return reads;
      answered.set(what, turn);
      return false;
    };
    if (reads) asked.set(what, turn);
    try {
      const how = reads ? {} : { method: "POST", body: JSON.stringify(body) };
      const answer = await fetch(path, { ...how, headers: headers(reads ? {} : { "content-type": "application/json" }) });
      const text = await answer.text();
      if (late()) return null;
      if (answer.status === 401) { trouble(SERVER, LOST); return null; }
      trouble(SERVER);
      if (answer.ok) { trouble(what); return JSON.parse(text); }
      trouble(what, words(text) || `The server refuses: ${answer.status}`);
    } catch { if (!late()) trouble(SERVER, "The server does not answer. A run in progress is not affected."); }
    return null;
  }
  function words(text) {
    try { const { expected, seen, do: act } = JSON.parse(text); return `Expected ${expected}; seen ${seen}; do: ${act}`; } catch { return text.trim(); }
  }

  // Follow a run: take(kind, object) for each message, from where the last one ended, however often the connection breaks.
  // Returns a function that ends it.
  function follow(id, take) {
    const ending = new AbortController();
    let at = "", over = false;
    (async () => {
      while (!over && !ending.signal.aborted) {
        try {
          const answer = await fetch(`/api/live/${id}`, { headers: headers(at ? { "last-event-id": at } : {}), signal: ending.signal });
          if (answer.status === 401) { trouble(SERVER, LOST); return; }
          if (!answer.ok) throw new Error(answer.status);
          const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
          let rest = "";
          for (;;) {
            const { value, done } = await reader.read();
            if (done) break;
            const parts = (rest + value).split("\n\n");
            rest = parts.pop();
            for (const part of parts) {
              const fields = Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
              if (!fields.data) continue;
              take(fields.event, JSON.parse(fields.data));
              at = fields.id;
              over ||= fields.event === "ended";
            }
          }
        } catch { if (!ending.signal.aborted) take("lost", {}); }
        if (!over) await new Promise((again) => setTimeout(again, 1000));
      }
    })();
    return () => ending.abort();
  }

  // Ask for a page, and show it in another tab.
  async function open(path, body) {
    const tab = window.open("", "_blank"); // at the click itself, or it is taken for a pop-up
    tab?.document.write("The page is being made…");
    const page = (await ask(path, body))?.page;
    if (page && tab) { tab.opener = null; tab.location.replace(page); }
    else tab?.close();
  }

  const num = (v, places) => {
    if (v == null || !Number.isFinite(v)) return "–";
    const digits = places ?? (Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 3);
    return v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", "\u202f").replace("-", "−");
  };
  // "3.7812 ± 0.0021": the error with two significant digits, the value to its last one
  function withError(v, error) {
    if (v == null || !error || !Number.isFinite(error)) return num(v, 2);
    const places = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(Number(error.toPrecision(2))))));
    return `${num(v, places)} ± ${num(error, places)}`;
  }
  function size(bytes) {
    if (bytes == null) return "–";
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let at = 0;
    while (Math.abs(bytes) >= 999.5 && at < units.length - 1) { bytes /= 1000; at++; }
    return `${bytes.toFixed(at && bytes < 99.95 ? (bytes < 9.995 ? 2 : 1) : 0)} ${units[at]}`;
  }
  function clock(s) {
    const whole = Math.max(0, Math.round(s)), two = (n) => String(n).padStart(2, "0"), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60;
    return h ? `${h}:${two(m)}:${two(whole % 60)}` : `${m}:${two(whole % 60)}`;
  }
  const utc = (ms) => (ms ? new Date(ms).toISOString().slice(0, 16).replace("T", " ") : "–");
  // An element with text, and others in it.
  function el(name, text, attributes = {}, ...inner) {
    const made = document.createElement(name);
    if (text != null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) if (value != null && value !== false) made.setAttribute(key, value);
    made.append(...inner);
    return made;
  }
  // A share of 100 % as a bar, after its words.
  function meter(words, percent, bad) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    for (const [width, fill] of [[100, "var(--grid)"], [Math.min(100, Math.max(0, percent)), bad ? "var(--warn)" : "var(--green)"]]) {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [key, value] of [["width", `${width}%`], ["height", "10"], ["fill", fill]]) bar.setAttribute(key, value);
      svg.append(bar);
    }
    return el("div", null, { class: "meter" }, el("span", words), svg, el("span", `${num(percent, percent < 10 ? 1 : 0)} %`));
  }
  return { SERVER, meter, ask, open, follow, trouble, num, withError, size, clock, utc, el, $, token: () => sessionStorage.getItem(KEY), headers, LOST };
})();
