"""What a page shows of a run: a folder a view, or a family of views, found by lying here. Its __init__ names the views,
the keys that a plan gives them and what they ask of a step (plan/shows.py); html.py draws them; other files are their
figures. Files of this folder are what all views share."""
