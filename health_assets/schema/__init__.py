"""The tables' declarations: how columns are declared, the tables that all systems share, and the catalog of all.

What belongs here: names, columns, types, units and meaning. What does not: how rows come about (`logs`, `systems`),
what must be true of them (`quality`), and how a database spells them (`warehouse`). Tables of one scoring system alone
are in its own folder.
"""
