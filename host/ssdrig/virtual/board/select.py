"""`select` of the RP2 port for the USB serial port: what a stream can do is asked of the stand-in of the stream."""

import cosim

POLLIN, POLLOUT = 1, 4


class poll:
    def __init__(self):
        self.watched = []

    def register(self, stream, events=POLLIN | POLLOUT):
        self.watched.append((stream, events))

    def ipoll(self, timeout_ms=-1, flags=0):
        cosim.spend(15_000)
        give_up = cosim.NEVER if timeout_ms < 0 else cosim.now + timeout_ms * 1_000_000
        while True:
            ready = []
            for stream, events in self.watched:
                events_ = stream.ready() & events
                if events_:
                    ready.append((stream, events_))
            if ready or cosim.now >= give_up:
                return ready
            cosim.idle(1_000_000)

    poll = ipoll
