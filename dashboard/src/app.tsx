import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type Account, type Overview, type Session, send, watchSession } from './api.ts'
import { SignedIn, usePermissions, useResource } from './data.ts'
import { count } from './format.ts'
import { KeyboardShortcuts } from './keyboard-shortcuts.tsx'
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
import { BASE, Link, type Route, useRoute } from './router.tsx'
import { useTheme } from './theme.ts'
import { Button } from './ui/button.tsx'
import { Empty, Heading } from './ui/states.tsx'

/** The pages of the navigation, most visited first. A phone shows the first five, and the others below "More". */
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
 * The session from the answer to the sign-in, stored so that a page can be painted before any other answer. The cookie,
 * which scripts cannot read, is the credential: an answer of 401 ends the stored session too.
 */
const SESSION = 'tollgate-session'

function storedSession(): Session | null {
  const session: Session | null = JSON.parse(localStorage.getItem(SESSION) ?? 'null')
  return session !== null && Date.parse(session.expires_at) > Date.now() ? session : null
}

export function App() {
  const [session, setSession] = useState(storedSession)
  const [hasEnded, setEnded] = useState(() => session === null && localStorage.getItem(SESSION) !== null)
  const route = useRoute()
  const account = route.query.get('account')

  function startSession(session: Session): void {
    localStorage.setItem(SESSION, JSON.stringify(session))
    setSession(session)
  }
  function endSession(hasEnded: boolean): void {
    localStorage.removeItem(SESSION)
    setEnded(hasEnded)
    setSession(null)
  }
  useEffect(() => watchSession(session === null ? null : () => endSession(true)), [session])

  if (session === null) return <SignIn hasEnded={hasEnded} onSession={startSession} />
  return (
    <SignedIn.Provider value={session}>
      <Frame
        key={account ?? ''}
        route={route}
        onSignOut={() => void send('DELETE', '/gateway/v1/session').finally(() => endSession(false))}
      >
        <Page route={route} />
      </Frame>
    </SignedIn.Provider>
  )
}

function Page({ route }: { readonly route: Route }): ComponentChildren {
  const { isDeveloper, isOperator } = usePermissions()
  const [, section = '', id = ''] = route.path.split('/')
  if (isDeveloper && !DEVELOPER_PAGES.some(({ path }) => path === `/${section}`))
    return (
      <MessagePage
        title="Not for API keys"
        words="This page needs an admin key. You are signed in with an API key, which sees its own spend, limits and calls."
      />
    )
  if (section === 'accounts' && !isOperator)
    return <MessagePage title="Accounts" words="Only operators manage accounts. Your key has one account." />
  const query = route.query
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
  return pages[section]?.() ?? <MessagePage title="Not found" words="This page does not exist." />
}

const MessagePage = ({ title, words }: { readonly title: string; readonly words: string }) => (
  <>
    <Heading title={title} />
    <Empty title={words} action={<Link to="/">Go to the start page</Link>} />
  </>
)

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
  readonly route: Route
  onSignOut(): void
  readonly children: ComponentChildren
}

function Frame({ route, onSignOut, children }: FrameProps) {
  const [theme, nextTheme] = useTheme()
  const [isOpen, setOpen] = useState(false)
  const { isOperator, isDeveloper } = usePermissions()
  const { value: overview } = useResource<Overview>(isDeveloper ? null : '/gateway/v1/overview', 10_000)
  const account = route.query.get('account')
  const section = `/${route.path.split('/')[1] ?? ''}`
  const pages = isDeveloper ? DEVELOPER_PAGES : PAGES.filter(({ path }) => isOperator || path !== '/accounts')
  const rest = pages.slice(BAR_MAX)
  const title = pages.find(({ path }) => path === section)?.title ?? 'Tollgate'
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
  useEffect(() => setOpen(false), [route.path])
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
            {overview !== null && <NodeInfo of={overview} />}
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
