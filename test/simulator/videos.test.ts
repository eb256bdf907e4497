import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { dig, digList, digText } from './dig.ts'
import { postJson, type Sent, send } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
})
afterEach(() => simulator.close())

const PROMPT = { prompt: 'A gate that opens' }
const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/videos', { ...PROMPT, ...more }, sent)
const look = async (id: string) => (await send(simulator, 'GET', `/v1/videos/${id}`)).json
const facts = (video: unknown) => ['model', 'seconds', 'size', 'status'].map((name) => dig(video, name))

/** A completed video; resolves with its id. */
async function completed(more: object = {}): Promise<string> {
  const { json } = await create(more)
  nowMs += 3_600_000
  return digText(json, 'id')
}

async function postForm(path: string, fields: Record<string, string>) {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  const response = await fetch(`${simulator.chatUrl}${path}`, { method: 'POST', body })
  return { status: response.status, json: (await response.json()) as unknown }
}

test('a video is queued, in progress and completed, and what was left out is four seconds of sora-2', async () => {
  const { json } = await create()
  assert.deepEqual(facts(json), ['sora-2', '4', '720x1280', 'queued'])
  const id = digText(json, 'id')
  const seen: unknown[] = []
  for (const at of [1_999, 2_000, 16_999, 17_000]) {
    nowMs = at
    seen.push(dig(await look(id), 'status'))
  }
  assert.deepEqual(seen, ['queued', 'in_progress', 'in_progress', 'completed'])
  assert.equal(dig(await look(id), 'progress'), 100)
  const content = await fetch(`${simulator.chatUrl}/videos/${id}/content`)
  assert.equal(content.headers.get('content-type'), 'video/mp4')
  assert.match(await content.text(), /ftypisom/)
})

test('a form says the same as JSON, and seconds are a string or a number', async () => {
  const asked = { model: 'sora-2-pro', seconds: '8', size: '1792x1024' }
  const form = await postForm('/videos', { ...PROMPT, ...asked })
  assert.deepEqual(facts(form.json), ['sora-2-pro', '8', '1792x1024', 'queued'])
  assert.deepEqual(facts((await create({ ...asked, seconds: 8 })).json), facts(form.json))
})

test('what upstream does not make is refused', async () => {
  const refused = [{ seconds: '5' }, { seconds: 'x' }, { size: '1792x1024' }, { size: '9x9' }]
  for (const more of refused) assert.equal((await create(more)).status, 400, JSON.stringify(more))
  assert.equal((await create({ model: 'gpt-6-luna' })).status, 404)
  assert.equal((await postJson(simulator, '/v1/videos', {})).status, 400)
})

test('remixes and edits are like their source, and an extension is longer by what it adds', async () => {
  const id = await completed({ model: 'sora-2-pro-2025-10-06', seconds: '8', size: '1024x1792' })
  const remix = await postJson(simulator, `/v1/videos/${id}/remix`, PROMPT)
  assert.deepEqual(facts(remix.json), ['sora-2-pro-2025-10-06', '8', '1024x1792', 'queued'])
  assert.equal(dig(remix.json, 'remixed_from_video_id'), id)
  const edit = await postJson(simulator, '/v1/videos/edits', { ...PROMPT, video: { id } })
  assert.deepEqual(facts(edit.json), facts(remix.json))
  const extension = await postForm('/videos/extensions', { ...PROMPT, seconds: '12', 'video[id]': id })
  assert.equal(dig(extension.json, 'seconds'), '20')
  const early = await postJson(simulator, `/v1/videos/${digText(remix.json, 'id')}/remix`, PROMPT)
  assert.equal(early.status, 400)
})

test('a video fails where it is told to, and is listed and deleted when it is over', async () => {
  const { json } = await create({}, { behaviour: 'refusal' })
  const id = digText(json, 'id')
  assert.equal((await send(simulator, 'DELETE', `/v1/videos/${id}`)).status, 409)
  nowMs = 60_000
  const failed = await look(id)
  assert.deepEqual(
    [dig(failed, 'status'), dig(failed, 'error.code'), dig(failed, 'completed_at')],
    ['failed', 'moderation_blocked', null],
  )
  assert.equal(digList((await send(simulator, 'GET', '/v1/videos')).json, 'data').length, 1)
  assert.equal(dig((await send(simulator, 'DELETE', `/v1/videos/${id}`)).json, 'deleted'), true)
  assert.equal((await send(simulator, 'GET', `/v1/videos/${id}`)).status, 404)
})
