"""The documentation site: the pages of docs/ and of the commands, built with Zensical.

build        copies the pages, adds those of the commands, runs Zensical
reference    a page for each command, from its parser
figures      fills the measured figures of the pages from docs/figures.json
page_links   finds broken links and anchors
navigation   the order of the pages
"""
