"""A test as data: one TOML file (plans/*.toml), read by grammar.py, made into a flat list of steps for one drive by
expand.py, proven by state.py, priced by cost.py, run by run/engine.py. schemas/plan.md defines its keys."""
