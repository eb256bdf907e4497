import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { countMessagesTokens, createTokenCounter } from '../../src/metering/token-counter.ts'

const counter = createTokenCounter()
after(() => counter.close())

test('text is counted with the o200k vocabulary, each piece on its own', async () => {
  // " tokenizer" is one token of o200k, "Hello" and "," are one each.
  assert.equal(await counter.countChat(['Hello, tokenizer']), 3)
  assert.equal(await counter.countChat(['Hello', 'Hello']), 2)
})

test('nothing is no token, and needs no counting', async () => {
  assert.equal(await counter.countChat([]), 0)
  assert.equal(await counter.countChat(['', '']), 0)
})

test('text that looks like a special token is counted as the text it is', async () => {
  assert.ok((await counter.countChat(['<|endoftext|>'])) > 1)
})

test('what is too long to be counted is taken at four characters a token', async () => {
  assert.equal(await counter.countChat(['x'.repeat(8 * 1024 * 1024)]), 2 * 1024 * 1024)
})

test('Messages text is taken at 3.5 characters a token, rounded up', () => {
  assert.equal(countMessagesTokens(0), 0)
  assert.equal(countMessagesTokens(7), 2)
  assert.equal(countMessagesTokens(8), 3)
})
