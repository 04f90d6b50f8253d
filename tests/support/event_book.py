"""A journal that only holds its events."""


class Book:
    def __init__(self):
        self.events = []

    def event(self, kind, **fields):
        self.events.append({"kind": kind, **fields})

    def of(self, kind):
        return [event for event in self.events if event["kind"] == kind]
