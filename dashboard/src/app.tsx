import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import { ApiError, get, type Session, send, watchSession } from './api.ts'
import { SignedIn, usePermissions } from './data.ts'
import { Frame, isOffered } from './frame.tsx'
import { AccountPage, AccountsPage } from './pages/accounts.tsx'
import { ActivityPage } from './pages/activity.tsx'
import { CreditsPage } from './pages/credits.tsx'
import { DeveloperPage } from './pages/developer.tsx'
import { DevicePage } from './pages/device.tsx'
import { KeyPage } from './pages/key.tsx'
import { KeysPage } from './pages/keys.tsx'
import { MePage } from './pages/me.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { PeoplePage } from './pages/people.tsx'
import { PersonPage } from './pages/person.tsx'
import { PricesPage } from './pages/prices.tsx'
import { RequestPage } from './pages/request.tsx'
import { RequestsPage } from './pages/requests.tsx'
import { SettingsPage } from './pages/settings.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { UsagePage } from './pages/usage.tsx'
import { WebhooksPage } from './pages/webhooks.tsx'
import { Empty, Failure, Heading } from './parts/states.tsx'
import { Link, type Route, useRoute } from './router.tsx'

/**
 * The session from the answer to the sign-in, stored so that a page can be painted before any other answer. The cookie,
 * which scripts cannot read, is the credential: an answer of 401 ends the stored session too.
 */
const SESSION = 'tollgate-session'

function storedSession(): Session | null {
  try {
    const session: Session | null = JSON.parse(localStorage.getItem(SESSION) ?? 'null')
    return session !== null && Date.parse(session.expires_at) > Date.now() ? session : null
  } catch {
    return null
  }
}

export function App() {
  const [session, setSession] = useState(storedSession)
  const [hasEnded, setEnded] = useState(() => session === null && localStorage.getItem(SESSION) !== null)
  const [signInPath, setSignInPath] = useState<string | null>(null)
  const [isChecked, setChecked] = useState(false)
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
  async function signOut(): Promise<void> {
    const ended = await send('DELETE /gateway/v1/session', {}).catch(() => null)
    endSession(false)
    if (ended?.end_session_url != null) location.assign(ended.end_session_url)
  }
  useEffect(() => watchSession(session === null ? null : () => endSession(true)), [session])
  // The cookie may be there without a stored session, after a sign-in at the identity provider; and roles change.
  useEffect(() => {
    void get('/gateway/v1/session', {})
      .then(startSession, (error: ApiError) => setSignInPath(error.details.signInPath ?? null))
      .finally(() => setChecked(true))
  }, [session === null])

  if (session === null)
    return isChecked ? <SignIn hasEnded={hasEnded} path={signInPath} onSession={startSession} /> : null
  return (
    <SignedIn.Provider value={session}>
      <Frame key={account ?? ''} route={route} onSignOut={() => void signOut()}>
        <Guarded key={route.path}>
          <Page route={route} />
        </Guarded>
      </Frame>
    </SignedIn.Provider>
  )
}

/** Shows an error state instead of an empty page if a page cannot show an answer, such as one of another release. */
function Guarded({ children }: { readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary()
  if (error === undefined) return children
  const shown = new ApiError(0, 'page_failed', `This page cannot show what it has received: ${String(error)}`)
  return <Failure error={shown} onRetry={reset} />
}

function Page({ route }: { readonly route: Route }): ComponentChildren {
  const permissions = usePermissions()
  const { isDeveloper, isMember, isOperator, person } = permissions
  const [, section = '', id = ''] = route.path.split('/')
  const isOwnKey = isMember && section === 'keys' && id !== ''
  if (!isOwnKey && !isOffered(permissions, section))
    return (
      <MessagePage
        title="Not for you"
        words={
          isDeveloper
            ? 'This page needs an admin key. You are signed in with an API key, which sees its own spend, limits and calls.'
            : 'This page is for admins. You see your own keys, spend and calls.'
        }
      />
    )
  if (person === null && (section === 'me' || section === 'device'))
    return (
      <MessagePage
        title="For people"
        words="You signed in with a key. Sign out, and sign in with your company account."
      />
    )
  if (section === 'accounts' && !isOperator)
    return <MessagePage title="Accounts" words="Only operators manage accounts. Your key has one account." />
  const query = route.query
  const me = () => person && <MePage id={person.id} />
  const pages: Readonly<Record<string, () => ComponentChildren>> = {
    '': () => (isDeveloper ? <DeveloperPage /> : isMember ? me() : <OverviewPage />),
    me,
    keys: () => (id === '' ? <KeysPage query={query} /> : <KeyPage key={id} id={id} />),
    people: () => (id === '' ? <PeoplePage query={query} /> : <PersonPage key={id} id={id} />),
    usage: () => <UsagePage query={query} />,
    requests: () => (id === '' ? <RequestsPage query={query} /> : <RequestPage key={id} id={id} />),
    credits: () => <CreditsPage query={query} />,
    accounts: () => (id === '' ? <AccountsPage query={query} /> : <AccountPage key={id} id={id} />),
    settings: () => <SettingsPage query={query} />,
    activity: () => <ActivityPage query={query} />,
    webhooks: () => <WebhooksPage query={query} />,
    prices: () => <PricesPage query={query} />,
    device: () => person && <DevicePage query={query} person={person} />,
  }
  return pages[section]?.() ?? <MessagePage title="Not found" words="This page does not exist." />
}

const MessagePage = ({ title, words }: { readonly title: string; readonly words: string }) => (
  <>
    <Heading title={title} />
    <Empty title={words} action={<Link to="/">Go to the start page</Link>} />
  </>
)
