"""Views as tables: values of steps, and how a load recovers from another."""

from ssdrig.plan.shows import View

VIEWS = {
    "table": View(("of", "value"), ("where", "window", "title")),
    "recovery": View(("of", "against"), ("title",), claims=True, facts={"recovery": "time until the speed is back"}),
}
