import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type Account, type Overview, type Session, send, watchSession } from './api.ts'
import { SignedIn, usePermissions, useResource } from './data.ts'
import { count } from './format.ts'
import { Habits } from './habits.tsx'
import mark from './mark.svg'
import { AccountPage, AccountsPage } from './pages/accounts.tsx'
import { ActivityPage } from './pages/activity.tsx'
import { CreditsPage } from './pages/credits.tsx'
import { DeveloperPage } from './pages/developer.tsx'
import { KeyPage } from './pages/key.tsx'
import { KeysPage } from './pages/keys.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { PricesPage } from './pages/prices.tsx'
import { RequestPage } from './pages/request.tsx'
import { RequestsPage } from './pages/requests.tsx'
import { SettingsPage } from './pages/settings.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { UsagePage } from './pages/usage.tsx'
import { WebhooksPage } from './pages/webhooks.tsx'
import { BASE, Link, type Place, usePlace } from './router.tsx'
import { useTheme } from './theme.ts'
import { Button } from './ui/button.tsx'
import { Empty, Heading } from './ui/states.tsx'

/** The pages of the rail, the most visited first. A phone has room for the first five; the others are below "More". */
const PAGES = [
  { path: '/', title: 'Overview' },
  { path: '/keys', title: 'Keys' },
  { path: '/usage', title: 'Usage' },
  { path: '/requests', title: 'Requests' },
  { path: '/credits', title: 'Credits' },
  { path: '/activity', title: 'Activity' },
  { path: '/webhooks', title: 'Webhooks' },
  { path: '/prices', title: 'Prices' },
  { path: '/accounts', title: 'Accounts' },
  { path: '/settings', title: 'Settings' },
] as const
const BAR_MAX = 5

const DEVELOPER_PAGES = [
  { path: '/', title: 'My key' },
  { path: '/usage', title: 'Usage' },
  { path: '/requests', title: 'Requests' },
] as const

/**
 * The session as the gateway described it at sign-in, so that a page is painted before any answer. The cookie, which
 * scripts cannot see, is what proves it: an answer of 401 ends the session here too.
 */
const SESSION = 'tollgate-session'

function storedSession(): Session | null {
  const session: Session | null = JSON.parse(localStorage.getItem(SESSION) ?? 'null')
  return session !== null && Date.parse(session.expires_at) > Date.now() ? session : null
}

export function App() {
  const [session, setSession] = useState(storedSession)
  const [hasEnded, setEnded] = useState(() => session === null && localStorage.getItem(SESSION) !== null)
  const place = usePlace()
  const account = place.query.get('account')

  function enter(session: Session): void {
    localStorage.setItem(SESSION, JSON.stringify(session))
    setSession(session)
  }
  function leave(hasEnded: boolean): void {
    localStorage.removeItem(SESSION)
    setEnded(hasEnded)
    setSession(null)
  }
  useEffect(() => watchSession(session === null ? null : () => leave(true)), [session])

  if (session === null) return <SignIn hasEnded={hasEnded} onSession={enter} />
  return (
    <SignedIn.Provider value={session}>
      <Frame
        key={account ?? ''}
        place={place}
        onSignOut={() => void send('DELETE', '/gateway/v1/session').finally(() => leave(false))}
      >
        <Page place={place} />
      </Frame>
    </SignedIn.Provider>
  )
}

function Page({ place }: { readonly place: Place }): ComponentChildren {
  const { isDeveloper, isOperator } = usePermissions()
  const [, section = '', id = ''] = place.path.split('/')
  if (isDeveloper && !DEVELOPER_PAGES.some(({ path }) => path === `/${section}`))
    return (
      <Nothing
        title="Not for API keys"
        words="This page needs an admin key. You are signed in with an API key, which sees its own spend, limits and calls."
      />
    )
  if (section === 'accounts' && !isOperator)
    return <Nothing title="Accounts" words="Only operators manage accounts. Your key acts in one account." />
  const query = place.query
  const pages: Readonly<Record<string, () => ComponentChildren>> = {
    '': () => (isDeveloper ? <DeveloperPage /> : <OverviewPage />),
    keys: () => (id === '' ? <KeysPage query={query} /> : <KeyPage key={id} id={id} />),
    usage: () => <UsagePage query={query} />,
    requests: () => (id === '' ? <RequestsPage query={query} /> : <RequestPage key={id} id={id} />),
    credits: () => <CreditsPage query={query} />,
    accounts: () => (id === '' ? <AccountsPage query={query} /> : <AccountPage key={id} id={id} />),
    settings: () => <SettingsPage query={query} />,
    activity: () => <ActivityPage query={query} />,
    webhooks: () => <WebhooksPage query={query} />,
    prices: () => <PricesPage query={query} />,
  }
  return pages[section]?.() ?? <Nothing title="Not found" words="There is no such page." />
}

const Nothing = ({ title, words }: { readonly title: string; readonly words: string }) => (
  <>
    <Heading title={title} />
    <Empty title={words} action={<Link to="/">Go to the first page</Link>} />
  </>
)

function Node({ of: { version, store, calls_in_flight: inFlight } }: { readonly of: Overview }) {
  return (
    <small class="quiet">
      {version} · {store === 'sqlite' ? 'SQLite' : 'PostgreSQL'}
      <br />
      {count(inFlight)} in flight
    </small>
  )
}

function ActsIn({ id }: { readonly id: string }) {
  const { value } = useResource<Account>(`/gateway/v1/accounts/${id}`)
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
  readonly place: Place
  onSignOut(): void
  readonly children: ComponentChildren
}

function Frame({ place, onSignOut, children }: FrameProps) {
  const [theme, nextTheme] = useTheme()
  const [isOpen, setOpen] = useState(false)
  const { isOperator, isDeveloper } = usePermissions()
  const { value: overview } = useResource<Overview>(isDeveloper ? null : '/gateway/v1/overview', 10_000)
  const account = place.query.get('account')
  const section = `/${place.path.split('/')[1] ?? ''}`
  const pages = isDeveloper ? DEVELOPER_PAGES : PAGES.filter(({ path }) => isOperator || path !== '/accounts')
  const rest = pages.slice(BAR_MAX)
  const title = pages.find(({ path }) => path === section)?.title ?? 'Tollgate'
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
  useEffect(() => setOpen(false), [place.path])
  const entry = ({ path, title }: (typeof pages)[number]) => (
    <li key={path}>
      <Link to={path} aria-current={path === section ? 'page' : undefined}>
        {title}
      </Link>
    </li>
  )
  return (
    <div class="frame">
      <a class="unseen" href="#content">
        Skip to content
      </a>
      <nav class={isOpen ? 'rail open' : 'rail'} aria-label="Pages">
        <b class="brand">
          <img src={mark} alt="" width={20} height={20} /> Tollgate
        </b>
        <ul>{pages.slice(0, BAR_MAX).map(entry)}</ul>
        <button
          type="button"
          class="more"
          aria-expanded={isOpen}
          aria-current={rest.some(({ path }) => path === section) ? 'page' : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          More
        </button>
        <div class="rest">
          {rest.length > 0 && <ul>{rest.map(entry)}</ul>}
          <div class="foot">
            {overview !== null && <Node of={overview} />}
            <button type="button" class="link" onClick={nextTheme} title="System, light or dark">
              Theme: {theme}
            </button>
            <Button title="Sign out" kind="link" onClick={onSignOut} />
          </div>
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        {overview?.simulator && (
          <p class="notice">
            The built-in simulator answers calls: no provider is called, and amounts are not real.
          </p>
        )}
        {isOperator && account !== null && <ActsIn id={account} />}
        {children}
      </main>
      <Habits />
    </div>
  )
}
