import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { type CountAnswer, CountTurns, SLICE_CHARS_MAX } from '../../src/metering/count-turns.ts'
import { roughTokens } from '../../src/metering/rough-tokens.ts'

/** Turns with a tokenizer that takes every character for a token and notes its texts. */
function start() {
  const answers: CountAnswer[] = []
  const counted: string[] = []
  const turns = new CountTurns(
    (text) => {
      counted.push(text)
      return text.length
    },
    (answer) => answers.push(answer),
  )
  return { turns, answers, counted }
}

function finish(turns: CountTurns): number {
  let steps = 0
  while (turns.step()) steps++
  return steps
}

const promptOf = (text: string) => Buffer.from(JSON.stringify({ prompt: text }))

test('the work for a text grows with its length: a slice a turn, none longer than the tokenizer can take', () => {
  for (const chars of [1, 64_000, 640_000]) {
    const { turns, answers, counted } = start()
    turns.take({ kind: 'texts', id: 1, texts: ['世'.repeat(chars)] })
    assert.equal(finish(turns), Math.ceil(chars / SLICE_CHARS_MAX))
    assert.ok(counted.every((text) => text.length <= SLICE_CHARS_MAX))
    assert.deepEqual(answers, [{ id: 1, kind: 'done', tokens: chars, isUnread: false }])
  }
})

test('a short text is counted at once, though any number of long ones were asked for before', () => {
  const { turns, answers } = start()
  for (let id = 0; id < 100; id++) turns.take({ kind: 'texts', id, texts: ['世'.repeat(64_000)] })
  for (let i = 0; i < 1_000; i++) turns.step()
  turns.take({ kind: 'texts', id: 100, texts: ['short'] })
  turns.step()
  assert.deepEqual(answers, [{ id: 100, kind: 'done', tokens: 5, isUnread: false }])
})

test('those who ask for the same get the same: none is a turn ahead of another', () => {
  const { turns, counted } = start()
  for (const [id, letter] of ['a', 'b', 'c'].entries())
    turns.take({ kind: 'texts', id, texts: [letter.repeat(5 * SLICE_CHARS_MAX)] })
  finish(turns)
  assert.equal(counted.map((text) => text.charAt(0)).join(''), 'abcabcabcabcabc')
})

test('what is beyond the limit of a call is not counted but taken by its script', () => {
  const { turns, answers, counted } = start()
  const max = limits.countedSlicesMax * SLICE_CHARS_MAX
  const texts = ['x'.repeat(max), '世'.repeat(9 * SLICE_CHARS_MAX)]
  turns.take({ kind: 'texts', id: 1, texts })
  assert.equal(finish(turns), limits.countedSlicesMax)
  assert.equal(counted.join('').length, max)
  assert.equal(answers[0]?.tokens, max + roughTokens(texts.slice(1), 'chat'))
})

test('a million tiny texts are as much work as one text of a million characters', () => {
  const { turns, counted } = start()
  turns.take({ kind: 'texts', id: 1, texts: Array.from({ length: 1_000_000 }, () => 'a') })
  assert.equal(finish(turns), Math.ceil(1_000_000 / SLICE_CHARS_MAX))
  assert.equal(counted.length, 1_000_000)
})

test('a body comes piece by piece, and the next is asked for when nothing of the last is left', () => {
  const { turns, answers, counted } = start()
  const body = promptOf('a'.repeat(SLICE_CHARS_MAX * 3))
  const half = body.length >> 1
  turns.take({ kind: 'body', id: 1, countedAs: 'chat', piece: body.subarray(0, half), isLast: false })
  finish(turns)
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['more'],
  )
  assert.equal(answers[0]?.tokens, counted.join('').length)
  turns.take({ kind: 'body', id: 1, countedAs: 'chat', piece: body.subarray(half), isLast: true })
  finish(turns)
  assert.deepEqual(answers[1], { id: 1, kind: 'done', tokens: SLICE_CHARS_MAX * 3, isUnread: false })
})

test('a body for Messages needs no tokenizer', () => {
  const { turns, answers, counted } = start()
  turns.take({ kind: 'body', id: 1, countedAs: 'messages', piece: promptOf('x'.repeat(3_500)), isLast: true })
  finish(turns)
  assert.deepEqual(counted, [])
  assert.equal(answers[0]?.tokens, 1_000)
})

test('what is no JSON object is said to be unread', () => {
  const { turns, answers } = start()
  turns.take({ kind: 'body', id: 1, countedAs: 'chat', piece: Buffer.from('prompt=x'), isLast: true })
  finish(turns)
  assert.equal(answers[0]?.isUnread, true)
})

test('a count that nobody waits for any more is given up', () => {
  const { turns, answers } = start()
  turns.take({ kind: 'texts', id: 1, texts: ['x'.repeat(10_000)] })
  turns.step()
  turns.take({ kind: 'drop', id: 1 })
  assert.equal(turns.step(), false)
  assert.deepEqual(answers, [])
})
