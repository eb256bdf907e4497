import { useState } from 'preact/hooks'
import { usePermissions, useResource } from '../data.ts'
import { Button } from '../parts/button.tsx'
import { SecretDialog } from '../parts/secret-dialog.tsx'
import { Failure, Heading } from '../parts/states.tsx'
import { WebhookTable } from '../parts/webhook-table.tsx'
import { setQuery } from '../router.tsx'
import { OneWebhook } from './webhook.tsx'
import { WebhookForm } from './webhook-form.tsx'

/** Lists webhooks with their events and deliveries. */
export function WebhooksPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const webhooks = useResource('/gateway/v1/webhooks', { limit: 100 }, 5_000)
  const id = query.get('id')
  // An operator may open a webhook of another account, or one beyond the list.
  const isListed = webhooks.value?.data.some((each) => each.id === id) ?? true
  const other = useResource('/gateway/v1/webhooks/{id}', isListed ? null : { id }, 5_000)
  const chosen =
    webhooks.value?.data.find((each) => each.id === id) ?? (other.value?.id === id ? other.value : null)
  function refresh(): void {
    webhooks.refresh()
    other.refresh()
  }
  const create = (title: string) =>
    mayManage && <Button title={title} kind="primary" onClick={() => setCreating(true)} />
  return (
    <>
      <Heading title="Webhooks">{create('New webhook')}</Heading>
      <WebhookTable webhooks={webhooks} chosen={id} action={create('Add a webhook')} />
      {other.error !== null && !isListed && <Failure error={other.error} onRetry={other.refresh} />}
      {chosen !== null && <OneWebhook of={chosen} onChanged={refresh} onSecret={setSecret} />}
      {isCreating && (
        <WebhookForm
          edited={null}
          onClose={() => setCreating(false)}
          onDone={(made) => {
            setCreating(false)
            setSecret(made.secret ?? null)
            setQuery({ id: made.id })
            webhooks.refresh()
          }}
        />
      )}
      {secret !== null && (
        <SecretDialog
          title="The signing secret"
          secret={secret}
          hint="Your receiver checks signatures with it."
          onClose={() => setSecret(null)}
        />
      )}
    </>
  )
}
