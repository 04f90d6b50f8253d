"use strict";
// The button that cuts the drive's power, held by pointer or key for the time that the run requires. It arms immediately
// and requests the cut at the end of the hold, so an earlier end (a finger, the page, the browser, the server) cuts nothing.
const Cut = (() => {
  const { $, ask, num } = Client, TICK_ms = 100, MARGIN_ms = 100;
  let held = null; // the hold that goes on

  const say = (words, left = "") => { if ($("cut-said").textContent !== words) $("cut-said").textContent = words; $("cut-left").textContent = left; };
  const act = (request) => ask(`/api/live/${Live.followed()}/act`, request);
  const refused = (answer) => (answer ? `The run refuses: ${answer.why}.` : "Nothing was cut.");

  async function begin() {
    if (held) return;
    const mine = held = {}, answer = await act({ do: "arm" });
    if (held !== mine) return; // let go meanwhile
    if (!answer?.ok) { held = null; say(refused(answer)); return; }
    const due = performance.now() + 1000 * answer.hold_s + MARGIN_ms;
    const tick = () => {
      const left_ms = due - performance.now();
      if (left_ms <= 0) fire(answer);
      else say("Armed. Keep holding; let go to call it off.", `Power goes in ${num(left_ms / 1000, 1)} s`);
    };
    mine.timer = setInterval(tick, TICK_ms);
    tick();
  }
  async function fire({ token, off_s }) {
    drop();
    const answer = await act({ do: "cut", token });
    say(answer?.ok ? `The run cuts the power for ${num(off_s, 1)} s and then ends. Its events say what came of it.` : refused(answer));
  }
  function drop() {
    clearInterval(held?.timer);
    held = null;
  }
  function let_go() {
    if (!held) return;
    drop();
    say("Let go: nothing was asked for.");
  }

  const button = $("cut"), is_key = (event) => event.key === " " || event.key === "Enter";
  button.addEventListener("pointerdown", (event) => { if (event.button === 0) { button.setPointerCapture(event.pointerId); begin(); } });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) button.addEventListener(name, let_go);
  button.addEventListener("keydown", (event) => {
    if (event.key === "Escape") let_go();
    if (!is_key(event)) return;
    event.preventDefault();
    if (!event.repeat) begin();
  });
  button.addEventListener("keyup", (event) => { if (is_key(event)) let_go(); });
  button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch
  window.addEventListener("blur", let_go);
  window.addEventListener("pagehide", let_go);
  document.addEventListener("visibilitychange", let_go);

  function show(off_s) {
    button.hidden = off_s == null;
    if (off_s == null) { let_go(); say(""); }
    else button.title = `The rig takes the drive's power for ${num(off_s, 1)} s, and the run ends.`;
  }
  return { show };
})();
