"""Being told: rules that open and close incidents hour by hour, and messages that are delivered at least once.

| module | what lives there |
|---|---|
| `config` | `alerts.yaml`: rules and channels, read strictly |
| `seen` | what an hour shows of an agent, a model, an expectation or the hours themselves |
| `rules` | the rules: when an incident opens, and which hours count as good; pure |
| `incidents` | from open incidents and what an hour shows to what opens and closes; pure |
| `observing` | reading what an hour shows from the warehouse |
| `outbox` | incidents, outbox and judged hours in the warehouse |
| `watching` | which hours are ready, and judging them in order |
| `messages` | what a notice says, as JSON, Slack blocks and e-mail |
| `channels` | sending one message: webhook, Slack, SMTP |
| `delivering` | the outbox: what is due, sent side by side, marked afterwards |
| `ticking` | both of these, as sensor and command do them |

Adding a rule: a class in `rules` and its name in `RULES`; where it looks at something new, a class in `seen` and a
function in `observing.OBSERVERS`.
"""
