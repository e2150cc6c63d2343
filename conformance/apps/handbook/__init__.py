"""The law, the known mistakes and the errata as pages for a browser, with an anchor for each entry.

markdown.py   how entries are written: anchors, links, fields, text that is shown unchanged
documents.py  the source of every page, from spec/*.md, conformance/defects, spec/sources.md and spec/errata.md
site.py       Sphinx turns them into pages; a dead link is an error
"""
