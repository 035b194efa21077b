"""A trained run as one HTML page: nothing to install, nothing fetched, light and dark. Nothing is trained for it here.

facts      everything that is measured for a page     paper    the paper's own figures
sections   the list of sections                       results, geometry, probability, theorem  themselves
charts     SVG     png  heat maps     entity_map  the 2-D map     html, templates/  words and numbers, escaped
page       write_page(run, loop): all of it put together
comparison write_comparison(comparison): several models side by side
"""
