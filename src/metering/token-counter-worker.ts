import { parentPort } from 'node:worker_threads'
import { GptEncoding } from 'gpt-tokenizer/GptEncoding'
import { readVocabulary } from './token-vocabulary.ts'

const { countTokens } = GptEncoding.getEncodingApi('o200k_base', readVocabulary)

parentPort?.on('message', ({ id, texts }: { id: number; texts: readonly string[] }) => {
  // Text that looks like a special token is text here: users may write what they like.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }
  const tokens = texts.reduce((sum, text) => sum + countTokens(text, options), 0)
  parentPort?.postMessage({ id, tokens })
})
