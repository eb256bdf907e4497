import type { IncomingHttpHeaders } from 'node:http'
import type { Handler } from './call.ts'
import { createChat, listChats } from './chat/create-chat.ts'
import { createCompletion } from './chat/create-completion.ts'
import { createEmbeddings } from './chat/create-embeddings.ts'
import { createImage, editImage } from './chat/create-image.ts'
import { createModeration } from './chat/create-moderation.ts'
import { createSpeech } from './chat/create-speech.ts'
import { createTranscription, createTranslation } from './chat/create-transcription.ts'
import { cancelOpenaiBatch, createBatch, getBatch, listBatches } from './chat/openai-batches.ts'
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
import {
  cancelMessageBatch,
  createMessageBatch,
  deleteMessageBatch,
  getMessageBatch,
  getMessageBatchResults,
  listMessageBatches,
} from './messages/message-batches.ts'
import { Refusal, type Surface } from './refusal.ts'
import { countResponseTokens, createResponse } from './responses/create-response.ts'
import { cancelResponse, deleteResponse, getResponse } from './responses/get-response.ts'
import { listInputItems } from './responses/input-items.ts'

interface Route {
  readonly surface: Surface
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
  readonly handle: Handler
}

const routes: readonly Route[] = [
  route('messages', 'POST', '/v1/messages', createMessage),
  route('messages', 'POST', '/v1/messages/count_tokens', countMessageTokens),
  route('messages', 'POST', '/v1/messages/batches', createMessageBatch),
  route('messages', 'GET', '/v1/messages/batches', listMessageBatches),
  route('messages', 'GET', '/v1/messages/batches/*', getMessageBatch),
  route('messages', 'DELETE', '/v1/messages/batches/*', deleteMessageBatch),
  route('messages', 'POST', '/v1/messages/batches/*/cancel', cancelMessageBatch),
  route('messages', 'GET', '/v1/messages/batches/*/results', getMessageBatchResults),
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
  route('chat', 'POST', '/v1/responses/*/cancel', cancelResponse),
  route('chat', 'GET', '/v1/responses/*/input_items', listInputItems),
  route('chat', 'POST', '/v1/batches', createBatch),
  route('chat', 'GET', '/v1/batches', listBatches),
  route('chat', 'GET', '/v1/batches/*', getBatch),
  route('chat', 'POST', '/v1/batches/*/cancel', cancelOpenaiBatch),
  route('chat', 'POST', '/v1/images/generations', createImage),
  route('chat', 'POST', '/v1/images/edits', editImage),
  route('chat', 'POST', '/v1/audio/speech', createSpeech),
  route('chat', 'POST', '/v1/audio/transcriptions', createTranscription),
  route('chat', 'POST', '/v1/audio/translations', createTranslation),
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
  return { surface, method, path, pattern, handle }
}

/**
 * Two upstreams share one port here. A path that only one upstream has decides; otherwise the header
 * that only Anthropic's clients send, and then the header that only those clients used to send.
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
    const upstreams = surface === 'messages' ? 'Not Found' : `Invalid URL (${method} ${path})`
    throw new Refusal(404, `${upstreams}. This is the simulator: it plays ${playedPaths(surface)}.`)
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

/** The paths of a surface, without the paths of single objects, which go with the path of their list. */
function playedPaths(surface: Surface): string {
  const paths = routes.filter((played) => played.surface === surface && !played.path.includes('*'))
  return [...new Set(paths.map((played) => played.path))].join(', ')
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
