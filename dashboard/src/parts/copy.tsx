import { useState } from 'preact/hooks'
import s from './copy.module.css'

export const Id = ({ id }: { readonly id: string }) => (
  <span class={s.id}>
    <code>{id}</code>
    <Copy text={id} what={id} />
  </span>
)

interface CopyProps {
  readonly text: string
  readonly what: string
  onCopied?: (() => void) | undefined
}

function Copy({ text, what, onCopied }: CopyProps) {
  const [isCopied, setCopied] = useState(false)
  async function copy(): Promise<void> {
    if (!(await writeToClipboard(text))) return alert('Copying failed. Select the text and copy it.')
    setCopied(true)
    onCopied?.()
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" class={`link ${s.copy}`} aria-label={`Copy ${what}`} onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : 'Copy'}</span>
    </button>
  )
}

/** A text to copy. A long text can be focused with the Tab key, so that arrow keys scroll it. */
export function Snippet({ text, what, onCopied, isCode = false }: CopyProps & { readonly isCode?: boolean }) {
  const isLong = isCode || text.length > 600 || text.split('\n').length > 20
  return (
    <div class={s.snippet}>
      <pre class={isCode ? s.code : undefined} tabIndex={isLong ? 0 : undefined}>
        <code>{text}</code>
      </pre>
      <Copy text={text} what={what} onCopied={onCopied} />
    </div>
  )
}

export function JsonDetails({ of: record }: { readonly of: object }) {
  return (
    <details>
      <summary>JSON</summary>
      <Snippet text={JSON.stringify(record, null, 2)} what="the record" />
    </details>
  )
}

/** Browsers offer the clipboard only over https: and on localhost. Elsewhere, the old command still copies. */
async function writeToClipboard(text: string): Promise<boolean> {
  const written = navigator.clipboard?.writeText(text).then(() => true)
  if (await written?.catch(() => false)) return true
  const area = document.createElement('textarea')
  area.value = text
  const parent = document.querySelector('dialog') ?? document.body
  parent.append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  return isCopied
}
