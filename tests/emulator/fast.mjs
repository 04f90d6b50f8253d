// rp2040js runs an instruction by asking of each kind in turn whether it is this one: seventy questions for the last. Here the same
// code, taken from its own text, is reached at once by a table of all 16-bit opcodes; memory is looked up before peripherals; and
// instructions follow each other in one function until something else is due.

const RAM = 0x20000000;
const FLASH = 0x10000000;
export const CYCLE_ns = 8; // 125 MHz
export const NOW = -Infinity; // of due: before all else, a look around
const WIDE = 0; // an instruction of 32 bits: its second half decides

// What rp2040js's module has beside the class
const SCOPE = {
  pcRegister: 15,
  spRegister: 13,
  LOG_NAME: 'CortexM0Core',
  signExtend8: (x) => (x << 24) >> 24,
  signExtend16: (x) => (x << 16) >> 16,
};

// [[condition, body]] of the questions in order, the text before and after them, and the last `else`.
function questions(text) {
  const [head, chain, tail] = text.split(/^(?= {8}\/\/ ADCS$)|^(?= {8}this\.cycles \+= deltaCycles;$)/m);
  const asked = [...chain.matchAll(/^ {8}(?:else )?if \((.*)\) \{\n([^]*?)^ {8}\}$/gm)].map(([, condition, body]) => [condition, body]);
  const otherwise = chain.match(/^ {8}else \{\n([^]*?)^ {8}\}$/m)[1];
  const lines = asked.reduce((n, [, body]) => n + body.split('\n').length + 1, otherwise.split('\n').length + 1);
  if (lines !== chain.split('\n').filter((line) => !/^ {8}\/\//.test(line)).length - 1) throw new Error('the text of rp2040js is another');
  return { head, asked, otherwise, tail };
}

// The registers are one array that is known here, not a field to be asked for; and what makes the core wait ends the run.
function direct(text) {
  return text
    .replaceAll('this.registers', 'R')
    .replaceAll('this.PC', 'R[15]')
    .replaceAll(/this\.SP(?! *[-+]?=[^=])/g, 'R[13]')
    .replaceAll('this.waiting = true;', 'this.waiting = true; due[0] = NOW;');
}

// Instructions from the PC on, each with the head and the tail of executeInstruction and one switch between them, until the next one would
// begin at due[0] ns or later. now[0] is the time of the last one's begin; its cycles are returned.
function compile(text, places) {
  const { head, asked, otherwise, tail } = questions(text);
  const wide = asked.filter(([condition]) => condition.includes('opcode2'));
  const narrow = asked.filter(([condition]) => !condition.includes('opcode2'));
  const kindOf = new Function('opcode', narrow.map(([condition], k) => `if (${condition}) return ${k + 1};`).join('\n') + `return ${WIDE};`);
  const kinds = Uint8Array.from({ length: 1 << 16 }, (_, opcode) => kindOf(opcode));
  for (let opcode = 0xe800; opcode < 1 << 16; opcode++) {
    if (kinds[opcode] !== WIDE) throw new Error(`opcode ${opcode.toString(16)} has one half and two`);
  }
  const cases = narrow.map(([, body], k) => `case ${k + 1}: {\n${body}break; }`).join('\n');
  const halves = wide.map(([condition, body]) => `if (${condition}) {\n${body}}\nelse `).join('');
  const begin = head.slice(head.indexOf('{') + 1);
  if (!/^\s*this\.cycles \+= deltaCycles;\s*return deltaCycles;\s*\}\s*$/.test(tail)) throw new Error('the text of rp2040js is another');
  const code = `return function () {
    for (;;) {
      ${direct(begin)}
      switch (kinds[opcode]) {\n${direct(cases)}\ndefault: ${direct(halves)}{\n${direct(otherwise)}} }
      const then = now[0] + ${CYCLE_ns} * deltaCycles;
      if (then >= due[0]) return deltaCycles;
      now[0] = then;
    }
  }`;
  const scope = { ...SCOPE, ...places, kinds, NOW };
  return new Function(...Object.keys(scope), code)(...Object.values(scope));
}

// Makes the core of mcu fast: core.run() for executeInstruction(), which does the same and counts the same cycles, as often as until
// mcu.due[0], ns; what it must not pass, an alarm or a look around, is put there.
export function hurry(mcu) {
  const { core, clock, sramView, flashView } = mcu;
  const [ram, flash] = [sramView.byteLength, flashView.byteLength];
  const [now, due] = [new Float64Array(1), new Float64Array(1)];
  mcu.due = due;
  now[0] = clock.nanosCounter;
  Object.defineProperty(clock, 'nanosCounter', { get: () => now[0], set: (ns) => (now[0] = ns) });
  for (const name of ['linkAlarm', 'unlinkAlarm']) {
    const changed = clock[name];
    clock[name] = (...words) => ((due[0] = NOW), changed.apply(clock, words));
  }
  core.readUint32 = (address) => {
    address >>>= 0;
    if (address & 3) return mcu.readUint32(address);
    if (address - RAM >>> 0 < ram) return sramView.getUint32(address - RAM, true);
    if (address - FLASH >>> 0 < flash) return flashView.getUint32(address - FLASH, true);
    return mcu.readUint32(address);
  };
  core.readUint16 = (address) => {
    if (address - FLASH >>> 0 < flash - 1) return flashView.getUint16((address >>> 0) - FLASH, true);
    if (address - RAM >>> 0 < ram - 1) return sramView.getUint16((address >>> 0) - RAM, true);
    return mcu.readUint16(address);
  };
  core.readUint8 = (address) => {
    if (address - RAM >>> 0 < ram) return sramView.getUint8((address >>> 0) - RAM);
    if (address - FLASH >>> 0 < flash) return flashView.getUint8((address >>> 0) - FLASH);
    return mcu.readUint8(address);
  };
  core.writeUint32 = (address, value) => {
    if (address - RAM >>> 0 < ram - 3) sramView.setUint32((address >>> 0) - RAM, value, true);
    else mcu.writeUint32(address, value);
  };
  core.writeUint8 = (address, value) => {
    if (address - RAM >>> 0 < ram) sramView.setUint8((address >>> 0) - RAM, value);
    else mcu.writeUint8(address, value);
  };
  core.addUpdateFlags = (a, b) => {
    const sum = (a + b) | 0;
    core.N = sum < 0;
    core.Z = sum === 0;
    core.C = a + b > 0xffffffff;
    core.V = ((a ^ sum) & (b ^ sum)) < 0;
    return sum;
  };
  core.substractUpdateFlags = (a, b) => {
    const difference = (a - b) | 0;
    core.N = difference < 0;
    core.Z = difference === 0;
    core.C = a >= b;
    core.V = ((a ^ b) & (a ^ difference)) < 0;
    return difference;
  };
  core.run = compile(core.constructor.prototype.executeInstruction.toString(), { R: core.registers, now, due });
}
