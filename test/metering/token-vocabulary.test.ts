import assert from 'node:assert/strict'
import { test } from 'node:test'
import compiled from 'gpt-tokenizer/bpeRanks/o200k_base'
import { readVocabulary } from '../../src/metering/token-vocabulary.ts'

test("what is read of the vocabulary is what the tokenizer's own module has, token by token", () => {
  const read = readVocabulary()
  assert.equal(read.length, compiled.length)
  const differing = compiled.flatMap((token, rank) =>
    String(token) === String(read[rank]) && typeof token === typeof read[rank] ? [] : [rank],
  )
  assert.deepEqual(differing, [])
})
