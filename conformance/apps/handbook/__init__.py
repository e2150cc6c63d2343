"""The law, the known mistakes and the errata as pages for a browser, with an anchor for each entry.

markdown.py   how entries are written: anchors, links, fields, text that is shown as it stands
documents.py  the source of every page, from spec/*.md, conformance/defects, spec/sources.md and spec/errata.md
site.py       Sphinx makes pages of them; a link that leads nowhere is an error
"""
