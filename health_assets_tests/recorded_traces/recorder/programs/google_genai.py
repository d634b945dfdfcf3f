"""Google's client of Gemini, without an agent: calls of the model, and the client's own loop that calls Python functions."""

from google.genai import Client, types
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

MODEL = "gemini-2.5-flash"
QUESTION = "What is the weather in Oslo?"
SUNNY = "It is sunny in Oslo."
REFUSED = "the prompt is refused"
FAIL = f"error 400 {REFUSED}"


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor

    GoogleGenAIInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.google_generativeai import GoogleGenerativeAiInstrumentor

    GoogleGenerativeAiInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor

    GoogleGenAiSdkInstrumentor().instrument(tracer_provider=provider)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def client(url: str) -> Client:
    """A client; who uses it has to hold it, since it closes itself when it is let go."""
    return Client(api_key=NO_KEY, http_options=types.HttpOptions(base_url=url))


def good(url: str) -> None:
    for _ in range(2):
        asking = client(url)
        answer = asking.models.generate_content(model=MODEL, contents=QUESTION + script(f"say {SUNNY}"))
        must_be(answer.text, SUNNY)


def crash_model(url: str) -> None:
    asking = client(url)
    must_fail(lambda: asking.models.generate_content(model=MODEL, contents=QUESTION + script(FAIL)), REFUSED)


def streaming(url: str) -> None:
    asking = client(url)
    chunks = asking.models.generate_content_stream(model=MODEL, contents=QUESTION + script(f"say {SUNNY}"))
    must_be("".join(chunk.text or "" for chunk in chunks), SUNNY)


def crash_streaming(url: str) -> None:
    asking = client(url)

    def read() -> None:
        for _ in asking.models.generate_content_stream(model=MODEL, contents=QUESTION + script(FAIL)):
            pass

    must_fail(read, REFUSED)


def tools(url: str) -> None:
    asking = client(url)
    answer = asking.models.generate_content(
        model=MODEL,
        contents=QUESTION + script('call get_weather {"city": "Oslo"}', f"say {SUNNY}"),
        config=types.GenerateContentConfig(tools=[get_weather]),
    )
    must_be(answer.text, SUNNY)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "openllmetry": openllmetry, "otel": otel},
        {
            "good": good,
            "crash_model": crash_model,
            "streaming": streaming,
            "crash_streaming": crash_streaming,
            "tools": tools,
        },
    )
