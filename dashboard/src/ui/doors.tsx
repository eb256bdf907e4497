import type { ComponentChildren } from 'preact'
import { Link } from '../router.tsx'
import { Money } from './figures.tsx'

interface Door {
  readonly name: string
  /** The page of the calls that the amount is of. */
  readonly to: string
  readonly usd: number
  readonly note?: ComponentChildren
}

interface DoorsProps {
  readonly of: readonly Door[]
  /** Each amount has a bar beside it, to the scale of the first. */
  readonly hasBars?: boolean
}

/** Amounts by name, each a link to its calls. */
export function Doors({ of: doors, hasBars = false }: DoorsProps) {
  const most = doors[0]?.usd ?? 0
  return (
    <ul class="doors">
      {doors.map(({ name, to, usd, note }) => (
        <li key={to}>
          <Link to={to}>
            <span class="name">{name}</span>
            {note !== undefined && <span class="quiet">{note}</span>}
            {hasBars && (
              <span class="bar">
                <span class="spent" style={{ width: `${most === 0 ? 0 : (usd / most) * 100}%` }} />
              </span>
            )}
            <Money usd={usd} />
          </Link>
        </li>
      ))}
    </ul>
  )
}
