"""A trained run as one HTML page: nothing to install, nothing fetched, light and dark.

facts      everything that is measured for a page     baselines  what the figures stand beside
learned_back   the closed loop: a known model learned from its graph
sections   the list of sections                       results, geometry, probability, theorem  themselves
charts     SVG     png  heat maps     entity_map  the 2-D map     html  words and numbers, escaped
page       make_report(run): all of it put together
"""

from relwalk.report.page import make_report

__all__ = ["make_report"]
