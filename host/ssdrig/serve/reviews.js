"use strict";
// The reviews of the archive: how far each is, its plans, and its page.
const Reviews = (() => {
  const { $, el, num, utc, meter } = Client, opened = new Set(); // ids whose list of plans is open
  const WORDS = { complete: "✓ ", running: "▶ ", failed: "✕ ", died: "✕ ", interrupted: "✕ " };

  function plan(of) {
    const name = of.run ? el("button", of.name, { type: "button", class: "link", title: "open its page" }) : el("span", of.name);
    name.addEventListener("click", () => of.run && Client.open("/api/compare", { runs: [of.run] }));
    const cell = (...inner) => el("td", null, { class: "text" }, ...inner);
    return el("tr", null, {}, cell(name), el("td", `${WORDS[of.state] ?? ""}${of.state}`, { class: `text state-${of.state}` }), cell(of.why ?? ""));
  }
  function plans(of) {
    const heads = ["Plan", "State", "Why"].map((head) => el("th", head, { scope: "col" }));
    const table = el("table", null, { class: "runs-table" }, el("thead", null, {}, el("tr", null, {}, ...heads)), el("tbody", null, {}, ...of.plans.map(plan)));
    const made = el("details", null, { open: opened.has(of.id) ? "" : null }, el("summary", of.plans.length === 1 ? "1 plan" : `All ${of.plans.length} plans`), el("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plans of the review" }, table));
    made.addEventListener("toggle", () => { made.open ? opened.add(of.id) : opened.delete(of.id); });
    return made;
  }
  function box(of) {
    const name = el("h2", of.model ?? of.folder), page = el("button", "Show the page", { type: "button" });
    if (of.state === "unreadable") return el("article", null, { class: "box one-review" }, el("div", null, { class: "title" }, name), el("p", `This review cannot be read: ${of.why}`, { class: "warn" }));
    page.addEventListener("click", () => Client.open("/api/reviews/page", { review: of.id }));
    const share = of.of ? (100 * of.complete) / of.of : 100, now = of.plans.find((one) => one.state === "running");
    const words = `${of.state === "running" ? "In progress" : of.state === "complete" ? "Complete" : "Interrupted"}: ${num(of.complete, 0)} of ${num(of.of, 0)} plans complete${now ? `, now ${now.name}` : ""}`, bad = of.state === "interrupted";
    return el("article", null, { class: "box one-review" },
      el("div", null, { class: "title" }, name, ...(of.simulated && !of.model?.includes("SIMULATED") ? [el("strong", "SIMULATED", { class: "badge" })] : []), el("span", null, { class: "buttons" }, page)),
      el("p", [of.serial ? `serial ${of.serial}` : null, `level ${of.level}`, `begun ${utc(of.started_utc_ms)} UTC`].filter(Boolean).join(" · "), { class: "soft" }),
      el("p", words, { class: bad ? "warn" : null }), meter("", share, bad),
      ...(bad ? [el("p", null, { class: "soft" }, "Continue it with: ", el("code", `ssdrig review --resume ${of.folder}`))] : []), plans(of));
  }
  async function show() {
    const reply = await Client.ask("/api/reviews");
    if (!reply) return;
    $("reviews-none").hidden = reply.length > 0;
    $("review-list").replaceChildren(...reply.map(box));
  }
  return { show };
})();
