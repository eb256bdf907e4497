import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClientEvent, textBytesOf } from '../../../src/gateway/turns/session-door.ts'

const words = (type: string) =>
  textBytesOf({ type, audioBytes: 4 } as unknown as ClientEvent, Buffer.from('{"audio":"AAAA"}'))

test('what a message brings beside its sound is words, unless it can bring nothing but sound', () => {
  for (const prefix of ['input_audio_buffer', 'session.input_audio_buffer', 'session.input_audio'])
    assert.equal(words(`${prefix}.append`), 0)
  for (const type of ['response.item.create', 'session.commentary.append', 'conversation.item.create'])
    assert.equal(words(type), '{"audio":""}'.length)
})
