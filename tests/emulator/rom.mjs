// A boot ROM for rp2040js, in place of Raspberry Pi's: the tables of RP2040 data sheet 2.8.3 lead to pairs of `bkpt #n; bx lr`, and the
// breakpoint is answered here. Each function is charged about the cycles that the real one needs.

const CODE = 0x100; // where the functions begin
const FUNCTIONS = 0x40;
const DATA = 0xa0;
const FLOATS = 0x300;

const bits = new DataView(new ArrayBuffer(8));
const toFloat = (word) => (bits.setUint32(0, word), bits.getFloat32(0));
const fromFloat = (x) => (bits.setFloat32(0, x), bits.getUint32(0));
const toDouble = (low, high) => (bits.setUint32(0, high), bits.setUint32(4, low), bits.getFloat64(0));
const clamp = (x, low, high) => Math.min(high, Math.max(low, Math.floor(x)));

const popcount = (x) => (x ? (x & 1) + popcount(x >>> 1) : 0);
const reverse = (x) => parseInt((x >>> 0).toString(2).padStart(32, '0').split('').reverse().join(''), 2);

function copy(mcu, r, word) {
  const { core } = mcu; // hurry() knows where memory is
  for (let k = 0; k < r[2]; k++) core.writeUint8(r[0] + k, core.readUint8(r[1] + k));
  return 30 + (word || (r[0] & 3) === (r[1] & 3) ? r[2] >>> 1 : 5 * r[2]);
}

function fill(mcu, r) {
  for (let k = 0; k < r[2]; k++) mcu.core.writeUint8(r[0] + k, r[1] & 255);
  return 30 + (r[2] >>> 1);
}

const put = (r, value) => ((r[0] = value >>> 0), 0);
const pair = (r, big) => ((r[0] = Number(big & 0xffffffffn)), (r[1] = Number((big >> 32n) & 0xffffffffn)), 0);
const float2 = (f) => (mcu, r) => (put(r, fromFloat(f(toFloat(r[0]), toFloat(r[1])))), 60);
const from64 = (r, signed) => Number((signed ? BigInt.asIntN : BigInt.asUintN)(64, (BigInt(r[1]) << 32n) | BigInt(r[0])));

function compare(mcu, r) {
  const [a, b] = [toFloat(r[0]), toFloat(r[1])];
  put(r, a < b ? -1 : a > b ? 1 : 0);
  return 40;
}

function flags(mcu, r) {
  const [a, b] = [toFloat(r[0]), toFloat(r[1])];
  mcu.core.N = a < b;
  mcu.core.Z = a === b;
  mcu.core.C = !(a < b);
  mcu.core.V = false;
  return 40;
}

const NOTHING = () => 0;
const missing = (what) => () => {
  throw new Error(`the boot ROM's ${what} is not modelled`);
};

// By the table's two letters; (mcu, registers) -> cycles
const BY_CODE = {
  P3: (mcu, r) => (put(r, popcount(r[0])), 14),
  R3: (mcu, r) => (put(r, reverse(r[0])), 14),
  L3: (mcu, r) => (put(r, Math.clz32(r[0])), 14),
  T3: (mcu, r) => (put(r, r[0] ? 31 - Math.clz32(r[0] & -r[0]) : 32), 14),
  MC: (mcu, r) => copy(mcu, r, false),
  C4: (mcu, r) => copy(mcu, r, true),
  MS: fill,
  S4: fill,
  IF: NOTHING,
  EX: NOTHING,
  FC: NOTHING,
  CX: NOTHING,
  RE: (mcu, r) => (mcu.flash.fill(0xff, r[0], r[0] + r[1]), (r[1] >>> 12) * 5_000_000), // 40 ms a sector
  RP: (mcu, r) => {
    for (let k = 0; k < r[2]; k++) mcu.flash[r[0] + k] &= mcu.readUint8(r[1] + k);
    return (r[2] >>> 8) * 50_000; // 0.4 ms a page
  },
  UB: missing('reset to USB boot'),
};

// In the order of the soft float table (data sheet 2.8.3.2)
const FLOAT = [
  float2((a, b) => a + b),
  float2((a, b) => a - b),
  float2((a, b) => a * b),
  float2((a, b) => a / b),
  compare,
  flags,
  float2((a) => Math.sqrt(a)),
  (mcu, r) => (put(r, clamp(toFloat(r[0]), -(2 ** 31), 2 ** 31 - 1)), 40),
  missing('float2fix'),
  (mcu, r) => (put(r, clamp(toFloat(r[0]), 0, 2 ** 32 - 1)), 40),
  missing('float2ufix'),
  (mcu, r) => (put(r, fromFloat(r[0] | 0)), 40),
  missing('fix2float'),
  (mcu, r) => (put(r, fromFloat(r[0])), 40),
  missing('ufix2float'),
  float2((a) => Math.cos(a)),
  float2((a) => Math.sin(a)),
  float2((a) => Math.tan(a)),
  missing('sincos'),
  float2((a) => Math.exp(a)),
  float2((a) => Math.log(a)),
  compare,
  float2((a, b) => Math.atan2(a, b)),
  (mcu, r) => (put(r, fromFloat(from64(r, true))), 60),
  missing('fix642float'),
  (mcu, r) => (put(r, fromFloat(from64(r, false))), 60),
  missing('ufix642float'),
  (mcu, r) => (pair(r, BigInt(Math.floor(toFloat(r[0])))), 60),
  missing('float2fix64'),
  (mcu, r) => (pair(r, BigInt(Math.max(0, Math.floor(toFloat(r[0]))))), 60),
  missing('float2ufix64'),
  (mcu, r) => (bits.setFloat64(0, toFloat(r[0])), (r[1] = bits.getUint32(0)), (r[0] = bits.getUint32(4)), 40),
];

const letters = (code) => code.charCodeAt(0) | (code.charCodeAt(1) << 8);

// Fills mcu.bootrom. Returns answer(breakpoint) -> cycles to charge.
export function install(mcu) {
  const rom = new DataView(mcu.bootrom.buffer);
  const handlers = [];
  const add = (handler) => {
    const at = CODE + 4 * handlers.length;
    rom.setUint16(at, 0xbe00 | handlers.length, true);
    rom.setUint16(at + 2, 0x4770, true);
    handlers.push(handler);
    return at | 1;
  };
  const table = (at, entries) => {
    for (const [code, address] of entries) {
      rom.setUint16(at, letters(code), true);
      rom.setUint16(at + 2, address, true);
      at += 4;
    }
    if (at > CODE) throw new Error('the table does not fit');
  };
  rom.setUint32(0x10, 0x0201754d, true); // 'M', 'u', 1, version 2
  rom.setUint16(0x14, FUNCTIONS, true);
  rom.setUint16(0x16, DATA, true);
  const lookup = (m, r) => {
    let at = r[0];
    while (m.readUint16(at) && m.readUint16(at) !== r[1]) at += 4;
    put(r, m.readUint16(at) ? m.readUint16(at + 2) : 0);
    return 60;
  };
  rom.setUint16(0x18, add(lookup), true);
  table(FUNCTIONS, Object.entries(BY_CODE).map(([code, handler]) => [code, add(handler)]));
  rom.setUint8(FLOATS - 2, 32); // words of the tables below
  FLOAT.forEach((handler, k) => rom.setUint32(FLOATS + 4 * k, add(handler), true));
  const doubles = FLOATS + 0x88;
  rom.setUint8(doubles - 2, 32);
  for (let k = 0; k < 32; k++) rom.setUint32(doubles + 4 * k, add(missing(`double function ${k}`)), true);
  table(DATA, [['SF', FLOATS], ['SD', doubles]]);
  return (number) => handlers[number](mcu, mcu.core.registers);
}
