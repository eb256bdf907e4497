import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { storedResponsesBytesMax } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import { countTokens } from '../tokens.ts'
import { hear } from './spoken-audio.ts'

export interface Counts {
  readonly text: number
  readonly audio: number
  readonly image: number
}

export interface ConversationItem {
  readonly json: JsonObject
  readonly counts: Counts
  /** The words that are said in the item. */
  readonly words: string
  readonly isUser: boolean
  /** Bytes of memory that keeping the item costs. */
  readonly bytes: number
}

export const noTokens: Counts = { text: 0, audio: 0, image: 0 }
const tokensPerMessage = 4
const tokensPerImage = 850
const bytesPerSecond = 48_000
/** Beyond this count, or too many bytes, the oldest items are forgotten, as upstream truncates a conversation. */
const itemsMax = 1_000

/** The items of a session in their order, and how many of their tokens a response has read before. */
export class Conversation {
  readonly #items = new Map<string, ConversationItem>()
  #read: Counts = noTokens

  get items(): readonly ConversationItem[] {
    return [...this.#items.values()]
  }

  find(id: string): ConversationItem {
    const item = this.#items.get(id)
    if (item !== undefined) return item
    throw new Refusal(400, `Error: the item with id '${id}' does not exist.`, {
      code: 'item_not_found',
      param: 'item_id',
    })
  }

  /** Adds an item, or replaces the item with the same id; returns the id of the item before it. */
  add(item: ConversationItem): string | null {
    const ids = [...this.#items.keys()]
    const id = asText(item.json['id'])
    const at = ids.indexOf(id)
    this.#items.set(id, item)
    let bytes = this.items.reduce((sum, kept) => sum + kept.bytes, 0)
    for (const oldest of ids) {
      if (this.#items.size <= itemsMax && bytes <= storedResponsesBytesMax) break
      bytes -= this.#items.get(oldest)?.bytes ?? 0
      this.#items.delete(oldest)
    }
    return (at === -1 ? ids.at(-1) : ids[at - 1]) ?? null
  }

  delete(id: string): void {
    this.find(id)
    this.#items.delete(id)
  }

  /** The tokens that a response reads; tokens that the response before it has read as well come from the cache. */
  read(instructions: string): { input: Counts; cached: Counts } {
    const input = countItems(this.items, instructions)
    const cached = least(input, this.#read)
    this.#read = input
    return { input, cached }
  }
}

export function countItems(items: readonly ConversationItem[], instructions: string): Counts {
  return items.reduce((sum, { counts }) => add(sum, counts), { ...noTokens, text: countTokens(instructions) })
}

function add(one: Counts, other: Counts): Counts {
  return { text: one.text + other.text, audio: one.audio + other.audio, image: one.image + other.image }
}

function least(one: Counts, other: Counts): Counts {
  return {
    text: Math.min(one.text, other.text),
    audio: Math.min(one.audio, other.audio),
    image: Math.min(one.image, other.image),
  }
}

/** An item that a client brings. */
export function readItem(given: unknown, id: string): ConversationItem {
  if (!isObject(given)) throw new Refusal(400, "Invalid 'item': expected an object.", { param: 'item' })
  const type = asText(given['type'])
  const json = { id, object: 'realtime.item', status: 'completed', ...given }
  const isUser = given['role'] === 'user'
  const bytes = Buffer.byteLength(JSON.stringify(given))
  if (type === 'function_call' || type === 'function_call_output') {
    const text = asText(given['output']) || asText(given['arguments'])
    return {
      json,
      counts: { ...noTokens, text: tokensPerMessage + countTokens(text) },
      words: '',
      isUser: false,
      bytes,
    }
  }
  if (type !== 'message') {
    throw new Refusal(400, `Invalid value: '${type}'.`, { param: 'item.type', code: 'invalid_value' })
  }
  let counts: Counts = { ...noTokens, text: tokensPerMessage }
  const words: string[] = []
  for (const part of asArray(given['content'])) {
    const content = isObject(part) ? part : {}
    if (content['type'] === 'input_image') counts = add(counts, { ...noTokens, image: tokensPerImage })
    const audio = Buffer.from(asText(content['audio']), 'base64')
    if (audio.length > 0) {
      const { audioTokens, transcript } = hear(audio.length / bytesPerSecond)
      counts = add(counts, { ...noTokens, audio: audioTokens })
      words.push(transcript)
    }
    const text = asText(content['text']) || asText(content['transcript'])
    counts = add(counts, { ...noTokens, text: countTokens(text) })
    if (text !== '') words.push(text)
  }
  return { json, counts, words: words.join(' '), isUser, bytes }
}

/** The item of speech that a user has spoken. */
export function heardItem(id: string, transcript: string, audioTokens: number): ConversationItem {
  const content = [{ type: 'input_audio', transcript: null }]
  const json = { id, object: 'realtime.item', type: 'message', status: 'completed', role: 'user', content }
  return {
    json,
    counts: { text: tokensPerMessage, audio: audioTokens, image: 0 },
    words: transcript,
    isUser: true,
    bytes: transcript.length,
  }
}
