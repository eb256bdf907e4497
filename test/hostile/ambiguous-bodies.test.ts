import assert from 'node:assert/strict'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ ...upstream.urls, settings: { unpriced: 'pass' } })
closeAfter(gateway, upstream)

const keys = {
  'without limits': gateway.apiKey,
  capped: (await gateway.createKey('capped', { monthly_budget_usd: 100 })).key,
  allowlisted: (await gateway.createKey('listed', { allowed_models: ['gpt-6-luna'] })).key,
}

interface Sent {
  readonly key?: string
  readonly headers?: Record<string, string>
}

async function post(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | FormData,
  { key, headers }: Sent = {},
) {
  const before = upstream.requestCount
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key ?? gateway.apiKey}`,
      ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body,
  })
  const text = await response.text()
  return { status: response.status, text, reached: upstream.requestCount - before }
}

type Body = Parameters<typeof post>[1]

async function assertRefused(path: string, body: Body, what: string, sent: Sent = {}): Promise<void> {
  const { status, text, reached } = await post(path, body, sent)
  assert.equal(reached, 0, `${path} ${what} reached upstream`)
  assert.equal(status, 400, `${path} ${what}: ${status} ${text}`)
  const { error } = JSON.parse(text)
  assert.equal(error.code, 'bad_request', what)
  assert.equal(error.type, 'invalid_request_error', what)
}

async function assertForwarded(path: string, body: Body, what: string, sent: Sent = {}): Promise<void> {
  const { status, text, reached } = await post(path, body, sent)
  assert.deepEqual([status, reached], [200, 1], `${path} ${what}: ${status} ${text}`)
}

/** The rest of a call that would be answered. */
const M = '"model":"gpt-6-luna","max_tokens":5'
const PADDING = ' '.repeat(256 * 1024)

const ambiguous: Record<string, string> = {
  'stream twice': `{${M},"stream":true,"stream":false}`,
  'stream twice, alike': `{${M},"stream":true,"stream":true}`,
  'stream twice, once escaped': `{${M},"stream":false,"str\\u0065am":true}`,
  'model twice': `{${M},"model":"gpt-6-luna"}`,
  'model twice, once null': `{${M},"m\\u006Fdel":null}`,
  'max_tokens twice': `{${M},"max_tokens":1}`,
  'background twice': `{${M},"background":false,"background":true}`,
  'stream_options twice': `{${M},"stream":true,"stream_options":{},"stream_options":{"include_usage":true}}`,
  'tools with two models': `{${M},"tools":[{"type":"x","model":"gpt-6-luna","model":"b"}]}`,
  'a name in another case': `{${M},"Stream":true}`,
  'a name in capitals': `{${M},"BACKGROUND":true}`,
  'a name with a long s': `{${M},"\u017ftream":true}`,
  'a name with an escaped long s': `{${M},"\\u017ftream":true}`,
  'a name with a NUL': `{${M},"stream\\u0000":true}`,
  'a name with a NUL and much behind it': `{${M},"stream\\u0000${'x'.repeat(2_000)}":true}`,
  'a name with half a character': `{${M},"stream\\ud800":true}`,
  'a tool with a name in another case': `{${M},"tools":[{"type":"x","Model":"b"}]}`,
  'stream "true"': `{${M},"stream":"true"}`,
  'stream 1': `{${M},"stream":1}`,
  'stream 0': `{${M},"stream":0}`,
  'stream []': `{${M},"stream":[]}`,
  'stream {}': `{${M},"stream":{}}`,
  'stream "" of 300 kB': `{${M},"stream":"${PADDING}"}`,
  'model 7': '{"model":7}',
  'model true': '{"model":true}',
  'model []': '{"model":["gpt-6-luna"]}',
  'model {}': '{"model":{"id":"gpt-6-luna"}}',
  'stream_options ""': `{${M},"stream":true,"stream_options":""}`,
  'stream_options "x"': `{${M},"stream":true,"stream_options":"{\\"include_usage\\":true}"}`,
  'stream_options []': `{${M},"stream":true,"stream_options":[]}`,
  'stream_options [{}]': `{${M},"stream":true,"stream_options":[{"include_usage":true}]}`,
  'stream_options 0': `{${M},"stream":true,"stream_options":0}`,
  'stream_options false': `{${M},"stream":true,"stream_options":false}`,
  'stream_options of 300 kB': `{${M},"stream":true,"stream_options":{"include_usage":true${PADDING}}}`,
  'stream_options with a long member': `{${M},"stream":true,"stream_options":{"a":"${PADDING}"}}`,
  'stream_options as a long string': `{${M},"stream":true,"stream_options":"${PADDING}"}`,
  'include_usage twice': `{${M},"stream":true,"stream_options":{"include_usage":false,"include_usage":false}}`,
  'include_usage twice, once escaped': `{${M},"stream":true,"stream_options":{"include_usage":true,"include\\u005fusage":false}}`,
  'include_usage twice without a stream': `{${M},"stream_options":{"include_usage":false,"include_usage":false}}`,
  INCLUDE_USAGE: `{${M},"stream":true,"stream_options":{"INCLUDE_USAGE":false}}`,
  'INCLUDE_USAGE beside it': `{${M},"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}}`,
  'include_usage with a NUL': `{${M},"stream":true,"stream_options":{"include_usage\\u0000":false}}`,
  'include_usage with a NUL and much behind it': `{${M},"stream":true,"stream_options":{"include_usage\\u0000${'x'.repeat(2_000)}":false}}`,
  'include_usage "false"': `{${M},"stream":true,"stream_options":{"include_usage":"false"}}`,
  'include_usage 0': `{${M},"stream":true,"stream_options":{"include_usage":0}}`,
  'include_usage 1': `{${M},"stream":true,"stream_options":{"include_usage":1}}`,
  'include_usage []': `{${M},"stream":true,"stream_options":{"include_usage":[]}}`,
  'include_usage {}': `{${M},"stream":true,"stream_options":{"include_usage":{}}}`,
}

const metered = allEndpoints()
  .filter(({ billing, method, reads }) => billing === 'metered' && method === 'POST' && reads === 'json')
  .map(({ template }) => template.replace(/\{[^}]+\}/g, 'some_id'))

for (const [who, key] of Object.entries(keys)) {
  test(`a key ${who} cannot send an ambiguous body to a metered endpoint`, async () => {
    assert.ok(metered.length >= 9, metered.join())
    for (const path of who === 'without limits' ? metered : ['/v1/chat/completions']) {
      for (const [what, body] of Object.entries(ambiguous)) await assertRefused(path, body, what, { key })
    }
  })
}

test('"background" of a response must be true or false', async () => {
  for (const value of ['1', '0', '"true"', '""', '[]', '{}', `"${PADDING}"`])
    await assertRefused('/v1/responses', `{${M},"background":${value}}`, value)
  for (const value of ['false', 'null', 'true'])
    await assertForwarded('/v1/responses', `{${M},"background":${value}}`, value)
})

test('form fields are checked alike', async () => {
  const forms: Record<string, readonly (readonly [string, string | Blob])[]> = {
    'model twice': [['model', 'gpt-image-2']],
    'stream twice': [
      ['stream', 'true'],
      ['stream', 'true'],
    ],
    'a name in another case': [['Stream', 'true']],
    'an escaped name': [['str%65am', 'true']],
    'a name with a blank': [['stream ', 'true']],
    'a list of that name': [['stream[]', 'true']],
    'stream 1': [['stream', '1']],
    'stream yes': [['stream', 'yes']],
    'a long stream': [['stream', 'true'.repeat(1_000)]],
    'stream as a file': [['stream', new Blob(['true'])]],
    stream_options: [['stream_options', '{}']],
  }
  for (const path of ['/v1/images/edits', '/v1/audio/transcriptions']) {
    for (const [what, fields] of Object.entries(forms)) {
      const form = new FormData()
      form.set('model', 'gpt-image-2')
      for (const [name, value] of fields) form.append(name, value)
      for (const key of Object.values(keys)) await assertRefused(path, form, what, { key })
    }
  }
})

test('unambiguous bodies go upstream', async () => {
  for (const [what, body] of Object.entries({
    'no model': '{}',
    'model null': '{"model":null}',
    'stream null': `{${M},"stream":null}`,
    'stream_options null': `{${M},"stream":true,"stream_options":null}`,
    'other options': `{${M},"stream":true,"stream_options":{"include_obfuscation":false}}`,
    'include_usage null': `{${M},"stream":true,"stream_options":{"include_usage":null}}`,
    'include_usage true': `{${M},"stream":true,"stream_options":{ "include_usage" : true }}`,
    'duplicate names that no parser reads': `{${M},"x":1,"x":2}`,
    'a nested name that no parser reads': `{${M},"messages":[{"Model":"a","model":1,"stream":"x"}]}`,
  }))
    for (const path of ['/v1/chat/completions', '/v1/completions', '/v1/messages'])
      await assertForwarded(path, body, what)
})

test('a body that is not JSON goes upstream for a key without limits, and is refused to others', async () => {
  const bodies: Record<string, string | Uint8Array<ArrayBuffer>> = {
    'no JSON': 'stream=true',
    empty: '',
    blank: ' \n',
    truncated: `{${M},"stream":true`,
    'more behind it': `{${M}}{}`,
    'a comment': `{/**/${M}}`,
    'a comma too many': `{${M},}`,
    'an array': `[{${M}}]`,
    'a byte order mark': `\ufeff{${M}}`,
    'not UTF-8': new Uint8Array(Buffer.from(`{${M},"x":"\xff"}`, 'latin1')),
    'UTF-16': new Uint8Array(Buffer.from(`{${M}}`, 'utf16le')),
    'nested too deeply': `{${M},"x":${'['.repeat(600)}${']'.repeat(600)}}`,
  }
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    for (const [what, body] of Object.entries(bodies)) {
      await assertForwarded(path, body, what)
      await assertRefused(path, body, what, { key: keys.capped })
      await assertRefused(path, body, what, { key: keys.allowlisted })
    }
  }
})
