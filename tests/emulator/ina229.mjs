// Texas Instruments INA229 (SLYS023): the INA228 of ina228.mjs behind an SPI block of rp2040js, with a chip select each.
//
// chips: GPIO of the chip select -> INA228, whose `current_read_ns` will hold the moments at which CURRENT is taken. lowOf(gpio, told):
// told(whether the pin is low) at each change. A byte takes eight clocks of the rate that the block's own registers make.
export function wireSpi(block, clock, chips, lowOf) {
  let chip = null;
  let first = null; // byte of the frame: register << 2 | read
  let out = [];
  let written = [];
  for (const [gpio, its] of Object.entries(chips)) {
    its.registers[0x3f] = 0x2291;
    its.current_read_ns = [];
    lowOf(gpio, (low) => {
      if (low) {
        if (chip) throw new Error('two chips are selected');
        [chip, first, written] = [its, null, []];
      } else if (chip === its) {
        if (block.busy) throw new Error('the chip select rises while the block is busy');
        if (first !== null && !(first & 1)) {
          if (written.length !== 2) throw new Error(`a write of ${written.length} bytes`);
          its.write(first >> 2, (written[0] << 8) | written[1]);
        } else if (first !== null && out.length) throw new Error(`a read ends ${out.length} bytes early`);
        chip = null;
      }
    });
  }
  let back = 0;
  const alarm = clock.createAlarm(() => {
    alarm.scheduled = false;
    block.completeTransmit(back);
  });
  block.onTransmit = (byte) => {
    if (!chip) throw new Error('the block clocks while no chip is selected');
    if (block.spiMode !== 1 || block.clockFrequency > 10e6) throw new Error(`mode ${block.spiMode}, ${block.clockFrequency} Hz`);
    back = 0;
    if (first === null) {
      first = byte;
      chip.pointer = byte >> 2;
      if (byte & 1) out = chip.bytes();
      if (byte === ((7 << 2) | 1)) chip.current_read_ns.push(clock.nanos);
    } else if (first & 1) {
      if (!out.length) throw new Error('a read is longer than its register');
      back = out.shift();
    } else written.push(byte);
    alarm.schedule(8e9 / block.clockFrequency);
  };
}
