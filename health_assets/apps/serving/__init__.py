"""The health endpoint (source 3, sections 4, 7 and 8): every agent's health document, and JSON lists of the scores.

Two kinds of process. The server holds a `snapshot` of the newest hour in memory and answers from it alone; it never
opens the warehouse. The `reader_process`, at low priority, reads the warehouse, makes the JSON and hands it over as one
Arrow file. So neither a lock, nor a long query, nor a crash of the database reaches a request.

| module | what lives there |
|---|---|
| `documents` | what the JSON of an agent says, declared once and compiled to SQL |
| `reader_process` | the process that reads the warehouse |
| `snapshot` | the newest hour in memory: look up, filter, sort |
| `listing`, `list_files`, `team_lists` | lists of tools and usage: in memory, as they are written, cut to teams |
| `ownership`, `aggregates` | whose the agents are, and which aggregates would tell about a personal one |
| `refresher` | replacing the snapshot, and how old it is |
| `repeating` | the thread that does something again and again: refreshing, and, on another one, reading the tokens |
| `sessions` | answers about one session, asked of a reader and kept for a minute |
| `session_runs`, `run_traces`, `trace_question` | the runs of a session, the spans of a run |
| `log_lines` | a line of a log |
| `history`, `pages`, `mcp_server` | the hours that pages show, the pages for people, the tools for coding agents |
| `answers` | HTTP answers: ETag, 304, problems |
| `auth`, `hosts`, `access_scope` | who asks, and the `AccessScope` of a role; which names of this host are answered |
| `pages.scoped_history` | `ScopedHistory`: the history without rows of agents that are not the caller's |
| `middleware` | what happens before routing: host, caller, rate limit, method, body, health documents |
| `forms`, `sign_ins` | the forms of pages as HTTP brings them; browsers that are signed in |
| `startup_publishing` | publishing what no run did, when a server starts |
| `writer_process`, `process_loop` | the process that makes a change for a page; how both processes are asked |
| `metrics`, `fleet_facts`, `request_counts` | `/metrics`, what a reader gathers for it, counting requests |
| `quotas`, `rate_limit` | how much one client may hold and ask for |
| `access_log` | who asked for what |
| `protocol` | limits on slow and large requests |
| `schemas`, `routes`, `app`, `docs_page` | the FastAPI application and its OpenAPI document |
| `server` | the server of the endpoint |
| `listening` | listening, TLS, starting and stopping, of this server and the collector's (`collecting`) |
"""
