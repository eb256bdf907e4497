import { useState } from 'preact/hooks'
import { Choices } from './choices.tsx'
import { Snippet } from './figures.tsx'

const CLIENTS = {
  curl: (
    base: string,
    key: string,
  ) => `curl ${base}/v1/messages -H "x-api-key: ${key}" -H "anthropic-version: 2023-06-01" \\
  -d '{"model":"claude-haiku-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hello"}]}'`,
  'Claude Code': (base: string, key: string) => `export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_AUTH_TOKEN=${key}
unset ANTHROPIC_API_KEY
claude`,
  Codex: (base: string, key: string) => `export TOLLGATE_KEY=${key}

# ~/.codex/config.toml
model = "gpt-6.1-sol"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${base}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"`,
  'Anthropic SDK': (base: string, key: string) => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${base}', apiKey: '${key}' })
await client.messages.create({
  model: 'claude-haiku-5-5',
  max_tokens: 64,
  messages: [{ role: 'user', content: 'Hello' }],
})`,
  'OpenAI SDK': (base: string, key: string) => `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' })
await client.responses.create({ model: 'gpt-6-luna', input: 'Hello' })`,
  Python: (base: string, key: string) => `from anthropic import Anthropic
from openai import OpenAI

anthropic = Anthropic(base_url="${base}", api_key="${key}")
openai = OpenAI(base_url="${base}/v1", api_key="${key}")
openai.responses.create(model="gpt-6-luna", input="Hello")`,
}
type Client = keyof typeof CLIENTS

/** The lines that set up each client, with the base URL of this gateway and the key. */
export function ClientSetup({ secret, onCopied }: { readonly secret: string; onCopied?: () => void }) {
  const [client, setClient] = useState<Client>('curl')
  const text = CLIENTS[client](location.origin, secret)
  return (
    <div class="clients">
      <Choices
        title="Client"
        options={Object.keys(CLIENTS)}
        isChosen={(name) => name === client}
        onChoose={(name) => setClient(name as Client)}
      />
      <Snippet text={text} what="the example" onCopied={onCopied} />
    </div>
  )
}
