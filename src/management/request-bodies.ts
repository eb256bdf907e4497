import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import type { LoggedBody } from '../ledger/request-log.ts'
import { refusedMissingRequest } from './requests.ts'
import { defineRoute, refused, replyJson } from './route.ts'

const decompress = promisify(zstdDecompress)

const bodySchema = z
  .strictObject({
    content_type: z.string().nullable().describe('As the message said it.'),
    length_bytes: z.int().describe('Of the whole body, as it was sent.'),
    truncated: z.boolean().describe('Only the beginning was kept, or could be decoded.'),
    encoding: z.enum(['utf-8', 'base64']).describe('How `content` is to be read.'),
    content: z.string(),
  })
  .meta({ id: 'logged_body' })

const bodiesSchema = z
  .strictObject({
    object: z.literal('request_bodies'),
    id: z.string(),
    request: bodySchema.nullable(),
    response: bodySchema.nullable(),
  })
  .meta({ id: 'request_bodies', description: 'What was said in a call. Credentials were removed.' })

export const bodiesRoute = defineRoute({
  endpoint: 'GET /gateway/v1/requests/{id}/bodies',
  operationId: 'get_request_bodies',
  summary: 'What was said in a call',
  description:
    'Bodies are kept only of calls whose key had log_requests at the time, the first MiB of each, until requests.retention_days have passed.',
  success: { status: 200, schema: bodiesSchema },
  errors: ['not_found'],
  async handle({ params: [id = ''], caller }, { store }) {
    const call = await store.getCall(id)
    if (call === null || call.accountId !== caller.accountId) return refusedMissingRequest()
    const bodies = await store.getBodies(id)
    if (bodies === null) {
      const message = 'No bodies are kept of this request: its key did not log them, or their time is over.'
      return refused('not_found', message)
    }
    return replyJson(200, {
      object: 'request_bodies',
      id,
      request: await bodyObject(bodies.request),
      response: await bodyObject(bodies.response),
    })
  },
})

async function bodyObject(logged: LoggedBody | null): Promise<z.infer<typeof bodySchema> | null> {
  if (logged === null) return null
  const bytes = await decompress(logged.compressed, { maxOutputLength: limits.loggedBodyBytesMax * 2 })
  const encoding = isText(bytes, logged.truncated) ? 'utf-8' : 'base64'
  return {
    content_type: logged.contentType,
    length_bytes: logged.lengthBytes,
    truncated: logged.truncated,
    encoding,
    content: bytes.toString(encoding === 'utf-8' ? 'utf8' : 'base64'),
  }
}

/** A text that was cut may end in the middle of a character. */
function isText(bytes: Buffer, truncated: boolean): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: truncated })
    return true
  } catch {
    return false
  }
}
