import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

/** A program: one call with each official SDK, to the gateway in `URL` with the key in `KEY`. */
const { URL: url, KEY: apiKey } = process.env
const anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 })
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const messages = [{ role: 'user', content: 'Hello' }] as const
const message = await anthropic.messages.create({
  model: 'claude-haiku-5-5',
  max_tokens: 64,
  messages: [...messages],
})
const stream = await openai.chat.completions.create({
  model: 'gpt-6-luna',
  messages: [...messages],
  stream: true,
})
let chunks = 0
for await (const _ of stream) chunks += 1
console.log(JSON.stringify({ message: message.type, streamed: chunks > 1 }))
