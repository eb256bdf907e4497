import { useState } from 'preact/hooks'
import type { CreatedKey, Key } from '../api.ts'
import { Button } from './button.tsx'
import { Choices } from './choices.tsx'
import s from './copy.module.css'
import { Snippet } from './copy.tsx'
import { Dialog } from './dialog.tsx'

interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly hint: string
  readonly isApiKey?: boolean
  onClose(): void
}

/** A secret is shown once, so the dialog asks for confirmation if it is closed before the secret was copied. */
export function SecretDialog({ title, secret, hint, isApiKey = false, onClose }: SecretDialogProps) {
  const [isCopied, setCopied] = useState(false)
  const mayClose = () =>
    isCopied || confirm('You have not copied the secret, and it is not shown again. Leave anyway?')
  return (
    <Dialog title={title} isWide={isApiKey} onClose={onClose} mayClose={mayClose}>
      <p>It is shown only once. {hint}</p>
      <div class={s.secret}>
        <Snippet text={secret} what="the secret" onCopied={() => setCopied(true)} />
      </div>
      {isApiKey && (
        <>
          <p>
            Base URL <code>{location.origin}</code>. To set up a client:
          </p>
          <ClientSetup secret={secret} onCopied={() => setCopied(true)} />
        </>
      )}
      <div class="actions">
        <Button title="Done" kind="primary" onClick={() => mayClose() && onClose()} />
      </div>
    </Dialog>
  )
}

const CLIENTS = {
  curl: (base: string, key: string) => `curl ${base}/v1/messages \\
  -H "x-api-key: ${key}" \\
  -H "anthropic-version: 2023-06-01" \\
  -H "content-type: application/json" \\
  -d '{"model":"claude-haiku-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hello"}]}'`,
  'Claude Code': (base: string, key: string) => `export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_AUTH_TOKEN=${key}
unset ANTHROPIC_API_KEY
claude`,
  // The same settings in ~/.codex/config.toml make them permanent.
  Codex: (base: string, key: string) => `export TOLLGATE_KEY=${key}
codex -m gpt-6.1-sol -c model_provider=tollgate \\
  -c model_providers.tollgate.name=Tollgate \\
  -c model_providers.tollgate.base_url=${base}/v1 \\
  -c model_providers.tollgate.env_key=TOLLGATE_KEY \\
  -c model_providers.tollgate.wire_api=responses`,
  'Anthropic SDK': (base: string, key: string) => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${base}', apiKey: '${key}' })
const message = await client.messages.create({
  model: 'claude-haiku-5-5',
  max_tokens: 64,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(message.content)`,
  'OpenAI SDK': (base: string, key: string) => `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' })
const response = await client.responses.create({ model: 'gpt-6-luna', input: 'Hello' })
console.log(response.output_text)`,
  Python: (base: string, key: string) => `from anthropic import Anthropic
from openai import OpenAI

anthropic = Anthropic(base_url="${base}", api_key="${key}")
openai = OpenAI(base_url="${base}/v1", api_key="${key}")
messages = [{"role": "user", "content": "Hello"}]
print(anthropic.messages.create(model="claude-haiku-5-5", max_tokens=64, messages=messages).content)
print(openai.responses.create(model="gpt-6-luna", input="Hello").output_text)`,
}
type Client = keyof typeof CLIENTS

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
      <Snippet text={text} what="the example" onCopied={onCopied} isCode />
    </div>
  )
}

interface NewKeyDialogProps {
  readonly of: CreatedKey
  readonly hint?: string
  onDone(key: Key): void
}

/** The secret of a new key, with the lines for each client. */
export const NewKeyDialog = ({ of: key, hint = '', onDone }: NewKeyDialogProps) => (
  <SecretDialog
    title={`Key “${key.name}” created`}
    secret={key.key ?? ''}
    hint={`Put it where your client reads its API key.${hint}`}
    isApiKey
    onClose={() => onDone(key)}
  />
)
