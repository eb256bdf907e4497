import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ApiError } from '../api.ts'
import type { Resource } from '../data.ts'
import { Link } from '../router.tsx'
import { Button } from './button.tsx'
import s from './states.module.css'

export function Failure({ error, onRetry }: { readonly error: ApiError; readonly onRetry?: () => void }) {
  const { requestId } = error.details
  return (
    <div class={s.failure} role="alert">
      <p>{error.message}</p>
      <p class="quiet">
        <code>{error.code}</code>
        {requestId !== undefined && ' · '}
        {requestId !== undefined && <code>{requestId}</code>}
        {onRetry !== undefined && ' · '}
        {onRetry !== undefined && <Button title="Retry" kind="link" onClick={onRetry} />}
      </p>
    </div>
  )
}

export interface Origin {
  readonly to: string
  readonly title: string
}

interface LoadedProps<T> {
  readonly resource: Resource<T>
  /** The expected height in lines, so that the page does not jump. */
  readonly lines?: number
  /** The list that the record belongs to. It is linked if the record does not exist. */
  readonly of?: Origin
  children(value: T): ComponentChildren
}

export function Loaded<T>({ resource, lines = 3, of: list, children }: LoadedProps<T>) {
  const { value, error, isLoading, refresh } = resource
  if (list !== undefined && error?.status === 404)
    return (
      <>
        <Heading of={list} title="Not found" />
        <Empty title={error.message} action={<Link to={list.to}>{`All ${list.title.toLowerCase()}`}</Link>} />
      </>
    )
  return (
    <>
      {error !== null && <Failure error={error} onRetry={refresh} />}
      {value !== null ? (
        <div class={isLoading ? s.stale : undefined} aria-busy={isLoading}>
          {children(value)}
        </div>
      ) : (
        error === null && (
          <div class={s.waiting} role="status" aria-label="Loading">
            {Array.from({ length: lines }, (_, i) => (
              <span key={i} />
            ))}
          </div>
        )
      )}
    </>
  )
}

type Slots<Name extends string> = { readonly title: string } & {
  readonly [name in Name]?: ComponentChildren
}

export function Empty({ title, words, action }: Slots<'words' | 'action'>) {
  return (
    <div class={s.empty}>
      <h2>{title}</h2>
      {words !== undefined && <p>{words}</p>}
      {action !== undefined && action !== false && <p>{action}</p>}
    </div>
  )
}

interface HeadingProps extends Slots<'state' | 'children'> {
  readonly of?: Origin
  /** The name of the record in that list. By default the title. */
  readonly name?: string
}

/** The title of the page, of its tab and of its entry in the browser's history. */
export function Heading({ of: list, title, name = title, state, children }: HeadingProps) {
  useEffect(() => {
    document.title = [title, ...(list === undefined ? [] : [list.title]), 'Tollgate'].join(' · ')
  }, [title, list?.title])
  return (
    <>
      {list !== undefined && (
        <nav class={s.crumbs} aria-label="Breadcrumb">
          <Link to={list.to}>{list.title}</Link> / <span class="name">{name}</span>
        </nav>
      )}
      <header class={s.heading}>
        <h1 class="name">{title}</h1>
        {state}
        <span class="buttons">{children}</span>
      </header>
    </>
  )
}

interface TagProps {
  readonly kind: 'bad' | 'high' | 'plain'
  readonly children: ComponentChildren
}

export function Tag({ kind, children }: TagProps) {
  return <span class={`${s.tag} ${kind === 'plain' ? s.plain : kind}`}>{children}</span>
}
