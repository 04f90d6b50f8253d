// rp2040js runs an instruction by asking of each kind in turn whether it is this one: seventy questions for the last. Here the same
// code, taken from its own text, is reached at once by a table of all 16-bit opcodes; and memory is looked up before peripherals.

const RAM = 0x20000000;
const FLASH = 0x10000000;
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

// The body of executeInstruction: after its own head, one switch.
function compile(text) {
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
  const code = `return function () {${begin}switch (kinds[opcode]) {\n${cases}\ndefault: ${halves}{\n${otherwise}} }\n${tail}`;
  return new Function('kinds', ...Object.keys(SCOPE), code)(kinds, ...Object.values(SCOPE));
}

// Makes the core of mcu fast. What it does, and the cycles that it counts, stay those of rp2040js.
export function hurry(mcu) {
  const { core, sramView, flashView } = mcu;
  const [ram, flash] = [sramView.byteLength, flashView.byteLength];
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
  core.executeInstruction = compile(core.constructor.prototype.executeInstruction.toString());
}
