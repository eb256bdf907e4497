import { useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { ClientSetup } from './clients.tsx'
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
