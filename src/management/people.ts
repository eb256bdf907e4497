import { fieldOf } from '../api/field-names.ts'
import { personObject } from '../api/objects.ts'
import { personEditFields, personListQuery, personMoveFields } from '../api/person.ts'
import { PERSON_LIMIT_NAMES, type PersonLimits, type PersonRecord } from '../keys/person-store.ts'
import type { Store } from '../store/store.ts'
import {
  defineRoute,
  invalid,
  type Management,
  type OwnRequest,
  pageObject,
  type Refused,
  withoutUndefined,
} from './route.ts'

/** The person whose records a list shows; null: all of the account. Only for oneself may a member name a person. */
export function personFilter(
  ownPersonId: string | null,
  asked: string | undefined,
): { readonly kind: 'person'; readonly id: string | null } | Refused {
  if (ownPersonId !== null && asked !== undefined && asked !== ownPersonId)
    return invalid('person', 'person must be your own id.')
  return { kind: 'person', id: ownPersonId ?? asked ?? null }
}

export const listPeople = defineRoute({
  summary: 'List people, newest first',
  query: personListQuery,
  async handle({ listedAccountId: accountId, query, atMs }, { store }) {
    const { status = null, search = null, after = null, limit } = query
    const page = await store.listPeople({ accountId, status, search, after, limit, atMs })
    return pageObject(page, (person) => personObject(person, atMs))
  },
})

export const getPerson = defineRoute({
  summary: 'Show a person',
  async handle({ accountId, id, atMs }, { store }) {
    const person = await store.getPerson(accountId, id, atMs)
    return person && personObject(person, atMs)
  },
})

export const updatePerson = defineRoute({
  summary: 'Change the limits of a person',
  description:
    'The limits hold for the sum over all keys of the person. Changes the fields that are sent and leaves the others; null ' +
    'removes a limit. Email, name and role come from the identity provider.',
  body: personEditFields,
  async handle({ accountId, actor, id, body, atMs }, { store, recheckWaitingCalls }) {
    const limits = PERSON_LIMIT_NAMES.map((name) => [name, body[fieldOf(name)]] as const)
    const changes: Partial<PersonLimits> = withoutUndefined(Object.fromEntries(limits))
    const person = await store.updatePerson(accountId, id, changes, actor, atMs)
    recheckWaitingCalls()
    return person && personObject(person, atMs)
  },
})

type Change = 'blockPerson' | 'unblockPerson'

function changeWith(change: Change) {
  return async ({ accountId, id, actor, atMs }: OwnRequest, management: Management) =>
    showChanged(await management.store[change](accountId, id, actor, atMs), atMs, management)
}

function showChanged(
  person: PersonRecord | null,
  atMs: number,
  { recheckWaitingCalls }: Pick<Management, 'recheckWaitingCalls'> & { readonly store: Store },
) {
  recheckWaitingCalls()
  return person && personObject(person, atMs)
}

export const blockPerson = defineRoute({
  summary: 'Block a person',
  description:
    'Revokes all keys of the person, signed-in devices included, and ends all sessions, at once and on every node. Running ' +
    'calls finish. Repeating the request returns the same record. The body is ignored.',
  handle: changeWith('blockPerson'),
})

export const unblockPerson = defineRoute({
  summary: 'Let a blocked person sign in again',
  description: 'Revoked keys stay revoked. The body is ignored.',
  handle: changeWith('unblockPerson'),
})

export const movePerson = defineRoute({
  summary: 'Move a person to another account',
  description:
    'Revokes all keys of the person and ends all sessions. The person gets a new budget in the other account, and sees ' +
    'nothing of the old one afterwards.',
  body: personMoveFields,
  async handle({ accountId, id, actor, body, atMs }, management) {
    const { store } = management
    if ((await store.getPerson(accountId, id, atMs)) === null) return null
    if (!(await store.hasAccount(body.account)))
      return invalid('account', 'account must be the id of an account.')
    return showChanged(await store.movePerson(id, body.account, actor, atMs), atMs, management)
  },
})
