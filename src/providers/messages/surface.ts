import { isObject, type JsonObject } from '../../metering/json-shape.ts'
import { BatchReader } from '../reading.ts'
import { isGiven, type RequestFacts } from '../request-facts.ts'
import type { SurfaceSpec } from '../surface.ts'
import { MESSAGES_ENDPOINTS } from './endpoints.ts'
import { MessagesReader } from './reader.ts'

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  431: 'request_too_large',
}

export const messages: SurfaceSpec = {
  name: 'messages',
  endpoints: MESSAGES_ENDPOINTS,
  // Anthropic's API requires `anthropic-version`, which OpenAI's SDKs never send. `Authorization: Bearer` proves
  // nothing, because Anthropic's SDKs send it since 1.0. Hand-written clients without the version are recognised by
  // `x-api-key`.
  clientHeaders: ['anthropic-version', 'x-api-key'],
  upstream: {
    variables: {
      url: 'TOLLGATE_MESSAGES_URL',
      key: 'TOLLGATE_MESSAGES_KEY',
      providerKey: 'ANTHROPIC_API_KEY',
    },
    accountHeaders: ['anthropic-workspace-id'],
    credential: (key) => ['x-api-key', key],
    path: (basePath, path) => basePath + path,
    regionalHost: null,
    ownHeaders: { 'anthropic-version': '2023-06-01' },
    // The default page size of the model list is 20.
    modelListQuery: (after) => `?limit=1000${after === null ? '' : `&after_id=${encodeURIComponent(after)}`}`,
  },
  errors: {
    requestIdHeader: 'request-id',
    statuses: { credit_balance_exhausted: 400 },
    type: (_code, status) => ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'),
    body(type, { code, message, details }, requestId) {
      const error = { type, message, code }
      // Anthropic's own billing errors have their code in `error_code`.
      const explained =
        details === undefined ? error : { ...error, details: { error_code: code, ...details } }
      return { type: 'error', error: explained, request_id: requestId }
    },
  },
  readers: {
    messages: {
      create: (output) => new MessagesReader(output),
      outputLimits: ['max_tokens'],
      mayBeSilent: true,
      mayReason,
    },
    batch: { create: () => new BatchReader() },
  },
  tools: {
    runByClient: /^(?:bash_\d+|text_editor_\d+|memory_\d+|computer_(?:toolset_)?\d+|browser_toolset_\d+)$/,
    limit: 'each',
    limited: /^(?:web_search|web_fetch|advisor)_\d+$/,
    container: null,
  },
  toolsInConversation: true,
  itemMembers: {},
  batchUpload: null,
  batchEndpoints: ['/v1/messages'],
  codeRunsFree,
  hasProjectTier: false,
}

/** Whether the request asks for thinking. If a model thinks without being asked, the reply has thinking blocks. */
function mayReason({ thinking }: JsonObject): boolean {
  return isGiven(thinking) && !(isObject(thinking) && thinking['type'] === 'disabled')
}

const DATED_WEB_TOOL = /^web_(?:search|fetch)_(\d{8})$/
const FREE_CODE_SINCE = '20260209'

function codeRunsFree({ body: { tools } }: RequestFacts): boolean {
  if (!Array.isArray(tools)) return false
  return tools.some((tool: unknown) => {
    const type = isObject(tool) ? tool['type'] : null
    const date = typeof type === 'string' ? DATED_WEB_TOOL.exec(type)?.[1] : undefined
    return date !== undefined && date >= FREE_CODE_SINCE
  })
}
