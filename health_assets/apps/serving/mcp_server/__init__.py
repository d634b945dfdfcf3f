"""The MCP server: what the pages tell, as tools for coding agents and other clients of the Model Context Protocol.

Read in this order:

- `tools`: every tool with its description; `fleet_tools`, `session_tools` and `data_tools` have what each answers.
- `backend`: the parts of the endpoint that answer, and who sees what of them.
- `calls`: a call from its arguments to its text.
- `protocol`: the SDK's server; `over_http` is `/mcp` of the endpoint, `over_stdio` is `health-assets mcp`.

What belongs here: choosing the parts of pages that a model needs, in few words. What does not: who sees which rows
(`apps.serving.pages.scoped_history`, `apps.serving.auth`), and queries (`apps.serving.pages`,
`apps.serving.reader_process`).
"""
