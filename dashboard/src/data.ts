import { createContext } from 'preact'
import { useCallback, useContext, useEffect, useState } from 'preact/hooks'
import type { Answers, GetAnswers } from '../../src/api/answers.ts'
import { ApiError, get, type Params, type Session, urlOf } from './api.ts'
import { setQuery } from './router.tsx'

export const SignedIn = createContext<Session | null>(null)

/**
 * Pages offer only commands that the API permits. Viewers read; admins manage one account, operators all accounts. Members
 * have their own keys. A developer, who signed in with an API key, reads the key's record, usage and calls.
 */
export function usePermissions() {
  const { role, person = null } = useContext(SignedIn) ?? {}
  const isOperator = role === 'operator'
  const [isMember, isDeveloper] = [role === 'member', role === 'api_key']
  const maySeeAll = !isMember && !isDeveloper
  return { person, mayManage: role === 'admin' || isOperator, maySeeAll, isOperator, isMember, isDeveloper }
}

/** A resource of the API on a page: the latest successful answer, and the error of a later request. */
export interface Resource<T> {
  readonly value: T | null
  readonly error: ApiError | null
  /** Whether the value belongs to an earlier path, or is not there yet. */
  readonly isLoading: boolean
  refresh(): void
}

/** What useResource has read: the URL, and the answer or the error. */
interface ReadState<T> {
  readonly url: string | null
  readonly value: T | null
  readonly error: ApiError | null
}

/**
 * Reads a path, unless `params` is null or lacks an id. Reads again when they change, and every `everyMs` while the tab is
 * visible, except after a 404. A new request aborts the previous one, so that an old answer never overwrites a newer one.
 */
export function useResource<Path extends keyof GetAnswers>(
  path: Path,
  params: Params<Path> | null,
  everyMs: number | null = null,
): Resource<GetAnswers[Path]> {
  const [state, setState] = useState<ReadState<GetAnswers[Path]>>({ url: null, value: null, error: null })
  const [version, setVersion] = useState(0)
  const refresh = useCallback(() => setVersion((n) => n + 1), [])
  const url = params === null ? null : urlOf(path, params)

  // refresh() changes `version`, so that the effect reads the URL again. `params` is a new object for each rendering.
  useEffect(() => {
    if (url === null || params === null) return
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let isGone = false
    async function read(): Promise<void> {
      try {
        const value = await get(path, params as Params<Path>, abort.signal)
        if (abort.signal.aborted) return
        setState({ url, value, error: null })
      } catch (error) {
        if (abort.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        isGone = error.status === 404
        setState((before) => ({ url, value: before.url === url ? before.value : null, error }))
      }
      if (everyMs !== null && !isGone) timer = setTimeout(readWhenVisible, everyMs)
    }
    function readWhenVisible(): void {
      if (document.hidden) document.addEventListener('visibilitychange', readWhenVisible, { once: true })
      else void read()
    }
    void read()
    return () => {
      abort.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', readWhenVisible)
    }
  }, [url, everyMs, version])

  return { value: state.value, error: state.error, isLoading: url !== null && state.url !== url, refresh }
}

export type OwnAccount = Answers['GET /gateway/v1/accounts/self']

/**
 * The account of the pages: the account of the key, or the account in which an operator acts. Known without a request: a
 * form that waits for one would lose an early Enter.
 */
export function useAccountId(): string {
  const session = useContext(SignedIn)
  return new URLSearchParams(location.search).get('account') ?? session?.account_id ?? 'default'
}

/**
 * Shows the page of a record in the account that owns it: its charts, links and actions are those of that account. Only an
 * operator can open a record of another account.
 */
export function useOwner(owner: string | undefined): void {
  const isOperator = useContext(SignedIn)?.role === 'operator'
  const shown = useAccountId()
  useEffect(() => {
    if (isOperator && owner !== undefined && owner !== shown)
      setQuery({ account: owner === 'default' ? null : owner }, 'replace')
  }, [isOperator, owner, shown])
}

export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

export function useCommand() {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  async function run(command: () => Promise<void>): Promise<void> {
    setBusy(true)
    setError(null)
    try {
      await command()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setError(error)
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, error, run }
}
