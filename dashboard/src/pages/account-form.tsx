import { type Account, get, send } from '../api.ts'
import {
  amountText,
  given,
  percentText,
  type Reading,
  readAmount,
  readName,
  readPercent,
} from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import s from '../parts/fields.module.css'
import { AmountField, CheckField, MetadataField, SelectField, TextField } from '../parts/fields.tsx'

export const SURFACES = ['messages', 'chat'] as const
type Surface = (typeof SURFACES)[number]
const SURFACE_NAMES = { messages: 'Messages (Anthropic)', chat: 'Chat (OpenAI)' } as const

interface UpstreamFields {
  /** Whose upstream the calls use. */
  readonly of: 'installation' | 'account'
  readonly url: string
  readonly key: string
  readonly isOpen: boolean
}

const upstreamFieldsOf = (account: Account | null, surface: Surface): UpstreamFields => {
  const own = account?.upstreams[surface] ?? null
  return { of: own === null ? 'installation' : 'account', url: own?.url ?? '', key: '', isOpen: false }
}

const fieldsOf = (account: Account | null) => ({
  name: account?.name ?? '',
  monthly_budget_usd: amountText(account?.monthly_budget_usd),
  discount: percentText(account?.discount),
  credit_enforced: account?.credit_enforced ?? false,
  force: false,
  metadata: account?.metadata ?? {},
  messages: upstreamFieldsOf(account, 'messages'),
  chat: upstreamFieldsOf(account, 'chat'),
})
type AccountFields = ReturnType<typeof fieldsOf>

const MISSING_KEY = 'Type the key for this URL. A stored key is never sent to another URL.'

/** The upstream to send; undefined if it has not changed. The gateway binds a stored key to its URL. */
function readUpstream(fields: UpstreamFields, account: Account | null, surface: Surface): Reading<unknown> {
  const stored = account?.upstreams[surface] ?? null
  const [url, key] = [fields.url.trim(), fields.key.trim()]
  if (fields.of === 'installation') return given(stored === null ? undefined : null)
  const hasMoved = url !== (stored?.url ?? '')
  if (key !== '') return given({ ...(url === '' ? {} : { url }), key })
  if (fields.isOpen) return given({ url, key: null })
  return stored === null || hasMoved ? { problem: MISSING_KEY } : given(undefined)
}

function readUpstreams(fields: AccountFields, account: Account | null): Reading<unknown> {
  const readings = SURFACES.map((surface) => readUpstream(fields[surface], account, surface))
  const problem = readings.find((reading) => 'problem' in reading)
  if (problem !== undefined) return problem
  const values = readings.map((reading, i) => [SURFACES[i], 'value' in reading ? reading.value : undefined])
  return given(Object.fromEntries(values.filter(([, value]) => value !== undefined)))
}

/** Enforcement without credit stops the account at once, so it must be confirmed. */
const mustForce = (fields: AccountFields, account: Account | null) =>
  fields.credit_enforced && !account?.credit_enforced && (account?.balance_usd ?? 0) <= 0

const read = (fields: AccountFields, account: Account | null) => ({
  name: readName(fields.name),
  monthly_budget_usd: readAmount(fields.monthly_budget_usd),
  discount: readPercent(fields.discount),
  credit_enforced: given(fields.credit_enforced),
  force: given(mustForce(fields, account) && fields.force),
  metadata: given(fields.metadata),
  upstreams: readUpstreams(fields, account),
})

interface AccountFormProps extends FormCallbacks<Account> {
  readonly edited: Account | null
}

export function AccountForm({ edited, ...callbacks }: AccountFormProps) {
  const { fields, bind, submit } = useForm({
    edited,
    fieldsOf,
    read,
    reread: ({ id }) => get('/gateway/v1/accounts/{id}', { id }),
    save: (changes) =>
      edited === null
        ? send('POST /gateway/v1/accounts', {}, changes)
        : send('PATCH /gateway/v1/accounts/{id}', { id: edited.id }, changes),
  })
  return (
    <FormDialog
      title={edited === null ? 'New account' : 'Change account'}
      submit={edited === null ? 'Create account' : 'Save'}
      isWide
      {...callbacks}
      onSubmit={submit}
    >
      <TextField label="Name" maxLength={120} isRequired {...bind('name')} />
      <div class="columns">
        <AmountField
          label="Budget per month, USD"
          hint="Maximum spend of all its keys per calendar month (UTC). Leave empty for no budget."
          {...bind('monthly_budget_usd')}
        />
        <TextField
          label="Discount, %"
          hint="Percent of the list price, for calls from now on. Leave empty for the installation's discount."
          {...bind('discount')}
        />
        {SURFACES.map((surface) => (
          <UpstreamField key={surface} surface={surface} account={edited} {...bind(surface)} />
        ))}
        <MetadataField {...bind('metadata')} />
      </div>
      <CheckField label="Refuse calls once its credit is used up" {...bind('credit_enforced')} />
      {mustForce(fields, edited) && (
        <CheckField label="Enforce without credit: the next call is refused" {...bind('force')} />
      )}
    </FormDialog>
  )
}

interface UpstreamFieldProps {
  readonly surface: Surface
  readonly account: Account | null
  readonly value: UpstreamFields
  onInput(value: UpstreamFields): void
}

/** Whose URL and key the calls use. With another URL the key must be typed again. */
function UpstreamField({ surface, account, value, onInput }: UpstreamFieldProps) {
  const name = SURFACE_NAMES[surface]
  const reading = readUpstream(value, account, surface)
  const set = (change: Partial<UpstreamFields>) => onInput({ ...value, ...change })
  return (
    <div class={s.group}>
      <SelectField
        label={`${name} upstream`}
        options={{ installation: "the installation's", account: 'its own' }}
        value={value.of}
        onInput={(of) => set({ of: of as UpstreamFields['of'] })}
      />
      {value.of === 'account' && (
        <>
          <TextField
            label={`${name} URL`}
            type="url"
            placeholder="leave empty for the installation's URL"
            value={value.url}
            onInput={(url) => set({ url })}
          />
          <TextField
            label={`${name} key`}
            type="password"
            placeholder={
              'value' in reading && reading.value === undefined ? 'unchanged' : "the provider's key"
            }
            problem={'problem' in reading ? reading.problem : undefined}
            value={value.key}
            onInput={(key) => set({ key, isOpen: false })}
          />
          {value.key === '' && value.url !== '' && (
            <CheckField
              label="This URL takes no key"
              value={value.isOpen}
              onInput={(isOpen) => set({ isOpen })}
            />
          )}
        </>
      )}
    </div>
  )
}
