import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../support/command-thread.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { test } from '../support/suite.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { columnsOf, filesOf, findLeaks, type Place } from './canaries.ts'

/** An unusual form: only the gateway can know that it is a secret. */
const OWN_KEY = 'Zx9Lp4Rt6Vb8Nc1Mm7Qw2-canary-own'
const ROTATED = 'sk-canary-Gh4Jk7Cc5Ty8Ui3Op6As9Df2'

/** An upstream that repeats its credential in every text that the gateway records. */
function repeating(headerLines: readonly string[]): Buffer {
  const credential = headerValues(headerLines, 'authorization').join().replace('Bearer ', '')
  const message = { role: 'assistant', content: `You sent ${credential}` }
  const body = {
    ...{ id: `chatcmpl_${credential}`, object: 'chat.completion', model: `model-${credential}` },
    choices: [{ index: 0, message, finish_reason: `stop-${credential}` }],
    usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
  }
  const head = ['Content-Type: application/json', `x-request-id: req-${credential}`]
  return sized('HTTP/1.1 200 OK', head, JSON.stringify(body))
}

test("an account's own key is in no log, response, export or column, even if its upstream repeats it", async () => {
  const upstream = await ScriptedUpstream.start()
  upstream.answer(({ headerLines }) => [{ send: repeating(headerLines) }])
  const tollgate = await serveTollgate({
    TOLLGATE_LOG_LEVEL: 'debug',
    TOLLGATE_CHAT_URL: `${upstream.url}/v1`,
  })
  const adminKey = readFileSync(join(tollgate.dataDir, 'admin-key'), 'utf8').trim()
  const places: Place[] = []
  const note = (where: string, text: string) => places.push({ where, bytes: Buffer.from(text) })
  const manage = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(tollgate.url + path, {
      method,
      headers: { authorization: `Bearer ${adminKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    note(`${method} ${path}`, text)
    return text
  }
  const call = async (key: string, content: string) => {
    const response = await fetch(`${tollgate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }] }),
    })
    await response.text()
    return response.headers.get('x-svc-request-id') ?? ''
  }
  try {
    const chat = { url: `${upstream.url}/v1`, key: OWN_KEY }
    const { id } = JSON.parse(
      await manage('POST', '/gateway/v1/accounts', { name: 'own', upstreams: { chat } }),
    )
    const account = `account=${id}`
    const created = await fetch(`${tollgate.url}/v1/keys?${account}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ name: 'logged', log_requests: true }),
    })
    const { key } = (await created.json()) as { key: string }
    const ids = [await call(key, `my key is ${OWN_KEY}`)]
    const edit = { upstreams: { chat: { ...chat, key: ROTATED } } }
    await manage('PATCH', `/gateway/v1/accounts/${id}`, edit)
    ids.push(await call(key, `my key is ${ROTATED}`))
    await manage('PATCH', `/gateway/v1/accounts/${id}`, { upstreams: { chat: { key: `${OWN_KEY} ` } } })
    await manage('PATCH', `/gateway/v1/accounts/${id}`, { upstreams: { chat: { [ROTATED]: 1 } } })
    for (const request of ids) {
      assert.match(await manage('GET', `/gateway/v1/requests/${request}?expand=bill`), /"state":"settled"/)
      await manage('GET', `/gateway/v1/requests/${request}/bodies`)
    }
    for (const path of ['accounts', `accounts/${id}`, `events?${account}`, `events?${account}&format=csv`])
      await manage('GET', `/gateway/v1/${path}`)
    for (const format of ['json', 'csv', 'ndjson'])
      await manage('GET', `/gateway/v1/requests?${account}&format=${format}`)
    await manage('GET', `/v1/usage?${account}&group_by=model,key&format=csv`)
    for (const path of [`/gateway/v1/overview?${account}`, `/gateway/v1/webhooks?${account}`, '/metrics'])
      await manage('GET', path)
    tollgate.signal('SIGTERM')
    const { stdout, stderr } = await tollgate.finished
    note('stdout', stdout)
    note('stderr', stderr)
    const file = join(tollgate.dataDir, 'export.ndjson')
    for (const args of [['export', file], ['doctor'], ['audit']]) {
      const run = await runCommand(args, tollgate.environment)
      assert.equal(run.code, 0, run.stderr)
      note(args.join(' '), run.stdout + run.stderr)
    }
    assert.ok(/^\["acct_.*\/v1","[\w+/=]{60,}",/m.test(readFileSync(file, 'utf8')), 'ciphertext is exported')
    places.push(...(await columnsOf(tollgate)), ...filesOf(tollgate.dataDir))
    const canaries = [
      { name: 'the first key', value: OWN_KEY },
      { name: 'the second key', value: ROTATED },
    ]
    // The error for an unknown field repeats its name, like any other text of the sender.
    const searched = places.filter(({ bytes }) => !bytes.includes('is not a field'))
    assert.deepEqual(findLeaks(canaries, searched), [])
  } finally {
    await tollgate.dispose()
    await upstream.close()
  }
})
