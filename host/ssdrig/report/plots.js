"use strict";
// Buttons at each figure of a page whose plots are SVG already: the plot as PNG and SVG, its data and its table as CSV.
(() => {
  const errors = [], all = (selector, root = document) => [...root.querySelectorAll(selector)];
  if (document.body.dataset.errors === undefined) {
    window.addEventListener("error", (event) => { errors.push(event.message); document.body.dataset.errors = errors.join("; "); });
    document.body.dataset.errors = "";
  }
  const text = (el) => el.textContent.replace(/[ \t\n]+/g, " ").trim();
  const title = (el) => [el.closest("article")?.querySelector("h3.plan")?.textContent, el.querySelector("figcaption b").textContent].filter(Boolean).join(": ");
  const name = (el) => title(el).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "plot";

  // The visible text of a cell, without its details; a number as a number.
  function cell(el) {
    const shown = text(el.querySelector("summary") ?? el), number = shown.replaceAll("\u202f", "").replace("−", "-");
    if (/^-?\d+(\.\d+)?$/.test(number)) return number;
    return `"${shown.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`; // never a spreadsheet formula
  }
  const csv = (table) => all("tr", table).map((row) => [...row.children].map(cell).join(",")).join("\n") + "\n";

  function labels(el) {
    const badges = all("header .badge").map(text), setUps = all(".tested .set-up > ul").map((list) => all("li", list).map(text));
    const runs = all(".tested .runs li").map((line, i) => [text(line), ...(setUps[i] ?? [])].join(" · "));
    const caption = el.querySelector("figcaption .soft"), source = el.closest("[data-source]")?.dataset.source;
    const red = [...el.closest("article")?.children ?? []].filter((of) => of.matches(".state")).map(text);
    const legend = all(".legend li:not(.hidden)", el).map((li) => {
      const key = li.querySelector("[style]");
      return [key ? text(key) : "", key ? getComputedStyle(key).color : "", text(li).slice(key ? text(key).length : 0).trim()];
    });
    return {
      title: title(el), sub: [text(document.querySelector("h1")), ...badges, ...red].join(" · "), legend, caption: caption ? text(caption) : "",
      foot: `Source: ssdrig${source ? ` · ${source}` : ""}`,
      settings: JSON.stringify({ figure: title(el), page: document.title, marks: badges, runs: runs.length ? runs : all(".tested .about tr").map(text) }),
    };
  }
  const dataOf = (el) => el.querySelector("svg.plot")?.dataset.csv;
  function inflated(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }
  async function save(el, kind) {
    const file = `${name(el)}.${kind.toLowerCase()}`;
    if (kind === "CSV" && dataOf(el)) return Export.save(file, await inflated(dataOf(el)), "text/csv");
    if (kind === "CSV" || kind === "Table") return Export.save(`${name(el)}.csv`, csv(el.querySelector("table")), "text/csv");
    const what = labels(el), made = Export.framed(Export.ofPlate(el.querySelector("svg.plot")), what);
    if (kind === "SVG") return Export.save(file, made, "image/svg+xml");
    Export.save(file, await Export.png(made, { Title: what.title, Software: "ssdrig", Source: what.foot, Settings: what.settings }));
  }
  for (const el of all("main figure")) {
    const kinds = [...(el.querySelector("svg.plot") ? ["PNG", "SVG"] : []), ...(dataOf(el) ? ["CSV"] : []), ...(el.querySelector("table") ? [dataOf(el) ? "Table" : "CSV"] : [])];
    if (!kinds.length || !el.querySelector("figcaption b")) continue;
    const bar = Object.assign(document.createElement("span"), { className: "tools" });
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", `Save: ${title(el)}`);
    bar.append(...kinds.map((kind) => Object.assign(document.createElement("button"), { type: "button", textContent: kind, onclick: () => save(el, kind) })));
    el.querySelector("figcaption").prepend(bar);
    if (!el.closest("article .plots")) Cards.roving(bar, "button");
  }
  for (const plots of all("article .plots").filter((of) => of.querySelector(".tools"))) Cards.roving(plots, ".tools button"); // a review has some fifty
  const reach = () => Cards.reach(".scroll, figure.wide, article .plots, section > .cards");
  reach();
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true); // a table in details has no size before
})();
