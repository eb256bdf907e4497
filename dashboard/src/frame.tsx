import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Overview } from './api.ts'
import { type Command, CommandMenu } from './command-menu.tsx'
import { usePermissions, useResource } from './data.ts'
import { count } from './format.ts'
import s from './frame.module.css'
import { KeyboardShortcuts } from './keyboard-shortcuts.tsx'
import mark from './mark.svg'
import { Button } from './parts/button.tsx'
import { BASE, Link, navigate, type Route } from './router.tsx'
import { useTheme } from './theme.ts'

/** The pages of the navigation, most visited first. A phone shows the first five, and the others below "More". */
const PAGES = [
  { path: '/', title: 'Overview' },
  { path: '/keys', title: 'Keys' },
  { path: '/usage', title: 'Usage' },
  { path: '/requests', title: 'Requests' },
  { path: '/credits', title: 'Credits' },
  { path: '/activity', title: 'Activity' },
  { path: '/people', title: 'People' },
  { path: '/webhooks', title: 'Webhooks' },
  { path: '/prices', title: 'Prices' },
  { path: '/accounts', title: 'Accounts' },
  { path: '/settings', title: 'Settings' },
] as const

const BAR_MAX = 5

const [, , USAGE, REQUESTS] = PAGES
const ME = { path: '/me', title: 'My keys' } as const

function pagesOf({ isDeveloper, isMember, isOperator, person }: ReturnType<typeof usePermissions>) {
  if (isDeveloper) return [{ path: '/', title: 'My key' }, USAGE, REQUESTS]
  if (isMember) return [ME, USAGE, REQUESTS, { path: '/prices', title: 'Prices' }]
  return [...PAGES.filter(({ path }) => isOperator || path !== '/accounts'), ...(person === null ? [] : [ME])]
}

/** Whether a session may open the pages of a section. */
export const isOffered = (permissions: ReturnType<typeof usePermissions>, section: string) =>
  permissions.maySeeAll ||
  ['', 'device'].includes(section) ||
  pagesOf(permissions).some(({ path }) => path === `/${section}`)

function NodeInfo({ of: { version, store, calls_in_flight: inFlight } }: { readonly of: Overview }) {
  return (
    <small class="quiet">
      {version} · {store === 'sqlite' ? 'SQLite' : 'PostgreSQL'}
      <br />
      {count(inFlight)} in flight
    </small>
  )
}

function AccountNotice({ id }: { readonly id: string }) {
  const { value } = useResource('/gateway/v1/accounts/{id}', id === '*' ? null : { id })
  if (id === '*')
    return (
      <p class="notice">
        Showing all accounts. <a href={BASE}>Leave</a>
      </p>
    )
  return (
    <p class="notice">
      Acting in account{' '}
      <Link to={`/accounts/${id}`} class="name">
        {value?.name ?? id}
      </Link>
      . <a href={BASE}>Leave</a>
    </p>
  )
}

interface FrameProps {
  readonly route: Route
  onSignOut(): void
  readonly children: ComponentChildren
}

export function Frame({ route, onSignOut, children }: FrameProps) {
  const [theme, nextTheme] = useTheme()
  const [isOpen, setOpen] = useState(false)
  const permissions = usePermissions()
  const { isOperator, isMember, maySeeAll, mayManage } = permissions
  const { value: overview } = useResource('/gateway/v1/overview', maySeeAll ? {} : null, 10_000)
  const account = route.query.get('account')
  const opened = `/${route.path.split('/')[1] ?? ''}`
  const section = isMember && (opened === '/' || opened === '/keys') ? ME.path : opened
  const pages = pagesOf(permissions)
  const rest = pages.slice(BAR_MAX)
  useEffect(() => setOpen(false), [route.path])
  const commands: readonly Command[] = [
    ...pages.map(({ path, title }) => ({ kind: 'Page', title, run: () => navigate(path) })),
    { kind: 'Action', title: 'Follow calls live', run: () => navigate('/requests?live=1') },
    ...(mayManage ? [{ kind: 'Action', title: 'Create a key', run: () => navigate('/keys?new=1') }] : []),
    { kind: 'Action', title: 'Change the theme', run: nextTheme },
    { kind: 'Action', title: 'Sign out', run: onSignOut },
  ]
  const entry = ({ path, title }: (typeof pages)[number]) => (
    <li key={path}>
      <Link to={path} aria-current={path === section ? 'page' : undefined}>
        {title}
      </Link>
    </li>
  )
  return (
    <div class={s.frame}>
      <a class="unseen" href="#content">
        Skip to content
      </a>
      <nav class={isOpen ? `${s.rail} ${s.open}` : s.rail} aria-label="Pages">
        <b class={s.brand}>
          <img src={mark} alt="" width={20} height={20} /> Tollgate
        </b>
        <div class={s.menu}>
          <CommandMenu commands={commands} />
        </div>
        <ul>{pages.slice(0, BAR_MAX).map(entry)}</ul>
        <button
          type="button"
          class={s.more}
          aria-expanded={isOpen}
          aria-current={rest.some(({ path }) => path === section) ? 'page' : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          More
        </button>
        <div class={s.rest}>
          {rest.length > 0 && <ul>{rest.map(entry)}</ul>}
          <div class={s.foot}>
            {overview !== null && <NodeInfo of={overview} />}
            <button type="button" class="link" onClick={nextTheme} title="System, light or dark">
              Theme: {theme}
            </button>
            <Button title="Sign out" kind="link" onClick={onSignOut} />
          </div>
        </div>
      </nav>
      <main id="content" class={s.content} tabIndex={-1}>
        {overview?.simulator && (
          <p class="notice">
            The built-in simulator answers calls. No provider is called, and amounts are not real.
          </p>
        )}
        {isOperator && account !== null && <AccountNotice id={account} />}
        {children}
      </main>
      <KeyboardShortcuts />
    </div>
  )
}
