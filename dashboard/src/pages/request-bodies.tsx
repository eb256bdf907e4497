import { useState } from 'preact/hooks'
import type { LoggedBodyObject } from '../../../src/api/request.ts'
import { useResource } from '../data.ts'
import { bytes } from '../format.ts'
import { Snippet } from '../parts/copy.tsx'
import { Loaded } from '../parts/states.tsx'

/** The logged bodies of a call. They are read when the section is opened. */
export function Bodies({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const bodies = useResource<{ request: LoggedBodyObject | null; response: LoggedBodyObject | null }>(
    isOpen ? `/gateway/v1/requests/${id}/bodies` : null,
  )
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Bodies</summary>
      {bodies.error?.status === 404 ? (
        <p class="quiet">Logging was off for the key, or the bodies have been deleted.</p>
      ) : (
        <Loaded resource={bodies}>
          {(value) => (
            <>
              <Body title="Request" of={value.request} />
              <Body title="Reply" of={value.response} />
            </>
          )}
        </Loaded>
      )}
    </details>
  )
}

function Body({ title, of: body }: { readonly title: string; readonly of: LoggedBodyObject | null }) {
  return (
    <>
      <h2>
        {title} {body?.truncated && <span class="quiet">the beginning of {bytes(body.length_bytes)}</span>}
      </h2>
      {body === null ? (
        <p class="quiet">There was no body.</p>
      ) : (
        <Snippet text={formatBody(body)} what={title.toLowerCase()} />
      )}
    </>
  )
}

function formatBody({ content, encoding }: LoggedBodyObject): string {
  if (encoding === 'base64') return `base64: ${content}`
  try {
    return JSON.stringify(JSON.parse(content), null, 2)
  } catch {
    return content
  }
}
