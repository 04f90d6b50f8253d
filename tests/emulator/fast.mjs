// rp2040js runs an instruction by asking of each kind in turn whether it is this one: seventy questions for the last. Here the same
// code, taken from its own text, is reached at once by a table of all 16-bit opcodes; memory is looked up before peripherals; and
// instructions follow each other in one function until something else is due.

const RAM = 0x20000000;
const FLASH = 0x10000000;
export const CYCLE_ns = 8; // 125 MHz
const [LINE, SETS, WAYS] = [3, 1024, 2]; // of the flash's cache: 16 KiB in lines of 8 bytes (RP2040 data sheet 2.6.3)
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

// The registers are one array that is known here, not a field to be asked for, as are the ways to memory; and what makes the core wait
// ends the run.
function direct(text) {
  return text
    .replaceAll(/this\.((?:read|write)Uint(?:32|16|8)|cyclesIO|(?:add|substract)UpdateFlags)\(/g, '$1(')
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
  const [first, second, ...rest] = begin.split(/^(.*const wideInstruction[^]*?const opcode2 = .*)$/m);
  if (rest.length !== 1) throw new Error('the text of rp2040js is another');
  const code = `return function () {
    for (;;) {
      ${direct(first + rest)}
      switch (kinds[opcode]) {\n${direct(cases)}\ndefault: {\n${direct(second + halves)}{\n${direct(otherwise)}} } }
      const then = now[0] + ${CYCLE_ns} * deltaCycles;
      if (then >= due[0]) return deltaCycles;
      now[0] = then;
    }
  }`;
  const scope = { ...SCOPE, ...places, kinds, NOW };
  // constants, which V8 knows where it compiles: parameters it would read again each time
  return new Function('scope', `const { ${Object.keys(scope)} } = scope;\n${code}`)(scope);
}

// Whether flash that is read at this place was in the cache; it is then. Which of a set's two lines is replaced no document says: the older.
function cache() {
  const lines = new Int32Array(new ArrayBuffer(4 * SETS * WAYS)).fill(-1);
  return (at) => {
    const line = at >>> LINE;
    const set = (line & (SETS - 1)) * WAYS;
    if (lines[set] === line) return true;
    const hit = lines[set + 1] === line;
    lines[set + 1] = lines[set];
    lines[set] = line;
    return hit;
  };
}

// Makes the core of mcu fast: core.run() for executeInstruction(), which does the same and counts the same cycles, as often as until
// mcu.due[0], ns; what it must not pass, an alarm or a look around, is put there. wait: cycles more for a line of flash that is not in the
// cache; by these it may pass an alarm.
export function hurry(mcu, wait = 0) {
  const { core, clock, sramView, flashView } = mcu;
  const [ram, flash] = [sramView.byteLength, flashView.byteLength];
  // In buffers of their own, whose place V8 then takes for a constant; an array of up to 64 bytes has none
  const [now, due] = [0, 0].map(() => new Float64Array(new ArrayBuffer(8)));
  core.registers = new Uint32Array(Uint32Array.from(core.registers).buffer);
  mcu.due = due;
  now[0] = clock.nanosCounter;
  Object.defineProperty(clock, 'nanosCounter', { get: () => now[0], set: (ns) => (now[0] = ns) });
  for (const name of ['linkAlarm', 'unlinkAlarm']) {
    const changed = clock[name];
    clock[name] = (...words) => ((due[0] = NOW), changed.apply(clock, words));
  }
  const [ram32, flash32, ram16, flash16] = [Uint32Array, Uint16Array].flatMap((type) =>
    [sramView, flashView].map((view) => new type(view.buffer, view.byteOffset, view.byteLength / type.BYTES_PER_ELEMENT)),
  );
  const { sram: ram8, flash: flash8 } = mcu;
  // every address is made a word where it is used, so that V8 adds integers. As rp2040js where that matters: compare.mjs
  const memory = {
    readUint32(address) {
      const a = (address - RAM) >>> 0;
      const b = (address - FLASH) >>> 0;
      if (!(address & 3)) {
        if (a < ram) return ram32[a >>> 2];
        if (b < flash) return flash32[b >>> 2];
      }
      return mcu.readUint32(address >>> 0);
    },
    readUint16(address) {
      const a = (address - RAM) >>> 0;
      const b = (address - FLASH) >>> 0;
      if (!(address & 1)) {
        if (b < flash) return flash16[b >>> 1];
        if (a < ram) return ram16[a >>> 1];
      }
      return mcu.readUint16(address >>> 0);
    },
    readUint8(address) {
      const a = (address - RAM) >>> 0;
      const b = (address - FLASH) >>> 0;
      return a < ram ? ram8[a] : b < flash ? flash8[b] : mcu.readUint8(address >>> 0);
    },
    writeUint32(address, value) {
      const a = (address - RAM) >>> 0;
      if (a < ram && !(address & 3)) ram32[a >>> 2] = value;
      else mcu.writeUint32(address >>> 0, value);
    },
    writeUint16(address, value) {
      const a = (address - RAM) >>> 0;
      if (a < ram && !(address & 1)) ram16[a >>> 1] = value;
      else mcu.writeUint16(address >>> 0, value);
    },
    writeUint8(address, value) {
      const a = (address - RAM) >>> 0;
      if (a < ram) ram8[a] = value;
      else mcu.writeUint8(address >>> 0, value);
    },
    addUpdateFlags(a, b) {
      const sum = (a + b) | 0;
      core.N = sum < 0;
      core.Z = sum === 0;
      core.C = a + b > 0xffffffff;
      core.V = ((a ^ sum) & (b ^ sum)) < 0;
      return sum;
    },
    substractUpdateFlags(a, b) {
      const difference = (a - b) | 0;
      core.N = difference < 0;
      core.Z = difference === 0;
      core.C = a >= b;
      core.V = ((a ^ b) & (a ^ difference)) < 0;
      return difference;
    },
    cyclesIO(address, write = false) {
      const block = address >>> 28; // SIO, APB
      return block === 0xd ? 0 : block !== 4 ? 1 : write ? 4 : 3;
    },
  };
  if (wait) {
    const [cached, wait_ns] = [cache(), wait * CYCLE_ns];
    for (const name of ['readUint32', 'readUint16', 'readUint8']) {
      const read = memory[name];
      memory[name] = (address) => {
        const b = (address - FLASH) >>> 0;
        if (b < flash && !cached(b)) now[0] += wait_ns;
        return read(address);
      };
    }
  }
  Object.assign(core, memory);
  core.run = compile(core.constructor.prototype.executeInstruction.toString(), { R: core.registers, now, due, ...memory });
}
