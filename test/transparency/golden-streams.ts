import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import type { Surface } from '../support/surfaces.ts'
import { surfaceOf } from '../support/surfaces.ts'

export type GoldenStream = { name: string; surface: Surface; endpoint: string; body: string; bytes: Buffer }

const read = (name: string): Buffer => readFileSync(new URL(`./golden/${name}.sse`, import.meta.url))

const messages = surfaceOf('messages')
const chat = surfaceOf('chat')

const responsesBody = '{"model":"gpt-5","stream":true,"input":"hi"}'

/** Streams as the providers write them: characters of one to four bytes, pings, comments, line feeds. */
export const goldenStreams: readonly GoldenStream[] = [
  {
    name: 'Messages',
    surface: messages,
    endpoint: '/v1/messages',
    body: messages.streamingBody,
    bytes: read('messages'),
  },
  {
    name: 'Chat',
    surface: chat,
    endpoint: '/v1/chat/completions',
    body: chat.streamingBody,
    bytes: read('chat'),
  },
  {
    name: 'Responses',
    surface: chat,
    endpoint: '/v1/responses',
    body: responsesBody,
    bytes: read('responses'),
  },
]

/** Streams with CRLF are generated, not files: a checkout may change the line ends of a file. */
export const withCrlf = (stream: GoldenStream): GoldenStream => ({
  ...stream,
  name: `${stream.name} with CRLF`,
  bytes: Buffer.from(stream.bytes.toString('latin1').replaceAll('\n', '\r\n'), 'latin1'),
})

/** Adds an event larger than any buffer in the middle of the others. */
export function withHugeEvent(stream: GoldenStream, size: number): GoldenStream {
  const end = stream.bytes.indexOf('\n\n') + 2
  const text = 'é€😀 '.repeat(Math.ceil(size / 10))
  const event = Buffer.from(`event: huge\ndata: {"type":"huge","text":"${text}"}\n\n`)
  const bytes = Buffer.concat([stream.bytes.subarray(0, end), event, stream.bytes.subarray(end)])
  return { ...stream, name: `${stream.name} with a huge event`, bytes }
}

/** The stream split after each event, as a server writes that flushes every event. */
export function eventsOf(bytes: Buffer): Buffer[] {
  const events: Buffer[] = []
  let from = 0
  while (from < bytes.length) {
    const blank = bytes.indexOf('\n\n', from)
    const end = blank < 0 ? bytes.length : blank + 2
    events.push(bytes.subarray(from, end))
    from = end
  }
  return events
}
