import assert from 'node:assert/strict'
import { test } from '../../support/suite.ts'
import { type Json, meterBody, meterPieces, meterStream, part, streamOf, words } from './replies.ts'

test('embeddings are input only, however large their vectors', () => {
  const data = Array.from({ length: 40 }, (_, index) => ({
    index,
    embedding: Array(1500).fill(-0.012345678),
  }))
  const metered = meterBody('embeddings', {
    object: 'list',
    data,
    model: 'text-embedding-3-small',
    usage: { prompt_tokens: 8, total_tokens: 8 },
  })
  assert.deepEqual(metered.usage.parts, [words('in 8')])
  assert.equal(metered.usage.modelServed, 'text-embedding-3-small')
  assert.equal(metered.inputKnown && metered.outputKnown, true)
  assert.equal(metered.fault, null)
})

const imageUsage: Json = {
  input_tokens: 50,
  input_tokens_details: { text_tokens: 20, image_tokens: 30 },
  output_tokens: 400,
  total_tokens: 450,
}
const b64_json = 'iVBORw0KGgo'.repeat(20_000)

test('images, whole or streamed, split input into text and pictures, and all output is pictures', () => {
  const expected = [words('in 20 imageIn 30 imageOut 400')]
  const body = meterBody('images', { created: 1, data: [{ b64_json }], usage: imageUsage })
  assert.deepEqual(body.usage.parts, expected)
  for (const kind of ['image_generation', 'image_edit']) {
    const stream = meterStream(
      'images',
      streamOf([
        { type: `${kind}.partial_image`, partial_image_index: 0, b64_json },
        { type: `${kind}.completed`, b64_json, usage: imageUsage },
      ]),
    )
    assert.deepEqual(stream.usage, body.usage)
    assert.equal(stream.stage, 'over')
    assert.equal(stream.fault, null)
  }
  assert.equal(body.usage.modelServed, null)
})

test('a stream of several images closes each with its own usage', () => {
  const completed = { type: 'image_generation.completed', b64_json: '', usage: imageUsage }
  const metered = meterStream('images', streamOf([completed, completed]))
  assert.equal(metered.usage.parts.length, 2)
  assert.equal(metered.outputTokensSeen, 800)
  assert.equal(metered.usage.suspect, false)
})

test('usage of images may have text output, and vector images of a second model', () => {
  const metered = meterBody('images', {
    created: 1,
    data: [],
    usage: { ...imageUsage, output_tokens_details: { image_tokens: 390, text_tokens: 10 } },
    svg_usage: {
      model: 'gpt-6-svg',
      input_tokens: 7,
      output_tokens: 8,
      reasoning_tokens: 3,
      total_tokens: 15,
    },
  })
  assert.deepEqual(metered.usage.parts, [
    words('in 20 imageIn 30 imageOut 390 out 10'),
    words('in 7 out 8', 'gpt-6-svg'),
  ])
})

test('speech states its usage in the last event of a stream, and none as plain audio', () => {
  const stream = meterStream(
    'speech',
    streamOf([
      { type: 'speech.audio.delta', audio: 'UklGRg==' },
      { type: 'speech.audio.done', usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } },
    ]),
  )
  assert.deepEqual(stream.usage.parts, [part({ input_tokens: 14, audio_output_tokens: 101 }, 14)])
  assert.equal(stream.stage, 'over')
  const audio = meterPieces('speech', 'audio/mpeg', [
    Buffer.from('{"usage":{"input_tokens":1,"output_tokens":1}}'),
  ])
  assert.deepEqual(audio.usage.parts, [words('')])
  assert.equal(audio.inputKnown || audio.outputKnown, false)
  assert.equal(audio.stage, 'over')
})

test('all output of speech is audio, whatever its details state', () => {
  const usage = { input_tokens: 14, output_tokens: 101, output_token_details: { text_tokens: 101 } }
  const stream = meterStream('speech', streamOf([{ type: 'speech.audio.done', usage }]))
  assert.deepEqual(stream.usage.parts, [part({ input_tokens: 14, audio_output_tokens: 101 }, 14)])
})

const heard: Json = {
  type: 'tokens',
  input_tokens: 120,
  input_token_details: { audio_tokens: 100, text_tokens: 20 },
  output_tokens: 30,
  total_tokens: 150,
}

test('transcriptions are billed by tokens or by duration, whole or streamed', () => {
  const tokens = [part({ input_tokens: 20, audio_input_tokens: 100, output_tokens: 30 }, 120)]
  const body = meterBody('transcription', { text: 'Hello, world', usage: heard })
  assert.deepEqual(body.usage.parts, tokens)
  const stream = meterStream(
    'transcription',
    streamOf([
      { type: 'transcript.text.delta', delta: 'Hello, ' },
      { type: 'transcript.text.delta', delta: 'world' },
      { type: 'transcript.text.done', text: 'Hello, world', usage: heard },
    ]),
  )
  assert.deepEqual(stream.usage, body.usage)
  assert.deepEqual(stream.output, body.output)
  const { input_token_details: _, ...bare } = heard
  const bareBody = meterBody('transcription', { text: '', usage: bare })
  assert.deepEqual(bareBody.usage.parts, [part({ audio_input_tokens: 120, output_tokens: 30 }, 120)])
  const seconds = meterBody('transcription', {
    text: '',
    duration: 9.2,
    usage: { type: 'duration', seconds: 9.25 },
  })
  assert.deepEqual(seconds.usage.parts, [part({ audio_input_milliseconds: 9250 }, 0)])
  assert.equal(seconds.inputKnown && seconds.outputKnown, true)
})

test('usage stated several times counts once, at its largest value, and is suspect', () => {
  const done = (seconds: number): Json => ({
    type: 'transcript.text.done',
    usage: { type: 'duration', seconds },
  })
  const metered = meterStream('transcription', streamOf([done(3), done(5), done(4)]))
  assert.deepEqual(metered.usage.parts, [part({ audio_input_milliseconds: 5000 }, 0)])
  assert.equal(metered.usage.suspect, true)
})
