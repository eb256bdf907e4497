import {
  type Attributes,
  type Context,
  DiagLogLevel,
  diag,
  type HrTime,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { TraceConfig } from '../config/read-config.ts'
import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { formatUsd } from '../kernel/money.ts'
import { VERSION } from '../kernel/runtime.ts'
import { PRICE_TERMS } from '../pricing/modifiers.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import type { EndedCall } from './call-log.ts'

/** Writes a span when a call ends, by the GenAI conventions. Loaded only if it is configured: that takes 0.1 s. */
export function openTraces({ sampler, ratio, batch }: TraceConfig, warn: (problem: string) => void) {
  const warnShort = (problem: string) => warn(shortenProblem(problem))
  const logger = { error: warnShort, warn: warnShort, info() {}, debug() {}, verbose() {} }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const own = resourceFromAttributes({ 'service.name': 'tollgate', 'service.version': VERSION })
  const detectors = [resourceAttributesEnvDetector, serviceNameEnvDetector]
  const provider = new TracerProvider({
    resource: defaultResource().merge(own).merge(detectResources({ detectors })),
    sampler: samplerOf(sampler, ratio),
    // The SDK reads the variables of the exporter itself, but not those of the batches.
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), ...batch })],
  })
  const tracer = provider.getTracer('tollgate', VERSION)
  return {
    observe(call: EndedCall): void {
      const begun = { kind: SpanKind.CLIENT, startTime: hrTime(call.endedAtMs - call.ms) }
      const attributes = attributesOf(call)
      const span = tracer.startSpan(spanName(call), { ...begun, attributes }, parentOf(call.headers))
      if (attributes['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(hrTime(call.endedAtMs))
    },
    close: () => provider.shutdown(),
  }
}

export type Traces = ReturnType<typeof openTraces>

const PROBLEM_CHARS_MAX = 300

/** Message and code of an error of the SDK, which also has a stack and the collector's whole answer. */
function shortenProblem(problem: string): string {
  let text = String(problem)
  try {
    const { message, code } = JSON.parse(text) as Record<string, unknown>
    if (message !== undefined) text = code === undefined ? String(message) : `${message} (${code})`
  } catch {}
  return text.length > PROBLEM_CHARS_MAX ? `${text.slice(0, PROBLEM_CHARS_MAX)}…` : text
}

function samplerOf(name: TraceConfig['sampler'], ratio: number): Sampler {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

/** A pair, because the SDK could mistake a number for `performance.now()`. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)]
}

const TRACE_PARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/

/** The caller's span, from `traceparent`. Without a valid header the trace begins here. */
function parentOf(headers: RawHeaders): Context {
  const values = valuesOf(headers, 'traceparent')
  const [, traceId, spanId, flags] = TRACE_PARENT.exec(values.length === 1 ? (values[0] ?? '') : '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT
  const traceFlags = Number.parseInt(flags, 16) & 1
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

/** The operation name by usage reader. The conventions do not name the others. */
const OPERATIONS: Readonly<Partial<Record<UsageReader, string>>> = {
  messages: 'chat',
  chat: 'chat',
  responses: 'chat',
  realtime: 'chat',
  compaction: 'chat',
  completions: 'text_completion',
  embeddings: 'embeddings',
}

function operationOf({ endpoint }: EndedCall): string | null {
  return endpoint?.billing === 'metered' ? (OPERATIONS[endpoint.usage] ?? 'generate_content') : null
}

function spanName(call: EndedCall): string {
  const operation = operationOf(call)
  if (operation !== null) return call.modelAsked === null ? operation : `${operation} ${call.modelAsked}`
  return call.endpoint === null ? call.method : `${call.method} ${call.endpoint.template}`
}

/** Attributes are names, figures and ids, never content. An attribute without a value is left out. */
function attributesOf(call: EndedCall): Attributes {
  const { status, tokens, upstream } = call
  const operation = operationOf(call)
  const used = operation === null ? null : tokens
  const all = {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': PRICE_TERMS[call.surface].provider,
    'gen_ai.request.model': call.modelAsked,
    'gen_ai.response.model': call.modelServed,
    // By the conventions, cached tokens count as input too.
    'gen_ai.usage.input_tokens': used && used.input + used.cacheRead + used.cacheWrite,
    'gen_ai.usage.output_tokens': used?.output,
    'gen_ai.usage.cache_read.input_tokens': used?.cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': used?.cacheWrite,
    'server.address': upstream?.hostname,
    'server.port': upstream && Number(upstream.port || defaultPortOf(upstream)),
    'http.response.status_code': status,
    'error.type': errorOf(call),
    'tollgate.request_id': call.requestId,
    'tollgate.cost_usd': Number(formatUsd(call.costNanos)),
    'tollgate.key_id': call.keyId,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => (value ?? null) !== null)) as Attributes
}

function defaultPortOf({ protocol }: URL): number {
  return protocol === 'https:' ? 443 : 80
}

/** The type of the error: our own code, else upstream's status. */
function errorOf({ code, status, cut }: EndedCall): string | null {
  if (code !== null) return code
  if (status !== null && status >= 400) return String(status)
  return cut ? 'reply_cut' : null
}
