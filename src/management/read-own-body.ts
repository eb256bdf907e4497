import { clientLeft, type Exchange, inviteBody } from '../http/exchange.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'

export type OwnBody =
  | { readonly kind: 'body'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'client_left' }

/** The JSON body of a request to one of our own endpoints; an absent one is `{}`. */
export async function readOwnBody(exchange: Exchange, idleTimeoutMs: number): Promise<OwnBody> {
  const { req } = exchange
  inviteBody(exchange)
  const chunks: Buffer[] = []
  let bytes = 0
  const idle = setTimeout(() => req.destroy(), idleTimeoutMs)
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      idle.refresh()
      bytes += chunk.length
      if (bytes > limits.ownBodyBytesMax) {
        return refused('body_too_large', `The body is larger than ${limits.ownBodyBytesMax / 1024} KiB.`)
      }
      chunks.push(chunk)
    }
  } catch {
    return { kind: 'client_left' }
  } finally {
    clearTimeout(idle)
  }
  if (clientLeft(exchange)) return { kind: 'client_left' }
  if (bytes === 0) return { kind: 'body', value: {} }
  try {
    return { kind: 'body', value: JSON.parse(Buffer.concat(chunks).toString('utf8')) }
  } catch {
    return refused('bad_request', 'The body is not JSON.')
  }
}

function refused(code: 'body_too_large' | 'bad_request', message: string): OwnBody {
  return { kind: 'refused', refusal: refuse(code, message) }
}
