"""The views of a page: a folder a view, or a family of views; each folder of this package is one. Its __init__ names
the views, their keys in a plan and their checks of a step (plan/shows.py); html.py draws them; other files compute
their figures. All views share the files of this folder."""
