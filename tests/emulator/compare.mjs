// fast.mjs against rp2040js: a third of all 16-bit opcodes, and some of two halves, from registers, flags and memory of chance. Prints how
// many were run, or what differed first.
//
//   node compare.mjs NODE_MODULES
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { hurry } from './fast.mjs';

const { RP2040, ConsoleLogger, LogLevel } = createRequire(join(resolve(process.argv[2]), 'x.js'))('rp2040js');
const RAM = 0x20000000;
const BYTES = 264 << 10;

console.log = console.warn = () => {}; // addresses of chance are no peripherals
let seed = 1;
const chance = (n) => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32) * n >>> 0;

function made() {
  const mcu = new RP2040();
  mcu.logger = new ConsoleLogger(LogLevel.Error, false);
  mcu.logger.error = mcu.logger.warn = () => {};
  mcu.onBreak = () => {};
  return mcu;
}

const [slow, fast] = [made(), made()];
hurry(fast);
if (fast.core.executeInstruction === slow.core.executeInstruction) throw new Error('nothing was made fast');

function state({ core, sram }, written) {
  const { registers, N, Z, C, V, PM, waiting, cycles, interruptsUpdated } = core;
  return JSON.stringify([[...registers], N, Z, C, V, PM, waiting, cycles, interruptsUpdated, written.map((at) => sram[at])]);
}

function run(opcode, second) {
  const at = (chance(BYTES / 4 - 64) + 32) * 4;
  const [flags, near] = [chance(16), chance(4)];
  // near: small numbers, for shifts and sums; memory; anything
  const registers = Array.from({ length: 13 }, () => [chance(40), RAM + 1024 + chance(BYTES / 8) * 4, chance(2 ** 32), (0x10000000 + chance(2 ** 22)) >>> 0][near]);
  const written = Array.from({ length: 64 }, (_, k) => (registers[k & 7] + (k >> 3) * 4 - RAM) >>> 0).filter((x) => x < BYTES);
  const said = [slow, fast].map((mcu) => {
    const { core } = mcu;
    mcu.sramView.setUint16(at, opcode, true);
    mcu.sramView.setUint16(at + 2, second, true);
    core.registers.set([...registers, RAM + 0x20000, RAM + at + 9, RAM + at]);
    [core.N, core.Z, core.C, core.V] = [flags & 1, flags & 2, flags & 4, flags & 8].map(Boolean);
    core.PM = core.waiting = core.interruptsUpdated = false;
    core.cycles = 0;
    let n = -1;
    try {
      n = core.executeInstruction();
    } catch (error) {
      n = error.message;
    }
    return `${n} ${state(mcu, written)}`;
  });
  if (said[0] !== said[1]) {
    process.stdout.write(`${opcode.toString(16)} ${second.toString(16)}: ${said[0]} but ${said[1]}`);
    process.exit(1);
  }
}

let runs = 0;
const both = (opcode, second) => (runs++, run(opcode, second));
for (let opcode = 0; opcode < 1 << 16; opcode += 3) both(opcode, chance(1 << 16));
for (let k = 0; k < 2000; k++) both(0xf000 | chance(2048), 0xd000 | chance(1 << 16)); // BL
for (let k = 0; k < 2000; k++) {
  const [opcode, second] = [[0xf3bf, 0x8f40 + 16 * chance(3)], [0xf3ef, 0x8000 | chance(4096)], [0xf380 | chance(16), 0x8800 | chance(32)]][chance(3)];
  both(opcode, second); // barriers, MRS, MSR
}
process.stdout.write(`${runs}\n`);
