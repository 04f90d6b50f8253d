// A Raspberry Pi Pico with real MicroPython: the RP2040 of rp2040js with what that lacks (rom.mjs, usb.mjs) and sensors on I2C0 or SPI0.
//
//   node board.mjs NODE_MODULES FIRMWARE.uf2 [SENSORS [GPIOS [FILES [WAIT]]]]
//
// NODE_MODULES: the folder that has rp2040js. SENSORS: JSON, [{"address", "alert" (GPIO), "fast_ppm"}], INA228s; with "cs" (GPIO)
// an INA229; with "pulses", {"every_us", "low_us": [..]}, something else pulls ALERT low so often, for so long in turn. GPIOS: JSON, outputs that are recorded. FILES: an image of the board's file system (files.py), which ends with the flash.
// stdin and stdout are the board's USB serial port. When stdin ends the board is switched off and a report is written to stderr, JSON.
// An instruction takes the cycles that rp2040js counts. WAIT: cycles more for each line of flash that is not in the cache (fast.mjs); 0: none.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { wireAdc } from './adc.mjs';
import { INA228, wire } from './ina228.mjs';
import { wireSpi } from './ina229.mjs';
import { CYCLE_ns, hurry, NOW } from './fast.mjs';
import { stepped, Stepper } from './pio.mjs';
import { install } from './rom.mjs';
import { Host } from './usb.mjs';

const [modules, uf2, sensorsText = '[{"address": 64, "alert": 6}]', gpiosText = '[]', files = '', wait = '0'] = process.argv.slice(2);
const { RP2040, USBCDC, GPIOPinState, ConsoleLogger, LogLevel } = createRequire(join(resolve(modules), 'x.js'))('rp2040js');
const FLASH_BYTES = 2 << 20; // of a Pico
const SLICE_ns = 1_000_000; // of emulated time between two looks at stdin

const mcu = new RP2040();
mcu.logger = new ConsoleLogger(LogLevel.Error);
const { clock, core } = mcu;

// Boot ROM functions that still take time, the last one first to end: {depth: exceptions open when it began, cycles}. What it does is done
// at its begin; an interrupt comes when it is due all the same.
const functions = [];
const LOOK = 16; // cycles from one look for an interrupt to the next
const answer = install(mcu);
mcu.onBreak = (number) => {
  functions.push({ depth: open.length, cycles: answer(number) });
  mcu.due[0] = NOW;
};

const image = readFileSync(uf2);
for (let at = 0; at < image.length; at += 512) {
  const block = image.subarray(at, at + 512);
  if (block.readUInt32LE(0) !== 0x0a324655) throw new Error(`${uf2} is no UF2 file`);
  mcu.flash.set(block.subarray(32, 32 + block.readUInt32LE(16)), block.readUInt32LE(12) - 0x10000000);
}
if (files) {
  const image = readFileSync(files);
  mcu.flash.set(image, FLASH_BYTES - image.length);
}
mcu.qspi[1].padValue = 0x5a; // as after a reset: an input, pulled up
mcu.qspi[1].setInputValue(true); // BOOTSEL is not held
hurry(mcu, Number(wait));
core.SP = 0x20041f00;
core.LR = 0; // the second stage of the boot then starts the program
core.PC = 0x10000000;

const chips = JSON.parse(sensorsText).map(({ address, alert, fast_ppm, cs, pulses }) => {
  const pin = mcu.gpio[alert];
  let [level, chips, pulled] = [true, true, false];
  pin.setInputValue(true);
  const settle = () => {
    if ((chips && !pulled) === level) return;
    for (const stepper of steppers) stepper.to(cycle()); // machines that look at the pin
    mcu.due[0] = NOW;
    pin.setInputValue((level = !level));
  };
  const drive = (up) => {
    chips = up;
    settle();
  };
  let count = 0;
  const pulse = clock.createAlarm(() => {
    pulse.scheduled = false;
    const low_us = pulses.low_us[(count >> 1) % pulses.low_us.length];
    pulled = !(count++ & 1);
    pulse.schedule(1000 * (pulled ? low_us : pulses.every_us - low_us));
    settle();
  });
  if (pulses) pulse.schedule(1000 * pulses.every_us);
  return [address, new INA228(clock, drive, fast_ppm), cs];
});
wire(mcu.i2c[0], clock, CYCLE_ns, Object.fromEntries(chips.filter(([, , cs]) => cs === undefined)));
wireSpi(mcu.spi[0], clock, Object.fromEntries(chips.filter(([, , cs]) => cs !== undefined).map(([, chip, cs]) => [cs, chip])), (gpio, told) =>
  mcu.gpio[gpio].addListener((state) => told(GPIOPinState[state] === 'Low')),
);

wireAdc(mcu.adc, clock);

const changes = []; // [cycle of the state machines, GPIO, level]
for (const gpio of JSON.parse(gpiosText)) {
  mcu.gpio[gpio].addListener((state) => changes.push([stepped, gpio, GPIOPinState[state]]));
}

// Time that each exception takes, from its entry to its return; one that interrupts another counts in both.
const interrupts = {};
const open = [];
const [enter, leave] = [core.exceptionEntry.bind(core), core.exceptionReturn.bind(core)];
core.exceptionEntry = (number) => {
  open.push([number, clock.nanos]);
  enter(number);
};
core.exceptionReturn = (value) => {
  const [number, began] = open.pop();
  const us = (clock.nanos - began) / 1000;
  const seen = (interrupts[number] ??= { count: 0, total_us: 0, most_us: 0 });
  seen.count += 1;
  seen.total_us += us;
  seen.most_us = Math.max(seen.most_us, us);
  leave(value);
};

const steppers = mcu.pio.map((pio) => new Stepper(pio));
const cycle = () => clock.nanosCounter / CYCLE_ns;
for (const stepper of steppers) stepper.watch(cycle, () => (mcu.due[0] = NOW));
const { dma } = mcu;
const write = dma.writeUint32.bind(dma);
dma.writeUint32 = (offset, value) => ((mcu.due[0] = NOW), write(offset, value));
const fed = () => !mcu.pio[0].stopped && dma.channels.some((channel) => channel.active); // a ramp: DMA sends in the cycle in which a machine asks

function advance(n) {
  const begun = clock.nanosCounter;
  while ((clock.nextAlarm?.nanos ?? Infinity) < begun) { // flash made the core pass it
    clock.nanosCounter = clock.nextAlarm.nanos;
    for (const stepper of steppers) stepper.to(Math.ceil(cycle()));
    clock.tick(0);
  }
  clock.nanosCounter = begun;
  const least = n > 1 && fed() ? 1 : n;
  for (; n > 0; n -= least) {
    for (const stepper of steppers) stepper.to(cycle() + least);
    clock.tick(least * CYCLE_ns);
  }
}

// When instructions must pause: before an alarm, a machine that acts, the next look at stdin
function pause(until) {
  if (fed()) return NOW;
  const free = Math.min(steppers[0].free(), steppers[1].free());
  return Math.min(until, clock.nextAlarm?.nanos ?? until, clock.nanosCounter + free * CYCLE_ns);
}

const sent = []; // packets of this slice: one write for all
const host = new Host(mcu, USBCDC, (bytes) => sent.push(bytes));
let ended = false;
process.stdin.on('data', (bytes) => host.send(bytes));
process.stdin.on('end', () => (ended = true));
const started = process.hrtime.bigint();

function run() {
  const until = clock.nanos + SLICE_ns;
  while (clock.nanos < until) {
    if (core.waiting) {
      const idle_ns = Math.min(clock.nanosToNextAlarm || SLICE_ns, until - clock.nanos);
      advance(Math.max(1, Math.ceil(idle_ns / CYCLE_ns)));
    } else if (functions.at(-1)?.depth === open.length) {
      const last = functions.at(-1);
      const n = Math.min(last.cycles, Math.max(1, Math.min(LOOK, Math.ceil(clock.nanosToNextAlarm / CYCLE_ns) || LOOK)));
      advance(n);
      last.cycles -= n;
      if (!last.cycles) functions.pop();
      if (core.interruptsUpdated) core.checkForInterrupts();
    } else {
      mcu.due[0] = pause(until);
      advance(core.run());
    }
  }
  if (sent.length) process.stdout.write(Buffer.concat(sent.splice(0)));
  if (ended) {
    const sensors = chips.map(([address, chip]) => {
      const { number, unread_ns, edges, current_read_ns } = chip;
      return { address, conversions: number + 1, unread_ns, edges_ns: edges, current_read_ns };
    });
    process.stderr.write(JSON.stringify({ emulated_s: clock.nanos / 1e9, sensors, changes, interrupts }));
    return;
  }
  const ahead_ms = (clock.nanos - Number(process.hrtime.bigint() - started)) / 1e6;
  if (ahead_ms > 0) setTimeout(run, ahead_ms); // an idle board does not run ahead of the host
  else setImmediate(run);
}

run();
