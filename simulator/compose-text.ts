import { pick, seededChance } from './chance.ts'
import { countTokens, cutToTokens } from './tokens.ts'

const echoCharactersMax = 160

const greetings = [
  'Hello from the simulator.',
  'Good to hear from you.',
  'Thanks for asking.',
  'Happy to help with that.',
  'Here is what the simulator has to say.',
] as const

const sentences = [
  'Nothing was billed anywhere for these words, and nobody had to think about them.',
  'Every token of this reply follows from your request, so the same question gets the same answer.',
  'A real model would now weigh its words; this one counts them.',
  'If you can read this, your client, the gateway and the upstream agree about every byte.',
  'The weather inside a simulator is always mild, with a light breeze of events.',
  'One could go on for a while, and with a larger limit one would.',
  'Small steps, plainly named, carry a system further than clever ones.',
  'Numbers are kind to those who add them up in the right order.',
  'Somewhere a stream is closing properly, and that is a good thing.',
  'Ask for more tokens and there will be more of this.',
] as const

const thoughts = [
  'The user wants a short and friendly answer.',
  'I should say plainly what I know and leave out the rest.',
  'First the question itself, then what follows from it.',
  'There is no tool needed unless the request asks for one.',
  'I can check this by reading the request once more.',
  'It helps to name the thing before explaining it.',
] as const

/** A pleasant answer about `topic`, as long as asked, or of a length that the seed decides. */
export function composeAnswer(topic: string, seed: number, tokensWanted: number | undefined): string {
  const chance = seededChance(seed)
  const echo = shorten(topic)
  const opening = echo === '' ? pick(greetings, chance) : `${pick(greetings, chance)} You wrote: "${echo}".`
  const tokens = tokensWanted ?? countTokens(opening) + 12 + Math.floor(chance() * 70)
  return tokensWanted === undefined
    ? fillWithSentences(opening, sentences, tokens, chance)
    : cutToTokens(fillWithSentences(opening, sentences, tokens, chance), tokens)
}

export function composeThoughts(seed: number, tokens: number): string {
  return cutToTokens(fillWithSentences('', thoughts, tokens, seededChance(seed)), tokens)
}

/** Walks the bank from a place that chance decides, so that no sentence follows itself. */
function fillWithSentences(
  opening: string,
  bank: readonly [string, ...string[]],
  tokens: number,
  chance: () => number,
): string {
  const parts = opening === '' ? [] : [opening]
  let length = opening.length
  let at = Math.floor(chance() * bank.length)
  // The bank is ASCII, so characters are bytes and the loop ends after at most `tokens` rounds.
  while (length < tokens * 4) {
    const sentence = bank[at % bank.length] ?? bank[0]
    parts.push(sentence)
    length += sentence.length + 1
    at += 1
  }
  return parts.join(' ')
}

function shorten(topic: string): string {
  // A topic may be megabytes long; its echo may not.
  const line = topic
    .slice(0, echoCharactersMax * 4)
    .replace(/\s+/g, ' ')
    .trim()
  const characters = Array.from(line)
  return characters.length <= echoCharactersMax ? line : `${characters.slice(0, echoCharactersMax).join('')}…`
}
