// fast.mjs against rp2040js: a third of all 16-bit opcodes, and some of two halves, from registers, flags and memory of chance, and
// up to sixty in a row. Then pio.mjs against itself cycle by cycle: programs of chance. Prints how many of all were run, or what
// differed first.
//
//   node compare.mjs NODE_MODULES
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { CYCLE_ns, hurry, NOW } from './fast.mjs';
import { COUNT, Stepper } from './pio.mjs';

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
fast.core.executeInstruction = () => ((fast.due[0] = NOW), fast.core.run());

function state({ core, sram }, written) {
  const { registers, N, Z, C, V, PM, waiting, interruptsUpdated } = core;
  return JSON.stringify([[...registers], N, Z, C, V, PM, waiting, interruptsUpdated, written.map((at) => sram[at])]);
}

function run(opcode, second) {
  const at = (chance(BYTES / 4 - 64) + 32) * 4;
  const [flags, near] = [chance(16), chance(4)];
  // near: small numbers, for shifts and sums; memory; anything
  const registers = Array.from({ length: 13 }, () => [[chance(40), chance(3), ~chance(3) >>> 0][chance(3)], RAM + 1024 + chance(BYTES / 8) * 4, chance(2 ** 32), (0x10000000 + chance(2 ** 22)) >>> 0][near]);
  const written = Array.from({ length: 64 }, (_, k) => (registers[k & 7] + (k >> 3) * 4 - RAM) >>> 0).filter((x) => x < BYTES);
  const said = [slow, fast].map((mcu) => {
    const { core } = mcu;
    mcu.sramView.setUint16(at, opcode, true);
    mcu.sramView.setUint16(at + 2, second, true);
    core.registers.set([...registers, RAM + 0x20000, RAM + at + 9, RAM + at]);
    [core.N, core.Z, core.C, core.V] = [flags & 1, flags & 2, flags & 4, flags & 8].map(Boolean);
    core.PM = core.waiting = core.interruptsUpdated = false;
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

// Instructions in a row, up to where something is due
const LENGTH = 60;
for (let k = 0; k < 200; k++) {
  const program = Array.from({ length: LENGTH }, () => chance(0x4400)); // shifts, sums and logic
  const flags = chance(16);
  const registers = Array.from({ length: 8 }, () => [chance(40), chance(2 ** 32), ~chance(40) >>> 0][chance(3)]);
  const at = 4096;
  for (const { core, sramView } of [slow, fast]) {
    program.forEach((opcode, j) => sramView.setUint16(at + 2 * j, opcode, true));
    core.registers.set([...registers, 0, 0, 0, 0, 0, RAM + 0x20000, 0, RAM + at]);
    [core.N, core.Z, core.C, core.V] = [flags & 1, flags & 2, flags & 4, flags & 8].map(Boolean);
    core.interruptsUpdated = false;
  }
  const begun = fast.clock.nanos;
  const many = 1 + chance(LENGTH);
  let cycles = 0;
  for (let j = 0; j < many; j++) cycles += slow.core.executeInstruction();
  fast.due[0] = begun + cycles * CYCLE_ns;
  const last = fast.core.run(); // before the clock is read
  fast.clock.nanosCounter += last * CYCLE_ns;
  const said = [slow, fast].map((mcu) => state(mcu, []));
  if (said[0] !== said[1] || fast.clock.nanos !== begun + cycles * CYCLE_ns) {
    process.stdout.write(`${many} of ${program}: ${said[0]} but ${said[1]}, ${fast.clock.nanos - begun} ns`);
    process.exit(1);
  }
  runs++;
}

// Programs whose counts, queues and delays meet in every way: two blocks with the same, and one takes its cycles at once
const PULL = 0x80a0, X_FROM_OSR = 0xa027, IRQ = 0xc010, NOP = 0xa042, SET_PINS = 0xe000, OUT_X = 0x6020, OUT_PINS = 0x6001, WAIT_IRQ = 0x20c3, WAIT_PIN = 0x2020, JMP_PIN = 0x00c0, HIGH = 0x80;
function programs() {
  const counts = Array.from({ length: 32 }, (_, at) => [PULL, X_FROM_OSR, COUNT | at, IRQ | (chance(8) << 8), NOP | (chance(8) << 8), SET_PINS | chance(2), OUT_X | 16, OUT_PINS, WAIT_IRQ, WAIT_PIN | (HIGH * chance(2))][chance(10)]);
  for (let k = 0; k < 4; k++) {
    const at = chance(31);
    counts[at] = JMP_PIN | chance(32);
    counts[at + 1] = COUNT | at; // while the pin is low
  }
  const machines = Array.from({ length: 4 }, () => ({ enabled: chance(4) > 0, x: [0, 1, chance(50), chance(5000)][chance(4)], pc: chance(32), pull: chance(2), side: chance(6) === 0 }));
  return [counts, machines];
}
function pioState({ machines, irq, pinValues, pinDirections }) {
  const of = ({ x, y, pc, cycles, waiting, waitType, txFIFO, outputShiftCount }) => [x >>> 0, y, pc, cycles, waiting, waitType, txFIFO.itemCount, outputShiftCount];
  return JSON.stringify([machines.map(of), irq, pinValues, pinDirections]);
}
let skipped = 0;
for (let k = 0; k < 40; k++) {
  const [counts, machines] = programs();
  const [whole, single] = [made(), made()].map(({ pio: [pio] }) => {
    pio.instructions.set(counts);
    machines.forEach(({ enabled, x, pc, pull, side }, k) => {
      const machine = pio.machines[k];
      Object.assign(machine, { x, pc, outputShiftReg: 77, pinCtrl: (1 << 26) | (side << 29) | (1 << 20) });
      machine.shiftCtrl |= pull << 17;
      machine.enabled = enabled;
    });
    pio.stopped = false;
    return [new Stepper(pio), pio];
  });
  for (let cycle = 0; cycle < 20_000; ) {
    const n = [1, 2, chance(40), chance(2000)][chance(4)];
    const steps = single[0].step.bind(single[0]);
    whole[0].step = (at) => (skipped--, Stepper.prototype.step.call(whole[0], at));
    skipped += n;
    whole[0].run(cycle, n);
    for (let j = 0; j < n; j++) steps(cycle + j);
    cycle += n;
    const [to, value] = [chance(4), chance(500)];
    if (chance(2)) for (const [, pio] of [whole, single]) if (!pio.machines[to].txFIFO.full) pio.machines[to].writeFIFO(value);
    if (!chance(8)) {
      const level = chance(2) > 0;
      for (const [, pio] of [whole, single]) pio.rp2040.gpio[0].setInputValue(level);
    }
    const said = [whole, single].map(([, pio]) => pioState(pio));
    if (said[0] !== said[1]) {
      process.stdout.write(`PIO, ${n} cycles to ${cycle}: ${said[0]} but ${said[1]}`);
      process.exit(1);
    }
  }
  runs++;
}
if (skipped < 5e4) throw new Error(`only ${skipped} cycles were taken at once`);
process.stdout.write(`${runs}\n`);
