import type { IncomingHttpHeaders } from 'node:http'
import type { Handler } from './call.ts'
import { createChat } from './chat/create-chat.ts'
import { createEmbeddings } from './chat/create-embeddings.ts'
import { createImage } from './chat/create-image.ts'
import { createSpeech } from './chat/create-speech.ts'
import { createTranscription } from './chat/create-transcription.ts'
import { cancelOpenaiBatch, createBatch, getBatch, listBatches } from './chat/openai-batches.ts'
import { deleteFile, getFile, getFileContent, listFiles, uploadFile } from './chat/openai-files.ts'
import { getOpenaiModel, listOpenaiModels } from './chat/openai-models.ts'
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
import {
  cancelResponse,
  countResponseTokens,
  createResponse,
  deleteResponse,
  getResponse,
} from './responses/create-response.ts'

type Route = readonly [surface: Surface, method: string, path: string, handle: Handler]

/** `*` stands for one segment of the path. */
const routes: readonly Route[] = [
  ['messages', 'POST', '/v1/messages', createMessage],
  ['messages', 'POST', '/v1/messages/count_tokens', countMessageTokens],
  ['messages', 'POST', '/v1/messages/batches', createMessageBatch],
  ['messages', 'GET', '/v1/messages/batches', listMessageBatches],
  ['messages', 'GET', '/v1/messages/batches/*', getMessageBatch],
  ['messages', 'DELETE', '/v1/messages/batches/*', deleteMessageBatch],
  ['messages', 'POST', '/v1/messages/batches/*/cancel', cancelMessageBatch],
  ['messages', 'GET', '/v1/messages/batches/*/results', getMessageBatchResults],
  ['messages', 'GET', '/v1/models', listClaudeModels],
  ['messages', 'GET', '/v1/models/*', getClaudeModel],
  ['chat', 'POST', '/v1/chat/completions', createChat],
  ['chat', 'POST', '/v1/responses', createResponse],
  ['chat', 'POST', '/v1/responses/input_tokens', countResponseTokens],
  ['chat', 'GET', '/v1/responses/*', getResponse],
  ['chat', 'DELETE', '/v1/responses/*', deleteResponse],
  ['chat', 'POST', '/v1/responses/*/cancel', cancelResponse],
  ['chat', 'POST', '/v1/batches', createBatch],
  ['chat', 'GET', '/v1/batches', listBatches],
  ['chat', 'GET', '/v1/batches/*', getBatch],
  ['chat', 'POST', '/v1/batches/*/cancel', cancelOpenaiBatch],
  ['chat', 'POST', '/v1/images/generations', createImage],
  ['chat', 'POST', '/v1/audio/speech', createSpeech],
  ['chat', 'POST', '/v1/audio/transcriptions', createTranscription],
  ['chat', 'POST', '/v1/embeddings', createEmbeddings],
  ['chat', 'GET', '/v1/models', listOpenaiModels],
  ['chat', 'GET', '/v1/models/*', getOpenaiModel],
  ['chat', 'POST', '/v1/files', uploadFile],
  ['chat', 'GET', '/v1/files', listFiles],
  ['chat', 'GET', '/v1/files/*', getFile],
  ['chat', 'GET', '/v1/files/*/content', getFileContent],
  ['chat', 'DELETE', '/v1/files/*', deleteFile],
]

const patterns = new Map(
  routes.map(([, , path]) => [path, new RegExp(`^${path.replaceAll('*', '([^/]+)')}/?$`)]),
)

function routesOf(path: string): Route[] {
  return routes.filter(([, , template]) => patterns.get(template)?.test(path))
}

/**
 * Two upstreams share one port here. A path that only one upstream has decides; otherwise the header that only
 * Anthropic's clients send.
 */
export function judgeSurface(path: string, headers: IncomingHttpHeaders): Surface {
  const surfaces = new Set(routesOf(path).map(([surface]) => surface))
  const [only] = surfaces
  if (surfaces.size === 1 && only !== undefined) return only
  if (path.startsWith('/v1/messages/')) return 'messages'
  const isMessages = headers['anthropic-version'] !== undefined || headers['x-api-key'] !== undefined
  return isMessages ? 'messages' : 'chat'
}

export function findRoute(
  surface: Surface,
  method: string,
  path: string,
): { handle: Handler; param: string } {
  // A HEAD is answered as the GET would be, without the body.
  const wanted = method === 'HEAD' ? 'GET' : method
  const matching = routesOf(path).filter((route) => route[0] === surface)
  const found = matching.find((route) => route[1] === wanted)
  if (found !== undefined) {
    const [, , template, handle] = found
    return { handle, param: patterns.get(template)?.exec(path)?.[1] ?? '' }
  }
  if (matching.length > 0) throw new Refusal(405, `Not allowed to ${method} on ${path}.`)
  const served = routes.filter((route) => route[0] === surface && !route[2].includes('*'))
  const paths = [...new Set(served.map((route) => route[2]))].join(', ')
  throw new Refusal(404, `Invalid URL (${method} ${path}). The simulator serves ${paths}.`)
}
