import { GptEncoding } from 'gpt-tokenizer/GptEncoding'
import { readVocabulary } from '../../src/metering/token-vocabulary.ts'

const encoding = GptEncoding.getEncodingApi('o200k_base', readVocabulary)
encoding.setMergeCacheSize(0)

/** Counts the tokens of a text as a whole, with the tokenizer itself. */
export function realTokens(text: string): number {
  return encoding.countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() })
}
