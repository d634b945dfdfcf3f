"""Pages for people: the fleet, an agent, a session and the rest, in a browser, from the endpoint's own port.

What belongs here: what each page says (a module a page), how it looks, and who sees what of it
(`scoped_history`). What does not: finding the rows (`apps.serving.history`) and recognizing callers (`apps.serving`).

A page is a `Page`: what it tells, as plain values. HTML, JSON and CSV are three ways to write the same page.
"""
