"""The history behind the pages: copies of what the warehouse said of each hour, kept where a page finds them at once.

What belongs here: which rows are copied (`datasets`), their layout on disk (`layout`), copying them (`exporter`, in a
process beside the server), keeping them new (`updater`) and looking them up (`reading`). What does not: what a page
shows of them (`apps.serving.pages`).

A page must neither hold up a writer of the warehouse nor wait for one. So it never asks the warehouse: it reads files
that never change once they are there.
"""
