import type { Call, ListOf } from '../api.ts'
import { useResource } from '../data.ts'
import { Link, withQuery } from '../router.tsx'
import { CallTable } from './call-table.tsx'

export function RefusedCalls({ path, keyId }: { readonly path: string; readonly keyId: string | null }) {
  const { value } = useResource<ListOf<Call>>(`${path}?state=refused&limit=5`, 10_000)
  if (value === null || value.data.length === 0) return null
  return (
    <>
      <h2>
        Refused calls <Link to={withQuery('/requests', { key: keyId, state: 'refused' })}>All</Link>
      </h2>
      <CallTable calls={value.data} isOfOneKey caption="Refused calls" />
    </>
  )
}
