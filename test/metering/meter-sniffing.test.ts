import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UsageReader } from '../../src/providers/endpoint.ts'
import { cutEvery, type Json, meterPieces, streamOf } from '../providers/usage/replies.ts'

/** Replies without a telling content type. */

const body = JSON.stringify({
  object: 'chat.completion',
  model: 'm',
  usage: { prompt_tokens: 7, completion_tokens: 3 },
})
const stream = streamOf([
  { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] },
  { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } } as Json,
  '[DONE]',
])

const readable: readonly (readonly [says: string, reply: string])[] = [
  ['a document', body],
  ['a document behind blanks and the ends of lines', ` \r\n\t\n${body}`],
  ['a document behind a byte order mark', `\ufeff${body}`],
  ['events', stream],
  ['events behind a byte order mark', `\ufeff${stream}`],
  ['events behind a comment', `: one moment\n\n${stream}`],
  ['events behind empty lines', `\n\r\n${stream}`],
  ['events that begin with a name', `event: chunk\n${stream}`],
  ['events that begin with an id', `id: 1\n${stream}`],
  ['events that begin with a pause', `retry:5\n\n${stream}`],
]

for (const [says, reply] of readable) {
  test(`${says} of an unknown type is read, however it is cut`, () => {
    for (const type of ['', 'text/plain; charset=utf-8', 'binary/octet-stream']) {
      for (const size of [1, 2, 3, 5, 7, 1_000_000]) {
        const metered = meterPieces('chat', type, cutEvery(Buffer.from(reply), size))
        const [part] = metered.usage.parts
        assert.deepEqual(part?.quantities, { input_tokens: 7, output_tokens: 3 }, `${type} ${size}`)
        assert.equal(metered.inputKnown && metered.outputKnown, true)
      }
    }
  })
}

const silent: readonly (readonly [
  says: string,
  reader: UsageReader,
  type: string,
  reply: string,
  spoken?: string,
])[] = [
  [
    'plain text',
    'transcription',
    'text/plain',
    'I said: data: {"usage":{"input_tokens":1}}',
    'I said: data: {"usage":{"input_tokens":1}}\n',
  ],
  ['subtitles', 'transcription', 'text/vtt', 'WEBVTT\n\n00:00.000 --> 00:01.000\nid: 5\n', 'id: 5\n'],
  ['a short text', 'transcription', 'text/plain', 'Yes.', 'Yes.\n'],
  [
    'subtitles with numbers',
    'transcription',
    'application/x-subrip',
    '1\n00:00:00,000 --> 00:00:01,000\nx\n',
    'x\n',
  ],
  ['text that only begins like a document', 'transcription', 'text/plain', '{sighs} Well, then.'],
  ['text that only begins like events', 'transcription', 'text/plain', 'data: the plural of datum.'],
  [
    'audio that looks like a document',
    'speech',
    'audio/pcm',
    '{"usage":{"input_tokens":1,"output_tokens":1}}',
  ],
  ['nothing', 'chat', '', ''],
  ['nothing but blanks', 'chat', '', ' \n'],
  ['less than a word', 'chat', '', 'dat'],
]

for (const [says, reader, type, reply, spoken] of silent) {
  test(`${says} says nothing of usage`, () => {
    for (const size of [1, 1_000_000]) {
      const metered = meterPieces(reader, type, cutEvery(Buffer.from(reply), size))
      assert.equal(metered.inputKnown || metered.outputKnown, false)
      assert.deepEqual(metered.usage.parts, [{ model: null, quantities: {}, promptTokens: 0 }])
      assert.deepEqual(metered.output.texts, spoken === undefined ? [] : [spoken])
    }
  })
}
