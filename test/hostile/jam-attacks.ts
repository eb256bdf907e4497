import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { mintKey } from '../../src/keys/key-format.ts'
import { message, noise, sized } from '../support/wire-bytes.ts'

export interface JamScale {
  readonly callsPerKeyMax: number
  readonly slowBodies: number
  readonly hostileBodyBytes: number
  readonly uploadBytes: number
}

export interface Battlefield {
  readonly port: number
  readonly scale: JamScale
  readonly isOver: boolean
  /** Resolves when the well-behaved key has finished its next round, despite all that attackers hold. */
  nextRound(): Promise<void>
  newKey(name: string, fields?: Readonly<Record<string, unknown>>): Promise<string>
  /** Records the status of a request of this attack, or 0 if the connection ended without one. */
  note(attack: string, status: number): void
}

export type Attack = (field: Battlefield) => Promise<void>

const MiB = 1024 * 1024
const nobodysKey = () => mintKey('svc', 'live').reveal()
const bearer = (key: string) => ['Host: h', `Authorization: Bearer ${key}`]
const CHAT = 'POST /v1/chat/completions HTTP/1.1'
const MESSAGES = 'POST /v1/messages HTTP/1.1'
const COUNT_TOKENS = 'POST /v1/messages/count_tokens HTTP/1.1'
const asMessages = (key: string) => [...bearer(key), 'anthropic-version: 2023-06-01']

class Line {
  readonly socket: Socket
  readonly status: Promise<number>

  constructor({ port }: Battlefield) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('error', () => {})
    this.status = new Promise((resolve) => {
      let seen = ''
      this.socket.on('data', (bytes) => {
        if (seen.length > 12) return
        seen += bytes.toString('latin1')
        const status = /^HTTP\/1\.1 (\d{3})/.exec(seen)?.[1]
        if (status !== undefined) resolve(Number(status))
      })
      this.socket.once('close', () => resolve(0))
    })
  }

  /** Resolves when the bytes have left, or when a reply or the end has arrived. */
  async send(bytes: Buffer | string): Promise<void> {
    if (!this.socket.writable) return
    const written = new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()))
    await Promise.race([written, this.status])
  }
}

async function ask(field: Battlefield, attack: string, bytes: Buffer): Promise<void> {
  const line = new Line(field)
  void line.send(bytes)
  field.note(attack, await line.status)
  line.socket.destroy()
}

/** Sends the second half of a request once the well-behaved key has made a round of calls. */
async function askInHalves(field: Battlefield, attack: string, bytes: Buffer): Promise<void> {
  const line = new Line(field)
  await line.send(bytes.subarray(0, bytes.length / 2))
  await field.nextRound()
  void line.send(bytes.subarray(bytes.length / 2))
  field.note(attack, await line.status)
  line.socket.destroy()
}

async function repeat(field: Battlefield, times: number, act: (i: number) => Promise<void>): Promise<void> {
  const one = async (from: number) => {
    for (let i = from; !field.isOver; i += times) await act(i)
  }
  await Promise.all(Array.from({ length: times }, (_, i) => one(i)))
}

const chatBody = (content: string) =>
  `{"model":"gpt-6-luna","max_completion_tokens":16,"stream":true,"messages":[{"role":"user","content":${content}}]}`

/** How many calls are cut at once after they have begun, so that all their text must be estimated. */
const COUNTED_AT_ONCE = 4

const countedText: Attack = async (field) => {
  const key = await field.newKey('counted')
  const bodies = [
    chatBody(`"${'世'.repeat(64_000)}"`),
    chatBody(`"${'a few words '.repeat(50_000)}"`),
    chatBody(`"${'a'.repeat(600_000)}"`),
  ]
  const requests = bodies.map((body) => sized(CHAT, [...bearer(key), 'x-do: cut'], body))
  await repeat(field, COUNTED_AT_ONCE, async (i) => {
    const line = new Line(field)
    await line.send(requests[i % requests.length] as Buffer)
    field.note('text to be counted', await line.status)
    line.socket.destroy()
    // The next request of this attacker must not wait in the same queue.
    await once(line.socket, 'close')
  })
}

/** Cut calls with bodies that are cheap to send and expensive to parse. */
const hostileJson: Attack = async (field) => {
  const key = await field.newKey('hostile')
  const { hostileBodyBytes: size } = field.scale
  const filled = (unit: string) => unit.repeat(size / unit.length)
  const bodies = [
    chatBody(`[${filled('{"type":"text","text":"a"},')}""]`),
    chatBody(`"x"`).replace('{', `{"metadata":${'['.repeat(size / 2)}${']'.repeat(size / 2)},`),
    chatBody(`"${filled('\\u4e16')}"`),
    chatBody(`"x"`).replace('{', `{"metadata":{${filled('"a":0,')}"b":0},`),
    chatBody(`"x"`).replace('{', `{"metadata":[${filled('1e1,')}0],`),
  ]
  const requests = bodies.map((body) => sized(CHAT, [...bearer(key), 'x-do: cut'], body))
  await repeat(field, 2, (i) => ask(field, 'hostile JSON', requests[i % requests.length] as Buffer))
}

const CODINGS = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync }

const DECODING_KEYS = 4

const bombs: Attack = async (field) => {
  const names = Object.keys(CODINGS) as (keyof typeof CODINGS)[]
  const packed = names.map((name) => CODINGS[name](Buffer.alloc(16 * MiB, ' ')))
  const page = noise(45_000).toString('base64')
  const dense = gzipSync(`{"model":"claude-haiku-5-5","max_tokens":9,"x":"${page.repeat(100)}"}`)
  const bomb = (key: string, i: number) => {
    const which = i % names.length
    const lines = [...asMessages(key), `Content-Encoding: ${names[which]}`]
    return sized(MESSAGES, lines, packed[which] as Buffer)
  }
  const keys = await Promise.all(
    Array.from({ length: DECODING_KEYS }, (_, i) => field.newKey(`compressed ${i}`)),
  )
  await Promise.all([
    repeat(field, 4, (i) => ask(field, 'bomb of an unknown key', bomb(nobodysKey(), i))),
    ...keys.map((key) =>
      repeat(field, 4, (i) => {
        if (i % 4 !== 0) return ask(field, 'bomb', bomb(key, i))
        const lines = [...asMessages(key), 'Content-Encoding: gzip']
        return ask(field, 'dense body', sized(MESSAGES, lines, dense))
      }),
    ),
  ])
}

const slowBodies: Attack = async (field) => {
  const { slowBodies: count } = field.scale
  const key = await field.newKey('slow')
  const half = Math.ceil(count / 2)
  await Promise.all([
    repeat(field, half, async () => {
      const lines = [...bearer(nobodysKey()), 'Content-Length: 60000']
      const line = new Line(field)
      await line.send(message(CHAT, lines, '{'))
      await field.nextRound()
      await line.send(' ')
      field.note('slow body of an unknown key', await line.status)
      line.socket.destroy()
    }),
    repeat(field, half, () => {
      const body = chatBody('"slow"').replace('true', 'false')
      return askInHalves(field, 'slow body', sized(CHAT, bearer(key), body))
    }),
  ])
}

/** Large bodies of a key without budget, which are free to send. */
const unpaidUploads: Attack = async (field) => {
  const key = await field.newKey('spent', { monthly_budget_usd: 0 })
  const body = Buffer.from(
    `{"model":"claude-haiku-5-5","max_tokens":9,"messages":[],"x":"${'a'.repeat(field.scale.uploadBytes)}"}`,
  )
  const priced = sized(MESSAGES, asMessages(key), body)
  const free = sized(COUNT_TOKENS, asMessages(key), body)
  await Promise.all([
    repeat(field, 2, () => ask(field, 'unpaid upload', priced)),
    repeat(field, 2, () => askInHalves(field, 'free upload', free)),
  ])
}

/** Uses all slots of a key, and sends large bodies as well. */
const greedy: Attack = async (field) => {
  const { callsPerKeyMax, uploadBytes } = field.scale
  const key = await field.newKey('greedy')
  const call = sized(
    MESSAGES,
    [...asMessages(key), 'x-do: hold'],
    '{"model":"claude-haiku-5-5","max_tokens":9}',
  )
  const large = await field.newKey('large')
  const body = `{"model":"claude-haiku-5-5","max_tokens":9,"x":"${'a'.repeat(uploadBytes)}"}`
  await Promise.all([
    repeat(field, callsPerKeyMax, () => ask(field, 'call that is held', call)),
    repeat(field, 8, async () => {
      await ask(field, 'call beyond those', call)
      await field.nextRound()
    }),
    repeat(field, 3, () => askInHalves(field, 'large body', sized(MESSAGES, asMessages(large), body))),
  ])
}

/** Replies to HEAD whose bodies come when another client's call may have the connection. */
const heads: Attack = async (field) => {
  const key = await field.newKey('heads')
  await repeat(field, 4, () => ask(field, 'HEAD', message('HEAD /v1/models HTTP/1.1', asMessages(key))))
}

export const attacks: readonly Attack[] = [
  countedText,
  hostileJson,
  bombs,
  slowBodies,
  unpaidUploads,
  greedy,
  heads,
]
