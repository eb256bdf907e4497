import { MODELS, prose, TIME_MARK } from './wire-text.ts'

/** The messages of a WebSocket of `/v1/responses`: the handshake, and turns shaped as the provider shapes them. */

export const SOCKET_PATH = '/v1/responses'

/** The key and the answer to it that RFC 6455 has as its example. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

const UPGRADE = 'connection: Upgrade\r\nupgrade: websocket\r\n'
export const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}sec-websocket-accept: ${ACCEPT}\r\n\r\n`

export function handshake(url: string, headers: readonly (readonly [name: string, value: string])[]): string {
  const own = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const key = `sec-websocket-key: ${KEY}\r\nsec-websocket-version: 13\r\n`
  return `GET ${SOCKET_PATH} HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${UPGRADE}${key}${own}\r\n`
}

/** A text frame as characters of one byte each; the text must consist of such characters too. */
function frame(text: string, masked: boolean): string {
  const mask = masked ? '\0\0\0\0' : ''
  return String.fromCharCode(0x81, ...sizeOf(text.length, masked ? 0x80 : 0)) + mask + text
}

function sizeOf(length: number, bit: number): number[] {
  if (length < 126) return [bit | length]
  if (length <= 0xffff) return [bit | 126, length >> 8, length & 0xff]
  return [bit | 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((shift) => (length >> shift) & 0xff)]
}

const REQUEST_BYTES = 2_000
const EVENTS_ASKED = /"max_output_tokens":(\d+)/

/** The message of 2 kB that begins a turn and asks for so many events. Its mask is zeros, which is a valid mask. */
export function turnAsked(events: number): Buffer {
  const message = {
    type: 'response.create',
    model: MODELS.chat,
    max_output_tokens: events,
    input: [{ role: 'user', content: prose(REQUEST_BYTES) }],
  }
  return Buffer.from(frame(JSON.stringify(message), true), 'latin1')
}

export function eventsAsked(message: Buffer): number {
  return Number(EVENTS_ASKED.exec(message.toString('latin1', 0, 200))?.[1] ?? 0)
}

const ITEM_ID = 'msg_67ccd3acc8d48190a77525dc6de64b4104becb25c45c1d41'
const WORDS = ' entries are where they were written'
const PLACE = { item_id: ITEM_ID, output_index: 0, content_index: 0 }

const response = (status: string, output: readonly object[], usage: object | null): object => ({
  id: 'resp_67ccd3a9da748190baa7f1570fe91ac604becb25c45c1d41',
  object: 'response',
  created_at: 1_741_476_777,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: 1_024,
  model: MODELS.chat,
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage,
  user: null,
  metadata: {},
})

const eventFrame = (type: string, sequence: number, members: object): string =>
  frame(JSON.stringify({ type, sequence_number: sequence, ...members }), false)

const part = (text: string): object => ({ type: 'output_text', annotations: [], logprobs: [], text })
const item = (status: string, content: readonly object[]): object => ({
  id: ITEM_ID,
  type: 'message',
  status,
  content,
  role: 'assistant',
})

const OPENING = [
  eventFrame('response.created', 0, { response: response('in_progress', [], null) }),
  eventFrame('response.in_progress', 1, { response: response('in_progress', [], null) }),
  eventFrame('response.output_item.added', 2, { output_index: 0, item: item('in_progress', []) }),
  eventFrame('response.content_part.added', 3, { ...PLACE, part: part('') }),
]

/** The last events of a turn, in which providers repeat the whole text four times. */
function closingOf(events: number): string[] {
  const text = WORDS.repeat(events)
  const next = OPENING.length + events
  const whole = item('completed', [part(text)])
  const usage = {
    input_tokens: 412,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: events,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 412 + events,
  }
  return [
    eventFrame('response.output_text.done', next, { ...PLACE, text, logprobs: [] }),
    eventFrame('response.content_part.done', next + 1, { ...PLACE, part: part(text) }),
    eventFrame('response.output_item.done', next + 2, { output_index: 0, item: whole }),
    eventFrame('response.completed', next + 3, { response: response('completed', [whole], usage) }),
  ]
}

/** The number of frames of a turn beside those of its timed events. */
export const FRAMES_AROUND = OPENING.length + closingOf(1).length

const [DELTA_START, DELTA_END] = [
  '{"type":"response.output_text.delta","sequence_number":',
  `,${JSON.stringify({ ...PLACE, delta: TIME_MARK }).slice(1, -2)}`,
]
const OBFUSCATION = 'kTq0VbXw3LzR9c'

export interface TurnText {
  readonly opening: string
  readonly closing: string
  /** The event of this number, from 0, that bears this time. */
  event(index: number, nowNs: number): string
}

export function turnText(events: number): TurnText {
  return {
    opening: OPENING.join(''),
    closing: closingOf(events).join(''),
    event(index, nowNs) {
      const noise = OBFUSCATION.slice(index % OBFUSCATION.length)
      const end = `${DELTA_END}${nowNs}${WORDS}","logprobs":[],"obfuscation":"${noise}"}`
      return frame(`${DELTA_START}${OPENING.length + index}${end}`, false)
    },
  }
}
