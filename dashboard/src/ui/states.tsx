import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api.ts'
import type { Resource } from '../data.ts'

/** An error of the API: its message, code and request id, and a button to retry. */
export function Failure({
  error,
  onRetry,
}: {
  readonly error: ApiError
  onRetry?: (() => void) | undefined
}) {
  return (
    <div class="failure" role="alert">
      <p>
        {error.message} {error.param !== null && <code>{error.param}</code>}
      </p>
      <p class="quiet">
        <code>{error.code}</code>
        {error.requestId !== null && (
          <>
            {' · '}
            <code>{error.requestId}</code>
          </>
        )}
        {onRetry !== undefined && (
          <>
            {' · '}
            <button type="button" class="link" onClick={onRetry}>
              Retry
            </button>
          </>
        )}
      </p>
    </div>
  )
}

/** The three states of a resource: not there yet, failed, there (and perhaps failing since). */
export function Show<T>({
  resource,
  lines = 3,
  children,
}: {
  readonly resource: Resource<T>
  /** How many lines the value will take, so that the page does not jump. */
  readonly lines?: number
  children(value: T): ComponentChildren
}) {
  const { value, error, isLoading, refresh } = resource
  return (
    <>
      {error !== null && <Failure error={error} onRetry={refresh} />}
      {value !== null ? (
        <div class={isLoading ? 'stale' : undefined} aria-busy={isLoading}>
          {children(value)}
        </div>
      ) : (
        error === null && <Waiting lines={lines} />
      )}
    </>
  )
}

function Waiting({ lines }: { readonly lines: number }) {
  return (
    <div class="waiting" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  )
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

export function Tag({
  kind,
  children,
}: {
  readonly kind: 'bad' | 'look' | 'good' | 'plain'
  readonly children: ComponentChildren
}) {
  return <span class={`tag ${kind}`}>{children}</span>
}
