import type { Call } from '../call.ts'
import { seededChance, seedFromText } from '../chance.ts'
import { isObject } from '../json.ts'
import { embeddingInputsMax } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { invalid, missing, parseChatBody, requireModel } from './chat-body.ts'
import { chatHeaders } from './chat-headers.ts'

/** A category, the kinds of input it applies to, and the plain words that set the category off here. */
const categories: readonly (readonly [name: string, inputs: readonly string[], words: RegExp])[] = [
  ['harassment', ['text'], /\b(idiot|loser)\b/i],
  ['harassment/threatening', ['text'], /\bwatch your back\b/i],
  ['hate', ['text'], /\bhate (them|those people)\b/i],
  ['hate/threatening', ['text'], /\bwipe them out\b/i],
  ['illicit', ['text'], /\bshoplift\b/i],
  ['illicit/violent', ['text'], /\bbuild a bomb\b/i],
  ['self-harm', ['text', 'image'], /\bhurt myself\b/i],
  ['self-harm/instructions', ['text', 'image'], /\bhow to hurt myself\b/i],
  ['self-harm/intent', ['text', 'image'], /\bgoing to hurt myself\b/i],
  ['sexual', ['text', 'image'], /\bexplicit content\b/i],
  ['sexual/minors', ['text'], /(?!)/],
  ['violence', ['text', 'image'], /\b(kill|murder|attack)\b/i],
  ['violence/graphic', ['text', 'image'], /\bgore\b/i],
]

/** POST /v1/moderations */
export function createModeration(call: Call): Reply {
  const body: { model?: unknown; input?: unknown } = parseChatBody(call)
  if (body.input === undefined || body.input === null) throw missing('input')
  const model = requireModel(body.model ?? 'omni-moderation-latest', 'v1/moderations', ['moderation'])
  const moderation = {
    id: `modr-${call.identity.base62(29)}`,
    model: model.snapshot,
    results: readTexts(body.input).map(judge),
  }
  return jsonReply(200, moderation, { headers: chatHeaders(call.identity), pace: model.pace })
}

/** One result per text; parts of a multi-modal input are judged together. */
function readTexts(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) throw invalid('input', 'a string or an array')
  if (input.length === 0 || input.length > embeddingInputsMax) {
    throw new Refusal(400, `Invalid 'input': expected 1 to ${embeddingInputsMax} items.`, { param: 'input' })
  }
  if (input.every((item) => typeof item === 'string')) return input
  return [input.map((item) => (isObject(item) ? String(item['text'] ?? '') : '')).join(' ')]
}

function judge(text: string): object {
  const chance = seededChance(seedFromText(text))
  const verdicts = categories.map(([name, inputs, words]) => {
    const isFlagged = words.test(text)
    return { name, inputs, isFlagged, score: isFlagged ? 0.9 + chance() / 10 : chance() / 1_000 }
  })
  return {
    flagged: verdicts.some((verdict) => verdict.isFlagged),
    categories: Object.fromEntries(verdicts.map(({ name, isFlagged }) => [name, isFlagged])),
    category_scores: Object.fromEntries(verdicts.map(({ name, score }) => [name, score])),
    category_applied_input_types: Object.fromEntries(verdicts.map(({ name, inputs }) => [name, inputs])),
  }
}
