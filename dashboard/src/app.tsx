import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import {
  type Account,
  ApiError,
  actIn,
  fetchJson,
  type Overview,
  type Session,
  send,
  watchSession,
} from './api.ts'
import { SignedIn, usePermissions, useResource } from './data.ts'
import { count } from './format.ts'
import { Habits } from './habits.tsx'
import mark from './mark.svg'
import { AccountsPage } from './pages/accounts.tsx'
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
import { Empty, Failure } from './ui/states.tsx'

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

/** An API key reads its own record, usage and calls. */
const DEVELOPER_PAGES = [
  { path: '/', title: 'My key' },
  { path: '/usage', title: 'Usage' },
  { path: '/requests', title: 'Requests' },
] as const

/** The mark that there may be a session, whose cookie scripts cannot see. Without the mark a first visit sends no request. */
const SIGNED_IN = 'tollgate-signed-in'

type State =
  | { readonly kind: 'asking' }
  | { readonly kind: 'out'; readonly hasEnded: boolean }
  | { readonly kind: 'in'; readonly session: Session }
  | { readonly kind: 'failed'; readonly error: ApiError }

export function App() {
  const [state, setState] = useState<State>({ kind: 'asking' })
  const place = usePlace()
  actIn(place.query.get('account'))

  function enter(session: Session): void {
    localStorage.setItem(SIGNED_IN, '1')
    watchSession(() => leave(true))
    setState({ kind: 'in', session })
  }
  function leave(hasEnded: boolean): void {
    localStorage.removeItem(SIGNED_IN)
    watchSession(null)
    setState({ kind: 'out', hasEnded })
  }
  async function ask(): Promise<void> {
    if (localStorage.getItem(SIGNED_IN) === null) return leave(false)
    setState({ kind: 'asking' })
    try {
      enter(await fetchJson<Session>('GET', '/gateway/v1/session'))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status === 401) leave(true)
      else setState({ kind: 'failed', error })
    }
  }
  // The session is asked for once; afterwards answers and commands change the state.
  useEffect(() => void ask(), [])

  if (state.kind === 'asking') return null
  if (state.kind === 'failed')
    return (
      <main class="alone">
        <h1>
          <img src={mark} alt="" width={28} height={28} /> Tollgate
        </h1>
        <Failure error={state.error} onRetry={() => void ask()} />
      </main>
    )
  if (state.kind === 'out') return <SignIn hasEnded={state.hasEnded} onSession={enter} />
  return (
    <SignedIn.Provider value={state.session}>
      <Frame
        key={place.query.get('account') ?? ''}
        place={place}
        onSignOut={() => void send('DELETE', '/gateway/v1/session').finally(() => leave(false))}
      >
        <Page place={place} />
      </Frame>
    </SignedIn.Provider>
  )
}

function Page({ place }: { readonly place: Place }): ComponentChildren {
  const { isDeveloper } = usePermissions()
  const [, section = '', id = ''] = place.path.split('/')
  if (isDeveloper && !DEVELOPER_PAGES.some(({ path }) => path === `/${section}`))
    return (
      <>
        <h1>Not for API keys</h1>
        <Empty
          title="This page needs an admin key."
          action={<Link to="/">My key</Link>}
          words="You are signed in with an API key, which sees only its own spend, limits and calls."
        />
      </>
    )
  const query = place.query
  const pages: Readonly<Record<string, () => ComponentChildren>> = {
    '': () => (isDeveloper ? <DeveloperPage /> : <OverviewPage />),
    keys: () => (id === '' ? <KeysPage query={query} /> : <KeyPage key={id} id={id} />),
    usage: () => <UsagePage query={query} />,
    requests: () => (id === '' ? <RequestsPage query={query} /> : <RequestPage key={id} id={id} />),
    credits: () => <CreditsPage query={query} />,
    accounts: () => <AccountsPage id={id} query={query} />,
    settings: () => <SettingsPage query={query} />,
    activity: () => <ActivityPage query={query} />,
    webhooks: () => <WebhooksPage query={query} />,
    prices: () => <PricesPage query={query} />,
  }
  return (
    pages[section]?.() ?? (
      <>
        <h1>Not found</h1>
        <Empty title="There is no such page." action={<Link to="/">Overview</Link>} />
      </>
    )
  )
}

/** The node that answers: its version, its store, and the calls in flight. */
function Node({ of: { version, store, calls_in_flight: inFlight } }: { readonly of: Overview }) {
  return (
    <small class="quiet">
      {version} · {store === 'sqlite' ? 'SQLite' : 'PostgreSQL'}
      <br />
      {count(inFlight)} in flight
    </small>
  )
}

/** The account that an operator acts in, if the URL names one. */
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
      <a class="skip" href="#content">
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
