import { useContext, useState } from 'preact/hooks'
import { type AdminKey, type CreatedAdminKey, send } from '../api.ts'
import { SignedIn, useAccountId, usePermissions, useResource } from '../data.ts'
import { capitalize } from '../format.ts'
import { Id } from '../parts/copy.tsx'
import { DangerButton, DialogButton, type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { SelectField, TextField } from '../parts/fields.tsx'
import { Fact, Facts } from '../parts/figures.tsx'
import { Listed, usePages } from '../parts/listed.tsx'
import { SecretDialog } from '../parts/secret-dialog.tsx'
import { Heading, Loaded, Tag } from '../parts/states.tsx'
import { actionColumn, nameColumn, timeColumn } from '../parts/table.tsx'
import { WebhookTable } from '../parts/webhook-table.tsx'
import { Link } from '../router.tsx'

const ROLES = {
  viewer: 'can read keys, usage, requests, activity and credit',
  admin: 'can also manage keys, webhooks and admin keys of the account',
  operator: 'can do everything, in all accounts',
} as const
type Role = keyof typeof ROLES

/** Lists the admin keys, and the thresholds of alerts. */
export function SettingsPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage, isOperator } = usePermissions()
  const role = useContext(SignedIn)?.role
  const keys = usePages('/gateway/v1/admin-keys', query, {})
  const overview = useResource('/gateway/v1/overview', {})
  const webhooks = useResource('/gateway/v1/webhooks', { limit: 100 }, 10_000)
  const mayRevoke = ({ status, role }: AdminKey) =>
    mayManage && status === 'usable' && (isOperator || role !== 'operator')
  return (
    <>
      <Heading title="Settings">
        {mayManage && (
          <DialogButton title="New admin key" kind="primary" onDone={keys.refresh}>
            {(callbacks) => <AdminKeyForm isOperator={isOperator} {...callbacks} />}
          </DialogButton>
        )}
      </Heading>
      <Facts>
        <Fact title="Base URL" value={<Id id={location.origin} />} />
        <Fact title="Your role" value={`${capitalize(role ?? '')}: ${ROLES[role as Role]}`} />
      </Facts>
      <h2>Admin keys</h2>
      <Listed
        of={keys}
        lines={3}
        caption="Admin keys"
        empty={<p class="quiet">None yet.</p>}
        rowClass={({ status }) => (status === 'usable' ? undefined : 'dead')}
        columns={[
          nameColumn<AdminKey>({
            name: ({ name }) => name,
            tag: ({ status }) => status !== 'usable' && <Tag kind="plain">{status}</Tag>,
          }),
          { title: 'Role', cell: ({ role }) => <span title={ROLES[role]}>{capitalize(role)}</span> },
          timeColumn<AdminKey>('Last used', ({ last_used_at }) => last_used_at),
          timeColumn<AdminKey>('Created', ({ created_at }) => created_at, { isMinor: true }),
          {
            title: 'Key',
            isMinor: true,
            cell: ({ prefix, last4 }) => (
              <code class="quiet">{prefix === '' ? 'from the environment' : `${prefix}…${last4}`}</code>
            ),
          },
          actionColumn<AdminKey>(
            (key) =>
              mayRevoke(key) && (
                <DangerButton
                  verb="Revoke"
                  noun="this admin key"
                  name={key.name}
                  kind="link"
                  run={() => send('POST /gateway/v1/admin-keys/{id}/revoke', { id: key.id })}
                  onDone={keys.refresh}
                >
                  It stops working at once, and its sessions end. This cannot be undone.
                </DangerButton>
              ),
          ),
        ]}
      />
      <h2>Alerts</h2>
      <Loaded resource={overview} lines={1}>
        {({ alert_thresholds_percent: percents }) => (
          <p class="measure">
            Tollgate records an event when a key or account reaches{' '}
            <b>{percents.map((percent) => `${percent}%`).join(', ')}</b> or <b>100%</b> of its budget. The
            event is listed in <Link to="/activity">Activity</Link>, and <Link to="/webhooks">webhooks</Link>{' '}
            deliver it. To change the percentages, set <code>webhooks.thresholds_percent</code> in
            tollgate.json.
          </p>
        )}
      </Loaded>
      <WebhookTable webhooks={webhooks} />
    </>
  )
}

function AdminKeyForm({ isOperator, ...callbacks }: FormCallbacks<void> & { readonly isOperator: boolean }) {
  const [created, setCreated] = useState<CreatedAdminKey | null>(null)
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const account = useAccountId()
  const account_id = role === 'operator' ? undefined : account
  const offered = (Object.keys(ROLES) as Role[]).filter((each) => isOperator || each !== 'operator')
  if (created !== null)
    return (
      <SecretDialog
        title={`Admin key “${created.name}” created`}
        secret={created.key}
        hint="Use it to sign in here, and as the bearer token of the management API."
        onClose={callbacks.onDone}
      />
    )
  return (
    <FormDialog
      title="New admin key"
      submit="Create admin key"
      onClose={callbacks.onClose}
      onSubmit={() => send('POST /gateway/v1/admin-keys', {}, { name, role, account_id })}
      onDone={setCreated}
    >
      <TextField
        label="Name"
        hint="The person or system that uses the key. Activity shows the name."
        maxLength={120}
        isRequired
        value={name}
        onInput={setName}
      />
      <SelectField
        label="Role"
        hint={`${role === 'viewer' ? 'A' : 'An'} ${role} ${ROLES[role]}.`}
        options={Object.fromEntries(offered.map((each) => [each, each]))}
        value={role}
        onInput={(each) => setRole(each as Role)}
      />
    </FormDialog>
  )
}
