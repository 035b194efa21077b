"""A trained run as one HTML page: nothing to install, nothing fetched, light and dark.

facts      everything that is measured for a page     baselines  what the figures stand beside
sections   the list of sections                       results, geometry, probability  the sections themselves
charts     SVG     png  heat maps     entity_map  the 2-D map     html  words and numbers, escaped
page       make_report(run): all of it put together
"""

from relwalk.report.page import make_report

__all__ = ["make_report"]
