// A weather agent made with the Vercel AI SDK, traced as its docs say: node vercel_ai.mjs <flavour> <scenario> <out> <base_url>
//
// AI SDK 6 is traced by `experimental_telemetry`, AI SDK 7 by the OpenTelemetry integration of `@ai-sdk/otel`. The official
// JavaScript SDK sends the spans as OTLP/HTTP JSON to a collector in this program, which appends each request's body as a line.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import * as ai from 'ai';
import { z } from 'zod';

const [flavour, scenario, out, baseUrl] = process.argv.slice(2);
const isSeven = 'registerTelemetry' in ai;

const collector = createServer((request, response) => {
  const pieces = [];
  request.on('data', piece => pieces.push(piece));
  request.on('end', () => {
    appendFileSync(out, `${Buffer.concat(pieces)}\n`);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
});
await new Promise(resolve => collector.listen(0, '127.0.0.1', resolve));

const exporter = new OTLPTraceExporter({ url: `http://127.0.0.1:${collector.address().port}/v1/traces` });
const processor = flavour === 'openinference'
  ? new (await import('@arizeai/openinference-vercel')).OpenInferenceBatchSpanProcessor({ exporter })
  : new BatchSpanProcessor(exporter);
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'weather-service', 'service.version': '1.4.0' }),
  spanProcessors: [processor],
});
provider.register();
if (isSeven) {
  const { OpenTelemetry } = await import('@ai-sdk/otel');
  ai.registerTelemetry(new OpenTelemetry({ runtimeContext: true }));
}

const openai = createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'none' });
const model = name => openai.chat(name);
const script = (...turns) => `\n[[\n${turns.join('\n')}\n]]`;

// What AI SDK 6 takes as `experimental_telemetry`, AI SDK 7 takes as `telemetry` and a context to include.
function traced(functionId, metadata) {
  if (!isSeven) return { experimental_telemetry: { isEnabled: true, functionId, metadata } };
  const included = Object.fromEntries(Object.keys(metadata ?? {}).map(key => [key, true]));
  return { runtimeContext: metadata, telemetry: { functionId, includeRuntimeContext: included } };
}

const getWeather = ai.tool({
  description: 'Tells the weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    if (city === 'Atlantis') throw new Error('there is no such city');
    return 'sunny';
  },
});

const askForecaster = ai.tool({
  description: 'Asks the forecaster.',
  inputSchema: z.object({ question: z.string() }),
  execute: async ({ question }) => {
    const { text } = await ai.generateText({
      model: model('gpt-4o'),
      prompt: question,
      ...traced('forecaster'),
    });
    return text;
  },
});

const asked = (prompt, metadata, tools = { get_weather: getWeather }) => ({
  model: model('gpt-4o-mini'),
  tools,
  stopWhen: ai.stepCountIs ? ai.stepCountIs(5) : ai.isStepCount(5),
  prompt,
  ...traced('weather-agent', metadata),
});
const question = 'What is the weather?';
const good = question + script('call get_weather {"city": "Oslo"}', 'say It is sunny.');

async function told(streamed) {
  for await (const _ of streamed.textStream);
}

const scenarios = {
  async good() {
    await ai.generateText(asked(good));
    await ai.generateText(asked(good));
  },
  async crash_model() {
    await ai.generateText(asked(question + script('error 500 the model is down')));
  },
  async recovered() {
    await ai.generateText(asked(question + script('call get_weather {"city": "Atlantis"}', 'say I do not know.')));
  },
  async nested() {
    const inner = `Tomorrow?${script('say It will rain.')}`;
    const call = `call ask_forecaster ${JSON.stringify({ question: inner })}`;
    await ai.generateText(asked(question + script(call, 'say It will rain.'), undefined, { ask_forecaster: askForecaster }));
  },
  async session() {
    await ai.generateText(asked(good, { sessionId: 'conversation-7' }));
    await ai.generateText(asked(good, { sessionId: 'conversation-7' }));
  },
  async streaming() {
    await told(ai.streamText(asked(good)));
  },
  async crash_streaming() {
    await told(ai.streamText({ ...asked(question + script('error 400 the prompt is refused')), onError() {} }));
  },
  // The agent as an object with an id of its own.
  async agent_class() {
    const { prompt, ...settings } = asked(good);
    await new ai.ToolLoopAgent({ id: 'weather-agent', ...settings }).generate({ prompt });
  },
  // Nobody names the function: as the first page of the docs has it.
  async unnamed() {
    const { experimental_telemetry, telemetry, ...settings } = asked(good);
    await ai.generateText({ ...settings, ...traced(undefined) });
  },
};

try {
  await scenarios[scenario]();
} catch (error) {
  if (!scenario.startsWith('crash')) throw error;
} finally {
  await provider.shutdown();
  collector.close();
}
