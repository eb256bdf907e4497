import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import zlib from 'node:zlib'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digNumber } from './dig.ts'
import {
  anthropicHeaders,
  chatBody,
  closed,
  exchange,
  messageBody,
  parseEvents,
  post,
  postEvents,
  postJson,
  rawPost,
  type Sent,
} from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator({ deterministic: true })
})
after(() => simulator.close())

const version = 'anthropic-version: 2026-10-21'
const streamed = messageBody({ stream: true })
const raw = (behaviour: string, body: object = streamed) =>
  exchange(simulator, rawPost('/v1/messages', body, [version, `x-simulator: ${behaviour}`]))

/** Takes a raw answer apart: its head, the sizes of its HTTP chunks, the bytes, and whether it ended properly. */
function dechunk(answer: Buffer): { head: string; sizes: number[]; body: Buffer; isEnded: boolean } {
  const headEnd = answer.indexOf('\r\n\r\n') + 4
  const sizes: number[] = []
  const parts: Buffer[] = []
  let at = headEnd
  while (at < answer.length) {
    const lineEnd = answer.indexOf('\r\n', at)
    const size = Number.parseInt(answer.toString('latin1', at, lineEnd), 16)
    if (size === 0)
      return { head: String(answer.subarray(0, headEnd)), sizes, body: Buffer.concat(parts), isEnded: true }
    sizes.push(size)
    parts.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return { head: String(answer.subarray(0, headEnd)), sizes, body: Buffer.concat(parts), isEnded: false }
}

/** The body bytes of the same request without any behaviour; ids differ, so these are compared by shape only. */
const lengthOf = async (behaviour: string) => dechunk(await raw(behaviour)).body.length

test('chunks=n slices a stream into pieces of n bytes that lose nothing', async () => {
  const { sizes, body, isEnded } = dechunk(await raw('chunks=7'))
  assert.ok(isEnded)
  assert.ok(sizes.slice(0, -1).every((size) => size === 7))
  assert.equal(parseEvents(String(body)).at(-1)?.event, 'message_stop')
})

test('chunks=random:seed slices the same way for the same seed', async () => {
  const first = dechunk(await raw('chunks=random:5'))
  const second = dechunk(await raw('chunks=random:5'))
  assert.deepEqual(first.sizes, second.sizes)
  assert.ok(new Set(first.sizes).size > 10)
  assert.equal(parseEvents(String(first.body)).at(-1)?.event, 'message_stop')
})

test('a JSON body has a length unless chunked framing is asked for', async () => {
  const sized = String(await raw('tokens=4', messageBody()))
  assert.match(sized, /\r\ncontent-length: \d+\r\n/)
  const { head, isEnded, body } = dechunk(await raw('framing=chunked', messageBody()))
  assert.match(head, /transfer-encoding: chunked/i)
  assert.ok(isEnded)
  assert.equal(dig(JSON.parse(String(body)), 'type'), 'message')
})

test('cut=event:n breaks the connection after n whole events', async () => {
  for (const count of [0, 1, 4]) {
    const { head, body, isEnded } = dechunk(await raw(`cut=event:${count}`))
    assert.match(head, /^HTTP\/1\.1 200 /)
    assert.equal(isEnded, false)
    assert.equal(parseEvents(String(body)).length, count)
  }
})

test('cut=byte:n breaks the connection after n bytes of body, compressed or not', async () => {
  for (const behaviour of [
    'cut=byte:0',
    'cut=byte:100',
    'cut=byte:100;chunks=9',
    'cut=byte:100;encode=gzip',
  ]) {
    const { body, isEnded } = dechunk(await raw(behaviour))
    assert.equal(isEnded, false)
    assert.equal(body.length, behaviour.startsWith('cut=byte:0') ? 0 : 100, behaviour)
  }
  const json = await raw('cut=byte:100', messageBody())
  assert.equal(json.length - json.indexOf('\r\n\r\n') - 4, 100)
})

test('cut=mid-event leaves half an event behind, and half of a JSON body', async () => {
  const { body, isEnded } = dechunk(await raw('cut=mid-event'))
  assert.equal(isEnded, false)
  const text = String(body)
  assert.equal(text.split('\n\n').length, 3)
  assert.ok(!text.endsWith('\n\n'))
  const json = await raw('cut=mid-event', messageBody())
  const length = Number(/content-length: (\d+)/.exec(String(json))?.[1])
  assert.equal(json.length - json.indexOf('\r\n\r\n') - 4, Math.floor(length / 2))
})

test('a cut beyond the end still breaks the stream', async () => {
  assert.equal(dechunk(await raw('cut=event:9999')).isEnded, false)
  assert.equal(dechunk(await raw('cut=byte:9999999')).isEnded, false)
})

test('reset closes the connection before any byte', async () => {
  assert.equal((await raw('reset')).length, 0)
})

test('a broken connection of our own making does not count as a client that left', async () => {
  const { aborted } = simulator
  await raw('cut=event:2')
  await raw('reset')
  assert.equal(simulator.aborted, aborted)
})

const decoders = {
  gzip: () => zlib.createGunzip(),
  deflate: () => zlib.createInflate(),
  br: () => zlib.createBrotliDecompress(),
  zstd: () => zlib.createZstdDecompress(),
}

for (const [coding, createDecoder] of Object.entries(decoders)) {
  test(`encode=${coding} compresses a stream so that each event can be read when it arrives`, async () => {
    const sent = request(`${simulator.messagesUrl}/v1/messages`, {
      method: 'POST',
      headers: {
        ...anthropicHeaders,
        'accept-encoding': coding,
        'x-simulator': `encode=${coding};cut=event:3`,
      },
    })
    sent.end(JSON.stringify(streamed))
    const [response] = await once(sent, 'response')
    assert.equal(response.headers['content-encoding'], coding)
    const decoder = createDecoder()
    let text = ''
    decoder.on('data', (chunk: Buffer) => {
      text += String(chunk)
    })
    decoder.on('error', () => undefined)
    response.on('data', (chunk: Buffer) => decoder.write(chunk))
    response.on('error', () => undefined)
    await closed(response)
    await new Promise<void>((resolve) => decoder.flush(() => setImmediate(resolve)))
    assert.deepEqual(
      parseEvents(text).map(({ event }) => event),
      ['message_start', 'content_block_start', 'ping'],
    )
  })

  test(`encode=${coding} is undone by a client that accepts it, and not used on one that does not`, async () => {
    const behaviour = `encode=${coding}`
    const json = await postJson(simulator, '/v1/messages', messageBody(), {
      headers: { ...anthropicHeaders, 'accept-encoding': `${coding}` },
      behaviour,
    })
    assert.equal(json.headers.get('content-encoding'), coding)
    assert.equal(dig(json.json, 'type'), 'message')
    const plain = await post(simulator, '/v1/messages', messageBody(), {
      headers: { ...anthropicHeaders, 'accept-encoding': 'identity' },
      behaviour,
    })
    assert.equal(plain.headers.get('content-encoding'), null)
    await plain.text()
  })
}

test('error-event=n replaces the rest of a stream by an error, on every surface', async () => {
  const sent: Sent = { headers: anthropicHeaders, behaviour: 'error-event=2' }
  const messages = await postEvents(simulator, '/v1/messages', streamed, sent)
  assert.equal(messages.at(-1)?.event, 'error')
  assert.equal(dig(messages.at(-1)?.data, 'error.type'), 'overloaded_error')
  assert.equal(messages.filter(({ event }) => event === 'content_block_delta').length, 2)
  const chat = await postEvents(simulator, '/v1/chat/completions', chatBody({ stream: true }), sent)
  assert.equal(dig(chat.at(-1)?.data, 'error.type'), 'server_error')
  const body = { model: 'gpt-4o', input: 'x', stream: true }
  const responses = await postEvents(simulator, '/v1/responses', body, sent)
  assert.equal(responses.at(-1)?.event, 'error')
  assert.equal(dig(responses.at(-1)?.data, 'sequence_number'), responses.length - 1)
})

test('no-usage leaves usage out of every reply', async () => {
  const sent: Sent = { headers: anthropicHeaders, behaviour: 'no-usage' }
  const include = { stream: true, stream_options: { include_usage: true } }
  const replies = await Promise.all([
    post(simulator, '/v1/messages', messageBody(), sent),
    post(simulator, '/v1/messages', streamed, sent),
    post(simulator, '/v1/chat/completions', chatBody(), sent),
    post(simulator, '/v1/chat/completions', chatBody(include), sent),
    post(simulator, '/v1/responses', { model: 'gpt-4o', input: 'x' }, sent),
    post(simulator, '/v1/embeddings', { model: 'text-embedding-3-small', input: 'x' }, sent),
  ])
  for (const reply of replies) assert.ok(!/"usage":[^n]/.test(await reply.text()), reply.url)
})

test('usage={json} is laid over what is reported, in the events where upstream reports it', async () => {
  const behaviour =
    'usage={"output_tokens":-5,"cache_creation":null,"server_tool_use":{"web_search_requests":3}}'
  const sent: Sent = { headers: anthropicHeaders, behaviour }
  const { json } = await postJson(simulator, '/v1/messages', messageBody(), sent)
  assert.equal(dig(json, 'usage.output_tokens'), -5)
  assert.equal(dig(json, 'usage.cache_creation'), null)
  const events = await postEvents(simulator, '/v1/messages', streamed, sent)
  assert.equal(dig(events[0]?.data, 'message.usage.cache_creation'), null)
  assert.equal(dig(events[0]?.data, 'message.usage.output_tokens'), 1)
  assert.equal(dig(events.at(-2)?.data, 'usage.output_tokens'), -5)
  assert.equal(dig(events.at(-2)?.data, 'usage.cache_creation'), undefined)
  assert.equal(dig(events.at(-2)?.data, 'usage.server_tool_use.web_search_requests'), 3)
  const chat = await postJson(simulator, '/v1/chat/completions', chatBody(), {
    behaviour: 'usage={"prompt_tokens_details":{"audio_tokens":9}}',
  })
  assert.equal(dig(chat.json, 'usage.prompt_tokens_details.audio_tokens'), 9)
  assert.equal(dig(chat.json, 'usage.prompt_tokens_details.cached_tokens'), 0)
})

test('tier, speed, geo and model are reported as asked', async () => {
  const { json } = await postJson(simulator, '/v1/messages', messageBody(), {
    headers: anthropicHeaders,
    behaviour: 'tier=batch;speed=fast;geo=us;model=claude-other',
  })
  assert.equal(dig(json, 'usage.service_tier'), 'batch')
  assert.equal(dig(json, 'usage.speed'), 'fast')
  assert.equal(dig(json, 'usage.inference_geo'), 'us')
  assert.equal(dig(json, 'model'), 'claude-other')
  const chat = await postJson(simulator, '/v1/chat/completions', chatBody(), { behaviour: 'tier=ultrafast' })
  assert.equal(dig(chat.json, 'service_tier'), 'ultrafast')
})

test('tokens=n gives an answer of exactly n tokens', async () => {
  for (const tokens of [1, 3, 5_000]) {
    const { json } = await postJson(simulator, '/v1/chat/completions', chatBody(), {
      behaviour: `tokens=${tokens}`,
    })
    assert.equal(dig(json, 'usage.completion_tokens'), tokens)
    assert.equal(dig(json, 'choices.0.finish_reason'), 'stop')
  }
})

test('refusal refuses before any output, or after as much of it as was asked for', async () => {
  const sent = (behaviour: string): Sent => ({ headers: anthropicHeaders, behaviour })
  const before = await postJson(simulator, '/v1/messages', messageBody(), sent('refusal=1'))
  assert.equal(dig(before.json, 'stop_reason'), 'refusal')
  assert.deepEqual(dig(before.json, 'content'), [])
  assert.equal(dig(before.json, 'usage.output_tokens'), 0)
  assert.ok(digNumber(before.json, 'usage.input_tokens') > 0)
  const late = await postJson(simulator, '/v1/messages', messageBody(), sent('refusal;tokens=9'))
  assert.equal(dig(late.json, 'stop_reason'), 'refusal')
  assert.equal(dig(late.json, 'usage.output_tokens'), 9)
  const chat = await postJson(simulator, '/v1/chat/completions', chatBody(), sent('refusal'))
  assert.equal(dig(chat.json, 'choices.0.message.content'), null)
  assert.equal(typeof dig(chat.json, 'choices.0.message.refusal'), 'string')
  const response = await postJson(
    simulator,
    '/v1/responses',
    { model: 'gpt-4o', input: 'x' },
    sent('refusal'),
  )
  assert.equal(dig(response.json, 'output.0.content.0.type'), 'refusal')
})

test('early answers while the body is still on its way', async () => {
  const head = [
    'POST /v1/messages HTTP/1.1',
    'host: s',
    'connection: close',
    version,
    'content-length: 1000000',
  ]
  const answer = await exchange(
    simulator,
    `${[...head, 'x-simulator: early;status=429'].join('\r\n')}\r\n\r\n{"mod`,
  )
  assert.match(String(answer), /^HTTP\/1\.1 429 /)
})

test('a stream compressed and sliced is shorter than the plain one', async () => {
  assert.ok((await lengthOf('encode=gzip;chunks=5')) < (await lengthOf('chunks=5')))
})
