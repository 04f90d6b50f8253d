// The state machines of rp2040js in the clock's time: with the delays of their instructions, which it steps without; and cycles in which
// all of a block only rest, wait for their queue or a pin, or count down in a loop, are taken at once, to where one does more.
const PIN = 1; // a wait for a level
const TX_FIFO = 3; // WaitType of rp2040js: a pull of an empty queue
const OUT = 5; // and an out of one
export const COUNT = 0x0040; // jmp(x_dec, 0)
const JMP_PIN = 0x00c0;
const LONG = 0x7fffffff;

export let stepped = 0; // the cycle that is being stepped, or was last

// Whether the machine begins a loop of two jumps, of which the first leaves it when the pin is high and the second counts down in X.
function ages(machine) {
  const { pio, pc, jmpPin, rp2040 } = machine;
  return (pio.instructions[pc] & 0xffe0) === JMP_PIN && pc < 31 && pc !== machine.wrapTop && pio.instructions[pc + 1] === (COUNT | pc) && !rp2040.gpio[jmpPin].inputValue;
}

// Cycles from now on in which the machine changes nothing but X; 0 if that is not sure.
function quiet(machine, rest) {
  if (rest) return rest;
  if (machine.waiting && machine.waitType === PIN) return machine.rp2040.gpio[machine.waitIndex].inputValue === machine.waitPolarity ? 0 : LONG;
  if (machine.waiting) return machine.waitType === TX_FIFO || machine.waitType === OUT ? LONG : 0; // what fills the queue ends the wait
  if (machine.execValid || machine.sidesetCount) return 0;
  if (ages(machine)) return Math.min(2 * (machine.x >>> 0), LONG);
  if (machine.pio.instructions[machine.pc] !== (COUNT | machine.pc)) return 0;
  return Math.min(machine.x >>> 0, LONG);
}

export class Stepper {
  constructor(pio) {
    pio.run = () => {}; // rp2040js would step it beside the clock
    this.pio = pio;
    this.rests = new Int32Array(pio.machines.length); // cycles that an instruction still delays
    this.at = 0; // the cycle that is next
  }

  // From now on whoever reads or writes the block's registers finds it at the cycle that `cycle()` gives; changed() when one is written.
  watch(cycle, changed) {
    const { pio } = this;
    const [read, write] = [pio.readUint32.bind(pio), pio.writeUint32.bind(pio)];
    pio.readUint32 = (offset) => (this.to(cycle()), read(offset));
    pio.writeUint32 = (offset, value) => (this.to(cycle()), changed(), write(offset, value));
  }

  // All cycles before this one
  to(cycle) {
    if (cycle <= this.at) return;
    if (!this.pio.stopped) this.run(this.at, cycle - this.at);
    this.at = cycle;
  }

  // Cycles in which no machine does what can be seen from outside, unless a register is written
  free() {
    const { pio, rests } = this;
    let free = LONG;
    for (let k = 0; !pio.stopped && free && k < rests.length; k++) {
      if (pio.machines[k].enabled) free = Math.min(free, quiet(pio.machines[k], rests[k]));
    }
    return free;
  }

  // n cycles, the first of which is `cycle`
  run(cycle, n) {
    const { rests } = this;
    const { machines } = this.pio;
    while (n > 0) {
      let free = Math.min(n, this.free());
      if (free === 0) {
        this.step(cycle);
        free = 1;
      } else {
        for (let k = 0; k < machines.length; k++) {
          const machine = machines[k];
          if (!machine.enabled) continue;
          if (rests[k]) rests[k] -= free;
          else if (!machine.waiting) {
            const loop = ages(machine);
            machine.x = (machine.x - (loop ? free >>> 1 : free)) >>> 0;
            machine.cycles += free;
            if (loop) machine.pc += free & 1;
          }
        }
        stepped = cycle + free - 1;
      }
      cycle += free;
      n -= free;
    }
  }

  step(cycle) {
    const { pio, rests } = this;
    stepped = cycle;
    for (let k = 0; k < rests.length; k++) {
      const machine = pio.machines[k];
      if (!machine.enabled) continue;
      if (rests[k]) {
        rests[k] -= 1;
        continue;
      }
      const before = machine.cycles;
      machine.step();
      rests[k] = Math.max(0, machine.cycles - before - 1);
    }
    pio.checkChangedPins();
  }
}
