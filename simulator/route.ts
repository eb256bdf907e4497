import type { IncomingHttpHeaders } from 'node:http'
import type { Handler } from './call.ts'
import { createChat, listChats } from './chat/create-chat.ts'
import { createCompletion } from './chat/create-completion.ts'
import { createEmbeddings } from './chat/create-embeddings.ts'
import { createModeration } from './chat/create-moderation.ts'
import {
  deleteOpenaiFile,
  getOpenaiFile,
  getOpenaiFileContent,
  listOpenaiFiles,
  uploadOpenaiFile,
} from './chat/openai-files.ts'
import { getOpenaiModel, listOpenaiModels } from './chat/openai-models.ts'
import { chatBodyBytesMax, messagesBodyBytesMax, uploadBodyBytesMax } from './limits.ts'
import {
  deleteClaudeFile,
  getClaudeFile,
  getClaudeFileContent,
  listClaudeFiles,
  uploadClaudeFile,
} from './messages/claude-files.ts'
import { getClaudeModel, listClaudeModels } from './messages/claude-models.ts'
import { countMessageTokens, createMessage } from './messages/create-message.ts'
import { Refusal, type Surface } from './refusal.ts'
import {
  countResponseTokens,
  createResponse,
  deleteResponse,
  getResponse,
} from './responses/create-response.ts'

interface Route {
  readonly surface: Surface
  readonly method: string
  readonly pattern: RegExp
  readonly handle: Handler
}

const routes: readonly Route[] = [
  route('messages', 'POST', '/v1/messages', createMessage),
  route('messages', 'POST', '/v1/messages/count_tokens', countMessageTokens),
  route('messages', 'GET', '/v1/models', listClaudeModels),
  route('messages', 'GET', '/v1/models/*', getClaudeModel),
  route('messages', 'POST', '/v1/files', uploadClaudeFile),
  route('messages', 'GET', '/v1/files', listClaudeFiles),
  route('messages', 'GET', '/v1/files/*', getClaudeFile),
  route('messages', 'GET', '/v1/files/*/content', getClaudeFileContent),
  route('messages', 'DELETE', '/v1/files/*', deleteClaudeFile),
  route('chat', 'POST', '/v1/chat/completions', createChat),
  route('chat', 'GET', '/v1/chat/completions', listChats),
  route('chat', 'POST', '/v1/completions', createCompletion),
  route('chat', 'POST', '/v1/responses', createResponse),
  route('chat', 'POST', '/v1/responses/input_tokens', countResponseTokens),
  route('chat', 'GET', '/v1/responses/*', getResponse),
  route('chat', 'DELETE', '/v1/responses/*', deleteResponse),
  route('chat', 'POST', '/v1/embeddings', createEmbeddings),
  route('chat', 'POST', '/v1/moderations', createModeration),
  route('chat', 'GET', '/v1/models', listOpenaiModels),
  route('chat', 'GET', '/v1/models/*', getOpenaiModel),
  route('chat', 'POST', '/v1/files', uploadOpenaiFile),
  route('chat', 'GET', '/v1/files', listOpenaiFiles),
  route('chat', 'GET', '/v1/files/*', getOpenaiFile),
  route('chat', 'GET', '/v1/files/*/content', getOpenaiFileContent),
  route('chat', 'DELETE', '/v1/files/*', deleteOpenaiFile),
]

/** `*` stands for one segment of the path. */
function route(surface: Surface, method: string, path: string, handle: Handler): Route {
  const pattern = new RegExp(`^${path.replaceAll('*', '([^/]+)')}/?$`)
  return { surface, method, pattern, handle }
}

/**
 * Two upstreams share one port here. A path that only one of them has decides; otherwise the header
 * that only Anthropic's clients send, and then the one that only they used to send.
 */
export function judgeSurface(path: string, headers: IncomingHttpHeaders): Surface {
  const surfaces = new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ surface }) => surface))
  const [only] = surfaces
  if (surfaces.size === 1 && only !== undefined) return only
  if (path.startsWith('/v1/messages/')) return 'messages'
  const asked = String(headers['access-control-request-headers'] ?? '').toLowerCase()
  for (const name of ['anthropic-version', 'x-api-key']) {
    if (headers[name] !== undefined || asked.includes(name)) return 'messages'
  }
  return 'chat'
}

export function findRoute(
  surface: Surface,
  method: string,
  path: string,
): { handle: Handler; params: readonly string[] } {
  // A HEAD is answered as the GET would be, without the body.
  const wanted = method === 'HEAD' ? 'GET' : method
  const matching = routes.filter((candidate) => candidate.surface === surface && candidate.pattern.test(path))
  const found = matching.find((candidate) => candidate.method === wanted)
  if (found !== undefined) return { handle: found.handle, params: captured(found.pattern, path) }
  if (matching.length === 0) {
    throw new Refusal(404, surface === 'messages' ? 'Not Found' : `Invalid URL (${method} ${path})`)
  }
  const allow = [...new Set(matching.map((candidate) => candidate.method))].join(', ')
  throw new Refusal(
    405,
    surface === 'messages'
      ? 'Method Not Allowed'
      : `Not allowed to ${method} on ${path}. (HINT: Perhaps you meant to use a different HTTP method?)`,
    { code: surface === 'messages' ? null : 'method_not_supported', headers: [['allow', allow]] },
  )
}

function captured(pattern: RegExp, path: string): string[] {
  return (pattern.exec(path) ?? []).slice(1).map((segment) => {
    try {
      return decodeURIComponent(segment)
    } catch {
      return segment
    }
  })
}

export function bodyBytesMaxOf(surface: Surface, contentType: string): number {
  if (contentType.startsWith('multipart/')) return uploadBodyBytesMax
  return surface === 'messages' ? messagesBodyBytesMax : chatBodyBytesMax
}
