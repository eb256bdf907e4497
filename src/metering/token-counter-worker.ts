import { parentPort } from 'node:worker_threads'
import { GptEncoding } from 'gpt-tokenizer/GptEncoding'
import { type CountOrder, CountTurns } from './count-turns.ts'
import { readVocabulary } from './token-vocabulary.ts'

/** Text that looks like a special token is text here: users may write what they like. */
const NO_SPECIAL_TOKENS = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

let encoding: GptEncoding | null = null

/** The vocabulary is loaded when it is first needed: counting for Messages needs none. */
function tokensIn(text: string): number {
  encoding ??= loadEncoding()
  return encoding.countTokens(text, NO_SPECIAL_TOKENS)
}

function loadEncoding(): GptEncoding {
  const loaded = GptEncoding.getEncodingApi('o200k_base', readVocabulary)
  // The tokenizer's cache would keep 100,000 words, each with the text around it, and hardly a prompt has the same
  // rare words again.
  loaded.setMergeCacheSize(0)
  return loaded
}

const turns = new CountTurns(tokensIn, (answer) => parentPort?.postMessage(answer))
let isScheduled = false

/** Does the next turn from the event loop, so that orders that have arrived meanwhile are taken in before it. */
function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    if (turns.step()) schedule()
  })
}

parentPort?.on('message', (order: CountOrder) => {
  turns.take(order)
  schedule()
})
