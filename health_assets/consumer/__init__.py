"""The consumer of health documents: fetch one, judge it, and say what it means for whoever wants to use the agent.

What belongs here: the document (source 3, section 4.2), fetching it from a server that nobody vouches for, and the
decision flow of appendix A. What does not: probing many agents (`systems.survey`) and serving documents.

```python
from health_assets.consumer import advise, fetch_health

advice = advise(fetch_health("https://agent.example"), previous_status="healthy")
if advice.kind == "avoid":
    wait(advice.retry_after_s)
```
"""

from health_assets.consumer.advice import Advice, advise
from health_assets.consumer.document import HealthDocument, InvalidDocumentError, parse_document
from health_assets.consumer.fetching import Answer, fetch_health, fetch_health_async, health_url, new_client

__all__ = [
    "Advice",
    "Answer",
    "HealthDocument",
    "InvalidDocumentError",
    "advise",
    "fetch_health",
    "fetch_health_async",
    "health_url",
    "new_client",
    "parse_document",
]
