import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ReadingPace } from '../../src/metering/reading-pace.ts'
import { audioMs, sessionEvent, sessionMessage } from '../../src/providers/realtime-events.ts'
import { test } from '../support/suite.ts'

const read = (message: unknown) =>
  sessionMessage(
    Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)),
    new ReadingPace(),
  )

async function readEvent(message: unknown) {
  const event = await read(message)
  assert.ok(event.kind === 'event', JSON.stringify(event))
  return event
}

test('an event has its type and id, and its audio is measured without decoding it', async () => {
  const audio = Buffer.alloc(4_800, 7).toString('base64')
  const event = await readEvent({ type: 'input_audio_buffer.append', event_id: 'mine', audio })
  assert.equal(event.type, 'input_audio_buffer.append')
  assert.equal(event.eventId, 'mine')
  assert.equal(event.audioBytes, audio.length)
  assert.equal(audioMs(event.audioBytes, 48), 100)
  assert.equal(event.session, null)
})

test('a session states its model, its transcription and its format', async () => {
  const { session } = await readEvent({
    type: 'session.update',
    session: {
      model: 'gpt-realtime',
      audio: { input: { format: { type: 'audio/pcmu' }, transcription: { model: 'whisper-1' } } },
    },
  })
  assert.deepEqual(session, {
    model: 'gpt-realtime',
    transcription: { model: 'whisper-1' },
    bytesPerMs: 8,
    spokenBytesPerMs: undefined,
  })
  const off = await readEvent({
    type: 'session.update',
    session: { audio: { input: { transcription: null } } },
  })
  assert.equal(off.session?.transcription, null)
  const older = await readEvent({
    type: 'transcription_session.update',
    session: { input_audio_transcription: { model: 'whisper-1' } },
  })
  assert.deepEqual(older.session?.transcription, { model: 'whisper-1' })
})

for (const message of [
  '',
  'no json',
  '[]',
  '"response.create"',
  '{"type":"response.create"',
  '{"type":"response.create"} {}',
  '{"type":"a","type":"response.create"}',
  '{"TYPE":"response.create"}',
  '{"type\\u0000":"response.create"}',
  '{"type":7}',
  '{"type":{"a":1}}',
  '{"type":"session.update","session":{"model":["a"]}}',
  '{"type":"session.update","session":{"model":"a"},"session":{"model":"b"}}',
  '{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"a","model":"b"}}}}}',
  '{"type":"session.update","session":{"audio":{"input":{"transcription":null}},"input_audio_transcription":{"model":"a"}}}',
  '{"type":"input_audio_buffer.append","audio":"AAAA","audio":"AA"}',
]) {
  test(`an ambiguous or invalid message is unreadable: ${message}`, async () => {
    assert.equal((await read(message)).kind, 'unreadable')
  })
}

test('no message makes the reader throw', () => {
  fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const message = await sessionMessage(Buffer.from(bytes), new ReadingPace())
      assert.ok(message.kind === 'event' || message.detail.length > 0)
    }),
  )
})

test('an upstream event has its response, its usage and the size of its delta', () => {
  const usage = {
    total_tokens: 30,
    input_tokens: 10,
    output_tokens: 20,
    input_token_details: { text_tokens: 10, cached_tokens: 4, cached_tokens_details: { text_tokens: 4 } },
    output_token_details: { text_tokens: 5, audio_tokens: 15 },
  }
  const response = { id: 'resp_1', status: 'completed', output: [{ usage: { input_tokens: 9 } }], usage }
  const done = sessionEvent(Buffer.from(JSON.stringify({ type: 'response.done', response })))
  assert.equal(done?.responseId, 'resp_1')
  assert.equal(done?.status, 'completed')
  assert.deepEqual(done?.usage, usage)
  const delta = { type: 'response.output_audio.delta', response_id: 'resp_1', delta: 'AAAA' }
  const said = sessionEvent(Buffer.from(JSON.stringify(delta)))
  assert.equal(said?.responseId, 'resp_1')
  assert.equal(said?.deltaBytes, 4)
  const failed = { type: 'error', error: { event_id: 'mine', message: 'no' } }
  assert.equal(sessionEvent(Buffer.from(JSON.stringify(failed)))?.aboutEventId, 'mine')
  assert.equal(sessionEvent(Buffer.from('garbage')), null)
})
