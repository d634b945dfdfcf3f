"""Alerts: rules that open and close incidents hour by hour, and messages that are delivered at least once.

| module | what lives there |
|---|---|
| `config` | `alerts.yaml`: rules, channels, silences and the digest's schedule, read strictly |
| `facts` | the facts of an hour about an agent, a model, an expectation or the hours themselves |
| `rules` | the rules: when an incident opens, and which hours count as good; pure |
| `incidents` | from open incidents and what an hour shows to what opens and closes; pure |
| `silences` | one silence: what it covers, what is asked of a new one; pure |
| `muting` | the effect of silences on incidents and on notices that wait; pure |
| `periodic` | when a periodic digest is due; pure |
| `collectors` | reading what an hour shows from the warehouse |
| `outbox` | incidents, outbox and judged hours in the warehouse |
| `alert_rows` | rows of these tables, from dicts |
| `silencing` | silences in the warehouse, and `Silences`, by which commands and pages add and end them |
| `digest_facts` | reading what a periodic digest tells |
| `digest_store` | writing each period's digest once |
| `evaluator` | which hours are ready, and judging them in order |
| `messages` | what a notice says, as lines and as JSON |
| `message_forms` | a message as Slack blocks and as e-mail |
| `digest_texts` | what a periodic digest says |
| `channels` | sending one message: webhook, Slack, SMTP |
| `smtp` | a session with a mail server that ends in time |
| `delivering` | the outbox: what is due, sent side by side, marked afterwards |
| `tick_runner` | all of these, as sensor and command do them |

Adding a rule: a class in `rules` and its name in `RULES`; where it looks at something new, a class in `facts` and a
function in `collectors.COLLECTORS`.
"""
