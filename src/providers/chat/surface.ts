import type { ErrorCode } from '../../kernel/errors.ts'
import { isObject, type JsonObject } from '../../metering/json-shape.ts'
import type { Delivered } from '../../metering/meter.ts'
import { BatchReader } from '../reading.ts'
import { isGiven } from '../request-facts.ts'
import type { SurfaceSpec } from '../surface.ts'
import { SpeechMeter, TranscriptMeter } from './audio.ts'
import { ClosingUsageReader } from './closing-usage.ts'
import { ChatReader } from './completions.ts'
import { CHAT_ENDPOINTS } from './endpoints.ts'
import { ResponsesReader } from './responses.ts'

const ERROR_TYPES: Readonly<Partial<Record<ErrorCode, string>>> = {
  budget_exceeded: 'billing_error',
  batch_exceeds_budget: 'billing_error',
  budget_held: 'budget',
  credit_held: 'budget',
  credit_balance_exhausted: 'insufficient_quota',
}

const responses = (output: Delivered) => new ResponsesReader(output)

const READERS: SurfaceSpec['readers'] = {
  chat: {
    create: (output) => new ChatReader(output),
    usageOnRequest: true,
    outputLimits: ['max_completion_tokens', 'max_tokens'],
    makesMedia: (body) => mentionsAudio(body),
    mayReason: (body, model) => !neverReasons(model) && body['reasoning_effort'] !== 'none',
  },
  completions: {
    create: (output) => new ChatReader(output),
    usageOnRequest: true,
    outputLimits: ['max_tokens'],
    mayBeSilent: true,
  },
  responses: {
    create: responses,
    outputLimits: ['max_output_tokens'],
    mayReason({ reasoning }, model) {
      return !neverReasons(model) && !(isObject(reasoning) && reasoning['effort'] === 'none')
    },
    stored: true,
    mayBeBackground: true,
  },
  compaction: { create: responses },
  decisions: { create: responses },
  embeddings: { create: (output) => new ClosingUsageReader('embeddings', output) },
  images: { create: (output) => new ClosingUsageReader('images', output), makesMedia: () => true },
  speech: {
    create: (output) => new ClosingUsageReader('speech', output),
    other: () => new SpeechMeter(),
    makesMedia: () => true,
  },
  transcription: {
    create: (output) => new ClosingUsageReader('transcription', output),
    other: () => new TranscriptMeter(),
  },
  batch: { create: () => new BatchReader() },
}

export const chat: SurfaceSpec = {
  name: 'chat',
  endpoints: CHAT_ENDPOINTS,
  clientHeaders: [],
  upstream: {
    variables: { url: 'TOLLGATE_CHAT_URL', key: 'TOLLGATE_CHAT_KEY', providerKey: 'OPENAI_API_KEY' },
    accountHeaders: ['openai-organization', 'openai-project'],
    credential: (key) => ['Authorization', `Bearer ${key}`],
    path: upstreamPath,
    regionalHost: /^(?:us|eu|ae|au|in|jp)\.api\.openai\.com$/,
    ownHeaders: {},
    modelListQuery: (after) => (after === null ? '' : `?after=${encodeURIComponent(after)}`),
  },
  errors: {
    requestIdHeader: 'x-request-id',
    statuses: {},
    type(code, status) {
      if (status === 429) return ERROR_TYPES[code] ?? 'requests'
      return ERROR_TYPES[code] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
    },
    body(type, { code, message, param = null, details }) {
      const error = { message, type, param, code }
      return { error: details === undefined ? error : { ...error, details } }
    },
  },
  readers: READERS,
  tools: {
    runByClient: /^(?:local_shell|apply_patch|computer_use_preview|computer)$/,
    limit: 'together',
    limited: /^(?:web_search(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?|file_search|code_interpreter|shell)$/,
    container: /^(?:code_interpreter|shell)$/,
  },
  toolsInConversation: false,
  itemMembers: {
    '/v1/responses': 'input',
    '/v1/responses/compact': 'input',
    '/v1/responses/input_tokens': 'input',
    '/v1/conversations': 'items',
    '/v1/conversations/{conversation_id}/items': 'items',
  },
  batchUpload: '/v1/files',
  batchEndpoints: [
    '/v1/chat/completions',
    '/v1/responses',
    '/v1/embeddings',
    '/v1/completions',
    '/v1/images/generations',
    '/v1/images/edits',
    '/v1/moderations',
  ],
  codeRunsFree: () => false,
  hasProjectTier: true,
}

/** The URL ends where the SDK's base URL ends (…/v1), so `/v1/chat/completions` becomes `<url>/chat/completions`. */
function upstreamPath(basePath: string, path: string): string {
  if (path === '/v1') return basePath
  if (path.startsWith('/v1/')) return basePath + path.slice('/v1'.length)
  return (basePath.endsWith('/v1') ? basePath.slice(0, -'/v1'.length) : basePath) + path
}

function mentionsAudio({ modalities }: JsonObject): boolean {
  if (!isGiven(modalities)) return false
  return !Array.isArray(modalities) || modalities.includes('audio')
}

/** Models that never reason: everything before gpt-5 except the o-series, and the chat models since. */
const NEVER_REASONS =
  /^(?:ft:)?(?:gpt-(?:3|4)|chatgpt-4o|(?:gpt-)?chat-latest|gpt-5(?:\.\d+)?-chat|gpt-audio|babbage|davinci)/

function neverReasons(model: string | null): boolean {
  return model !== null && NEVER_REASONS.test(model)
}
