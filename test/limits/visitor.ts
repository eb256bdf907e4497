import { asBilled } from '../billing/bench-of-one.ts'
import { exchange } from '../support/raw-client.ts'
import type { ServingProcess } from '../support/tollgate-process.ts'
import type { Canary, Place } from './canaries.ts'

export class Visitor {
  readonly answers: Place[] = []
  /** Forwarded responses. Upstream may repeat the request, into which a client may have put its own key. */
  readonly passedOn: Place[] = []
  readonly keys: Canary[] = []
  readonly #tollgate: ServingProcess

  constructor(tollgate: ServingProcess) {
    this.#tollgate = tollgate
  }

  async manage(
    adminKey: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Record<string, unknown>> {
    const response = await fetch(this.#tollgate.url + path, {
      method,
      headers: { authorization: `Bearer ${adminKey}`, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = JSON.parse(text) as Record<string, unknown>
    if (typeof answer['key'] === 'string') {
      this.keys.push({ name: `key from ${method} ${path}`, value: answer['key'] })
    } else this.answers.push({ where: `answer to ${method} ${path}`, bytes: Buffer.from(text) })
    return answer
  }

  async raw(what: string, lines: readonly string[], body = ''): Promise<number> {
    const { hostname, port } = new URL(this.#tollgate.url)
    const head = [...lines, ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`])]
    const reply = await exchange(
      { host: hostname, port: Number(port) },
      Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`),
    )
    const { header, requestId } = asBilled(reply)
    const isOwn = (header('request-id') ?? header('x-request-id') ?? requestId) === requestId
    const bytes = Buffer.concat([Buffer.from(reply.headerLines.join('\n')), reply.rawBody])
    const place = { where: `answer to ${what}`, bytes }
    if (isOwn) this.answers.push(place)
    else this.passedOn.push(place)
    return reply.status
  }
}
